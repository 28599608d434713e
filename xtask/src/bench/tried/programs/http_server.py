"""An HTTP server on a TCP port of the loopback or, where the argument is a path, on a Unix socket."""

import contextlib
import os
import socket
import socketserver
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

BODY = b"x" * 128


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Unbuffered (the default), head and body are two sends, and over TCP the second waits for the peer's delayed acknowledgement (40 ms).
    wbufsize = -1

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", str(len(BODY)))
        self.end_headers()
        self.wfile.write(BODY)

    def log_message(self, format, *args):
        pass


class TcpServer(ThreadingHTTPServer):
    # With the default of 5 some of many clients that connect at once are refused for now, and by TCP they try again only after a second.
    request_queue_size = 64


class UnixServer(TcpServer):
    address_family = socket.AF_UNIX

    def server_bind(self):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.server_address)  # a server that was killed leaves its socket, and bind refuses a path that exists
        socketserver.TCPServer.server_bind(self)  # HTTPServer's own asks for the name of a host


address = sys.argv[1]
if address.startswith("/"):
    server = UnixServer(address, Handler)
else:
    server = TcpServer(("127.0.0.1", int(address)), Handler)
server.serve_forever()

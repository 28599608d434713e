// An HTTP server on a TCP port of the loopback or, where the argument is a path, on a Unix socket.
const fs = require('node:fs');
const http = require('node:http');

const address = process.argv[2];
const body = 'x'.repeat(128);
const server = http.createServer((request, response) => {
  response.setHeader('Content-Length', body.length);
  response.end(body);
});

if (address.startsWith('/')) {
  fs.rmSync(address, { force: true }); // a server that was killed leaves its socket, and bind refuses a path that exists
  server.listen(address);
} else {
  server.listen(Number(address), '127.0.0.1');
}

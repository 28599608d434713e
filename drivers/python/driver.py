"""An endpoint of ipcmark in Python: pipe, unix-stream and tcp as Python's users have them, and multiprocessing's Pipe and Queue, and asyncio's streams,
which are Python's own."""

import asyncio
import multiprocessing
import multiprocessing.connection
import os
import select
import socket
import time
from typing import Any

from endpoint import Channel, Failed, hear, made, planned, run, say, ticket, wrong


def of_files(orders: Any) -> Channel:
    """A pipe each way: unbuffered files, as subprocess has them. What a pipe takes as a whole (PIPE_BUF) is read and written in one call."""
    source, sink = (os.fdopen(end, mode, 0) for end, mode in zip(orders["descriptors"], ("rb", "wb")))
    if orders["size_bytes"] <= select.PIPE_BUF:
        return Channel(sink.write, source.read)

    def receive(size: int) -> bytes:
        parts = []
        while size > 0 and (part := source.read(size)):
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def send(message: bytes) -> None:
        view = memoryview(message)
        while view:
            view = view[sink.write(view) :]

    return Channel(send, receive)


def of_socket(sock: socket.socket) -> Channel:
    """A stream socket."""
    receive, whole = sock.recv, socket.MSG_WAITALL
    return Channel(sock.sendall, lambda size: receive(size, whole))


def tcp(orders: Any) -> Channel:
    token, host = bytes(orders["network"]["token"]), orders["network"]["server"]
    if orders["role"] == "client":
        sock = socket.create_connection((host, int.from_bytes(ticket(), "big")))
        sock.sendall(token)
    else:
        listener = socket.create_server((host, 0))
        say({"ticket": list(listener.getsockname()[1].to_bytes(2, "big"))})
        while True:
            sock, _ = listener.accept()
            # Whoever shows another token, or none for a while, is a stranger.
            sock.settimeout(2)
            try:
                shown = sock.recv(16, socket.MSG_WAITALL)
            except OSError:
                shown = b""
            if shown == token:
                break
            sock.close()
        sock.settimeout(None)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return of_socket(sock)


def named(orders: Any) -> str:
    """A path of this trial, which the server makes up and the client is told."""
    if orders["role"] == "client":
        return ticket().decode()
    return os.path.join(orders["directory"], f"{orders['number']}.python")


def multiprocessing_pipe(orders: Any) -> Channel:
    path = named(orders)
    if orders["role"] == "client":
        connection = multiprocessing.connection.Client(path, "AF_UNIX")
    else:
        with multiprocessing.connection.Listener(path, "AF_UNIX") as listener:
            say({"ticket": list(path.encode())})
            connection = listener.accept()
    return Channel(connection.send_bytes, lambda size: connection.recv_bytes())


def multiprocessing_queue(orders: Any) -> Channel:
    """Two queues as two processes have them that one has started: each is a pipe, of which either process has both ends."""
    path = named(orders)
    paths = [f"{path}.asked", f"{path}.answered"]
    if orders["role"] == "server":
        for name in paths:
            os.mkfifo(name, 0o600)
        say({"ticket": list(path.encode())})
    is_client = orders["role"] == "client"
    # An end is opened when the other is: both go through them in one order.
    modes = [os.O_WRONLY, os.O_RDONLY] if is_client else [os.O_RDONLY, os.O_WRONLY]
    ends = [os.open(name, mode) for name, mode in zip(paths, modes)]
    sends, receives = multiprocessing.Queue(), multiprocessing.Queue()
    # It counts the room that is left, which both processes of a queue share: here it is the other one's.
    receives._sem = multiprocessing.Semaphore(0)
    sends._writer = multiprocessing.connection.Connection(ends[0 if is_client else 1], readable=False)
    receives._reader = multiprocessing.connection.Connection(ends[1 if is_client else 0], writable=False)
    for one in (sends, receives):
        one._reset()
        # What is still to be fed when the endpoint ends is for nobody.
        one.cancel_join_thread()
    return Channel(sends.put, lambda size: receives.get())


async def asyncio_phases(orders: Any) -> None:
    """The endpoint over asyncio's streams: what the others do, with an await before each call that may wait."""
    path = named(orders)
    met: asyncio.Queue[Any] = asyncio.Queue()
    if orders["role"] == "client":
        reader, writer = await asyncio.open_unix_connection(path)
    else:
        listener = await asyncio.start_unix_server(lambda *both: met.put_nowait(both), path)
        say({"ticket": list(path.encode())})
        reader, writer = await met.get()
        listener.close()
    is_client, size = orders["role"] == "client", orders["size_bytes"]
    answer = size if orders["workload"] == "latency" else 1
    streams = orders["workload"] == "throughput"

    async def send(message: bytes) -> None:
        writer.write(message)
        await writer.drain()

    async def receive(size: int, head: bytes) -> None:
        try:
            message = await reader.readexactly(size)
        except asyncio.IncompleteReadError:
            message = b""
        if not message.startswith(head):
            wrong(message)

    loop = asyncio.get_running_loop()
    say("connected")
    while True:
        name, phase = await loop.run_in_executor(None, hear)
        if name != "phase":
            return
        stretches = list(planned(phase, *((size, answer) if is_client else (answer, size))))
        if not is_client:
            say("ready")
        number, elapsed_ns, each_ns = 0, 0, []
        for stretch, outgoing, incoming in stretches:
            number += stretch["messages"]
            start_ns = before_ns = time.perf_counter_ns()
            for message, head in zip(outgoing, incoming):
                if is_client:
                    await send(message)
                if not is_client or not streams:
                    await receive(answer if is_client else size, head)
                if not is_client and not streams:
                    await send(message)
                if phase["each"] and stretch["timed"]:
                    before_ns, last_ns = time.perf_counter_ns(), before_ns
                    each_ns.append(before_ns - last_ns)
            if stretch["acknowledged"]:
                word = made(number, 1, False)
                await (receive(1, word) if is_client else send(word))
            elapsed_ns += time.perf_counter_ns() - start_ns if stretch["timed"] else 0
        say({"done": {"elapsed_ns": elapsed_ns, "each_ns": each_ns}})


def asyncio_alone(orders: Any) -> bool:
    """A trial in an event loop, which no other has."""
    if orders["mechanism"] == "asyncio-stream":
        asyncio.run(asyncio_phases(orders))
    return orders["mechanism"] == "asyncio-stream"


run(
    "python",
    {
        "pipe": of_files,
        "unix-stream": lambda orders: of_socket(socket.socket(fileno=orders["descriptors"][0])),
        "tcp": tcp,
        "multiprocessing-pipe": multiprocessing_pipe,
        "multiprocessing-queue": multiprocessing_queue,
        "asyncio-stream": None,
    },
    own=asyncio_alone,
)

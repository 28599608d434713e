"""An endpoint of ipcmark in Python: pipe, unix-stream and tcp as Python's users have them, and multiprocessing's Pipe and Queue, and asyncio's streams,
which are Python's own."""

import asyncio
import multiprocessing
import multiprocessing.connection
import os
import socket
import time
from typing import Any

from endpoint import Channel, Failed, hear, run, say, ticket


def of_files(descriptors: list[int]) -> Channel:
    """A pipe each way: unbuffered files, as subprocess has them."""
    source, sink = os.fdopen(descriptors[0], "rb", 0), os.fdopen(descriptors[1], "wb", 0)

    def receive(size: int) -> bytes:
        message = source.read(size)
        while len(message) < size:
            more = source.read(size - len(message))
            if not more:
                raise Failed("the peer has closed")
            message += more
        return message

    def send(message: memoryview) -> None:
        sent = sink.write(message)
        while sent < len(message):
            sent += sink.write(message[sent:])

    return Channel(send, receive)


def of_socket(sock: socket.socket) -> Channel:
    """A stream socket, received into one buffer."""
    buffers: dict[int, memoryview] = {}

    def receive(size: int) -> memoryview:
        view = buffers.setdefault(size, memoryview(bytearray(size)))
        got = sock.recv_into(view)
        while 0 < got < size:
            more = sock.recv_into(view[got:])
            got = got + more if more else 0
        if got == 0:
            raise Failed("the peer has closed")
        return view

    return Channel(sock.sendall, receive)


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
    return Channel(lambda message: sends.put(bytes(message)), lambda size: receives.get())


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
    box: list[bytes] = []
    channel = Channel(writer.write, lambda size: box.pop())

    async def send(number: int, size: int) -> None:
        channel.send(number, size)
        # The buffer of a message is used again for the next.
        if writer.transport.get_write_buffer_size():
            await writer.drain()

    async def receive(number: int, size: int) -> None:
        try:
            box.append(await reader.readexactly(size))
        except asyncio.IncompleteReadError as error:
            raise Failed("the peer has closed") from error
        channel.receive(number, size)

    loop = asyncio.get_running_loop()
    say("connected")
    while True:
        name, phase = await loop.run_in_executor(None, hear)
        if name != "phase":
            return
        channel.check = phase["check"]
        if orders["role"] == "server":
            say("ready")
        number, answer = 0, orders["size_bytes"] if orders["workload"] == "latency" else 1
        streams, elapsed_ns, each_ns = orders["workload"] == "throughput", 0, []
        first, second = (send, receive) if orders["role"] == "client" else (receive, send)
        sizes = (orders["size_bytes"], answer)
        for stretch in phase["stretches"]:
            start = before = time.perf_counter_ns()
            end = number + stretch["messages"]
            while number < end:
                await first(number, sizes[0])
                if not streams:
                    await second(number, sizes[1])
                if phase["each"] and stretch["timed"]:
                    before, last = time.perf_counter_ns(), before
                    each_ns.append(before - last)
                number += 1
            if streams and stretch["acknowledged"]:
                await second(number, 1)
            elapsed_ns += time.perf_counter_ns() - start if stretch["timed"] else 0
        say({"done": {"elapsed_ns": elapsed_ns, "each_ns": each_ns}})


def asyncio_alone(orders: Any) -> bool:
    """A trial in an event loop, which no other has."""
    if orders["mechanism"] == "asyncio-stream":
        asyncio.run(asyncio_phases(orders))
    return orders["mechanism"] == "asyncio-stream"


run(
    "python",
    {
        "pipe": lambda orders: of_files(orders["descriptors"]),
        "unix-stream": lambda orders: of_socket(socket.socket(fileno=orders["descriptors"][0])),
        "tcp": tcp,
        "multiprocessing-pipe": multiprocessing_pipe,
        "multiprocessing-queue": multiprocessing_queue,
        "asyncio-stream": None,
    },
    own=asyncio_alone,
)

"""An endpoint of ipcmark in Python: pipe, unix-stream, tcp and udp as Python's users have them, and multiprocessing's
Pipe, Queue and SharedMemory, and asyncio's streams, which are Python's own."""

import asyncio
import atexit
import multiprocessing
import multiprocessing.connection
import os
import select
import socket
from multiprocessing import resource_tracker
from multiprocessing.shared_memory import SharedMemory
from typing import Any

from asyncio_endpoint import over_streams
from endpoint import Channel, Failed, fitting, run, say, ticket, window, word

# Of a shared memory: the bytes of a line of the cache, in which words are alone, and how often one is read before
# another process is let run.
LINE = 64
SPINS = 100


def of_files(orders: Any) -> Channel:
    """A pipe each way: unbuffered files, as subprocess has them. What a pipe takes as a whole (PIPE_BUF) is read and
    written in one call."""
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


def udp_client(orders: Any) -> tuple[socket.socket, int]:
    """The socket, and how many messages fit in its server's buffer."""
    sock, shown = socket.socket(type=socket.SOCK_DGRAM), ticket()
    sock.connect((orders["network"]["server"], int.from_bytes(shown[:2], "big")))
    sock.send(word(orders, b"h"))
    while sock.recv(64) != word(orders, b"w"):
        pass
    sock.send(word(orders, b"r"))
    return sock, int.from_bytes(shown[2:], "big")


def udp_server(orders: Any) -> tuple[socket.socket, int]:
    """The socket, and how many messages fit in its buffer."""
    sock, host = socket.socket(type=socket.SOCK_DGRAM), orders["network"]["server"]
    sock.bind((host, 0))
    fit = fitting(sock, orders["size_bytes"])
    say({"ticket": list(sock.getsockname()[1].to_bytes(2, "big") + fit.to_bytes(4, "big"))})
    hello, client = b"", ("", 0)
    while hello != word(orders, b"h"):
        hello, client = sock.recvfrom(64)
    sock.connect(client)
    while hello != word(orders, b"r"):
        if hello == word(orders, b"h"):
            sock.send(word(orders, b"w"))
        hello = sock.recv(64)
    return sock, fit


def udp(orders: Any) -> Channel:
    """Connected sockets. In a stream the server acknowledges each half of what its buffer holds, and no more is on its
    way."""
    is_client = orders["role"] == "client"
    sock, fit = udp_client(orders) if is_client else udp_server(orders)
    take, put = sock.recv, sock.send
    if orders["workload"] != "throughput":
        # A byte more than is due tells one that is too long.
        return Channel(put, lambda size: whole(take(size + 1), size))
    half, most = window(fit)
    open_messages = 0

    def wait_for_room(left: int) -> None:
        nonlocal open_messages
        while open_messages > left:
            take(1)
            open_messages -= half

    def send(message: bytes) -> None:
        nonlocal open_messages
        if open_messages == most:
            wait_for_room(most - 1)
        open_messages += 1
        put(message)

    def receive_acknowledgement(size: int) -> bytes:
        wait_for_room(half - 1)
        return take(size)

    def receive(size: int) -> bytes:
        nonlocal open_messages
        message = whole(take(size + 1), size)
        open_messages += 1
        if open_messages == half:
            open_messages = 0
            put(b"\0")
        return message

    return Channel(send, receive_acknowledgement) if is_client else Channel(put, receive)


def whole(message: bytes, size: int) -> bytes:
    if len(message) != size:
        raise Failed(f"a message of {len(message)} bytes came instead of one of {size}")
    return message


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
    """Two queues as two processes have them that one has started: each is a pipe, of which either process has both
    ends."""
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


def multiprocessing_shared_memory(orders: Any) -> Channel:
    """A SharedMemory with two words each way, which count messages and say how long one is, and room for that, also
    where a codec makes it longer. Whoever receives spins."""
    is_client = orders["role"] == "client"
    lines_each = 6 + 2 * orders["size_bytes"] // LINE
    words_each = lines_each * LINE // 8
    memory = shared_memory(orders, 2 * lines_each * LINE)
    room, words = memory.buf, memory.buf.cast("Q")
    own, other = (0, words_each) if is_client else (words_each, 0)
    own_room, other_room = 8 * own + LINE, 8 * other + LINE
    sent = received = 0

    def send(message: bytes) -> None:
        nonlocal sent
        length = words[own + 1] = len(message)
        room[own_room : own_room + length] = message
        sent += 1
        words[own] = sent

    def receive(size: int) -> bytes:
        nonlocal received
        received += 1
        while words[other] != received:
            for _ in range(SPINS):
                if words[other] == received:
                    break
            else:
                # Where both share a CPU, the other one needs it.
                os.sched_yield()
        return bytes(room[other_room : other_room + words[other + 1]])

    def leave() -> None:
        words.release()
        memory.close()

    atexit.register(leave)
    # Its name goes when both have come: then nothing is left, however they end.
    send(b"")
    receive(0)
    if not is_client:
        memory.unlink()
    return Channel(send, receive)


def shared_memory(orders: Any, size: int) -> SharedMemory:
    if orders["role"] == "server":
        name = f"{orders['number']}.{os.path.basename(orders['directory'])}.python"
        memory = SharedMemory(name, create=True, size=size)
        say({"ticket": list(memory.name.encode())})
        return memory
    memory = SharedMemory(ticket().decode())
    # By itself this process would take away what is the other one's (https://github.com/python/cpython/issues/82300).
    resource_tracker.unregister(f"/{memory.name}", "shared_memory")
    return memory


def asyncio_alone(orders: Any) -> bool:
    """A trial in an event loop, which no other has."""
    if orders["mechanism"] == "asyncio-stream":
        asyncio.run(over_streams(orders, named(orders)))
    return orders["mechanism"] == "asyncio-stream"


run(
    "python",
    {
        "pipe": of_files,
        "unix-stream": lambda orders: of_socket(socket.socket(fileno=orders["descriptors"][0])),
        "tcp": tcp,
        "udp": udp,
        "multiprocessing-pipe": multiprocessing_pipe,
        "multiprocessing-queue": multiprocessing_queue,
        "multiprocessing-shared-memory": (multiprocessing_shared_memory, ["latency", "transfer"]),
        "asyncio-stream": None,
    },
    own=asyncio_alone,
)

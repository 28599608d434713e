"""The core of an endpoint of ipcmark, by docs/reference/protocol.md, for drivers in Python: messages, phases,
payload and codecs. What connects two endpoints is each driver's own."""

import contextlib
import ctypes
import json
import platform
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NoReturn, Optional

from codec import CODECS, Codec, available

WORKLOADS = ["latency", "transfer", "throughput"]
GOLDEN = 0x9E3779B97F4A7C15
NUMBER = struct.Struct("<Q")
LENGTH = struct.Struct("<I")
BYTE_STREAMS = ["pipe", "unix-stream", "tcp"]
# What a codec makes of a message may be longer than a datagram can be.
WITHOUT_CODECS = ["udp"]
MOST_KEPT_BYTES = 64 << 20


def say(message: Any) -> None:
    body = json.dumps(message).encode()
    sys.stdout.buffer.write(struct.pack("<I", len(body)) + body)
    sys.stdout.buffer.flush()


def hear() -> Any:
    """The next message as its name and its value; goodbye where the coordinator is gone."""
    length = sys.stdin.buffer.read(4)
    if len(length) < 4:
        return "goodbye", None
    message = json.loads(sys.stdin.buffer.read(struct.unpack("<I", length)[0]))
    return next(iter(message.items())) if isinstance(message, dict) else (message, None)


class Failed(Exception):
    """Why the endpoint cannot go on."""


class Channel:
    """Whole messages over two functions: one that sends bytes, and one that receives so many, and returns none where
    the peer has closed."""

    def __init__(self, send: Callable[[bytes], Any], receive: Callable[[int], bytes]) -> None:
        self.send, self.receive = send, receive

    def of_heads(self) -> "Channel":
        """The same, of which no more is kept of a message than its number."""
        return Channel(self.send, lambda size: self.receive(size)[:8])

    def framed(self) -> "Channel":
        """Messages of any length over a stream of bytes: the length is before each, in four bytes."""
        send, receive = self.send, self.receive

        def receive_whole(size: int) -> bytes:
            length = receive(LENGTH.size)
            return receive(LENGTH.unpack(length)[0]) if len(length) == LENGTH.size else b""

        return Channel(lambda body: send(LENGTH.pack(len(body)) + body), receive_whole)

    def coded(self, codec: Codec) -> "Channel":
        """Messages that are objects where they are made and used."""
        encode, decode = codec
        send, receive = self.send, self.receive

        def receive_object(size: int) -> bytes:
            body = receive(size)
            return decode(body) if body else b""

        return Channel(lambda message: send(encode(message)), receive_object)


# The highest bytes of n times GOLDEN, for n from 0: byte k of message i is the one of i + k.
TOP = bytearray()


def made(number: int, size: int, check: bool) -> bytes:
    """The message of that number. Only where everything is checked, all of it matters."""
    head = NUMBER.pack(number)[:size]
    if not check:
        return head.ljust(size, b"\0")
    if len(TOP) < number + size:
        TOP.extend(n * GOLDEN >> 56 & 0xFF for n in range(len(TOP), number + size))
    return head + TOP[number + len(head) : number + size]


def planned(phase: Any, sends: int, receives: int) -> Iterator[tuple[Any, Iterable[bytes], Iterable[bytes]]]:
    """The stretches of a phase, each with the messages that are sent, and how those begin that are received. They are
    made before the clock starts, as a program has its messages, unless they are too many to be kept."""
    number, check = 0, phase["check"]
    for stretch in phase["stretches"]:
        numbers = range(number, number + stretch["messages"])
        number = numbers.stop
        outgoing = (made(one, sends, check) for one in numbers)
        incoming = (made(one, receives if check else min(receives, 8), check) for one in numbers)
        is_kept = len(numbers) * (sends + 100) <= MOST_KEPT_BYTES
        yield stretch, list(outgoing) if is_kept else outgoing, list(incoming) if is_kept else incoming


def wrong(message: bytes) -> NoReturn:
    raise Failed("a message came changed, or another in its place" if message else "the peer has closed")


def ticket() -> bytes:
    name, value = hear()
    if name != "ticket":
        raise Failed(f"{name} came instead of the ticket")
    return bytes(value)


def word(orders: Any, kind: bytes) -> bytes:
    """What the endpoints of udp say to each other before the first message."""
    return bytes(orders["network"]["token"]) + kind


def fitting(sock: socket.socket, size: int) -> int:
    """How many datagrams of that size surely fit in the socket's buffer."""
    return sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) // 2 // (2 * size + 1024)


def window(fit: int) -> tuple[int, int]:
    """After how many messages the server of udp acknowledges a stream where so many fit in its buffer, and how many may
    be on their way."""
    half = max(fit // 2, 1)
    return half, 2 * half if fit > 1 else 1


def started(command: list[str], **options: Any) -> subprocess.Popen[bytes]:
    """A program of the trial's own, which the kernel ends with this endpoint (prctl(2), PR_SET_PDEATHSIG)."""
    libc = ctypes.CDLL(None)
    nowhere = subprocess.DEVNULL
    options = {"stdin": nowhere, "stdout": nowhere, "stderr": nowhere, **options}
    return subprocess.Popen(command, preexec_fn=lambda: libc.prctl(1, signal.SIGKILL), **options)


def phases(orders: Any, channel: Channel) -> None:
    """Does what the coordinator says, phase by phase, until it says goodbye."""
    size, is_client = orders["size_bytes"], orders["role"] == "client"
    answer = size if orders["workload"] == "latency" else 1
    exchange = EXCHANGES[orders["workload"] == "throughput", is_client]
    say("connected")
    while True:
        name, phase = hear()
        if name != "phase":
            return
        stretches = list(planned(phase, *((size, answer) if is_client else (answer, size))))
        if not is_client:
            say("ready")
        number, elapsed_ns, times_ns, all_that_came = 0, 0, [], []
        for stretch, outgoing, incoming in stretches:
            number += stretch["messages"]
            ends_ns = [] if phase["each"] and stretch["timed"] else None
            are_few = stretch["messages"] * size <= MOST_KEPT_BYTES
            way = channel if are_few or phase["check"] else channel.of_heads()
            start_ns = time.perf_counter_ns()
            came = exchange(way, outgoing, stretch["messages"], size if not is_client else answer, ends_ns)
            if stretch["acknowledged"]:
                acknowledge(channel, number, is_client)
            if stretch["timed"]:
                elapsed_ns += time.perf_counter_ns() - start_ns
            if ends_ns:
                times_ns = [end - begin for begin, end in zip([start_ns, *ends_ns], ends_ns)]
            all_that_came.append((came, incoming))
        # Beside the clock: a program that exchanges messages does something else with them.
        for came, incoming in all_that_came:
            for message, head in zip(came, incoming):
                if not message.startswith(head):
                    wrong(message)
        say({"done": {"elapsed_ns": elapsed_ns, "each_ns": times_ns}})


def ask(
    channel: Channel, outgoing: Iterable[bytes], count: int, size: int, ends_ns: Optional[list[int]]
) -> list[bytes]:
    send, receive, clock, came = channel.send, channel.receive, time.perf_counter_ns, []
    keep = came.append
    if ends_ns is None:
        for message in outgoing:
            send(message)
            keep(receive(size))
        return came
    for message in outgoing:
        send(message)
        keep(receive(size))
        ends_ns.append(clock())
    return came


def serve(
    channel: Channel, outgoing: Iterable[bytes], count: int, size: int, ends_ns: Optional[list[int]]
) -> list[bytes]:
    send, receive, came = channel.send, channel.receive, []
    keep = came.append
    for answer in outgoing:
        keep(receive(size))
        send(answer)
    return came


def stream(
    channel: Channel, outgoing: Iterable[bytes], count: int, size: int, ends_ns: Optional[list[int]]
) -> list[bytes]:
    send = channel.send
    for message in outgoing:
        send(message)
    return []


def drain(
    channel: Channel, outgoing: Iterable[bytes], count: int, size: int, ends_ns: Optional[list[int]]
) -> list[bytes]:
    receive = channel.receive
    return [receive(size) for _ in range(count)]


def acknowledge(channel: Channel, number: int, is_client: bool) -> None:
    word = made(number, 1, False)
    if not is_client:
        channel.send(word)
    elif (message := channel.receive(1)) != word:
        wrong(message)


# By whether messages are streamed, and whether it is the client that does it.
EXCHANGES = {(False, True): ask, (False, False): serve, (True, True): stream, (True, False): drain}


def run(
    program: str, offered: dict[str, Any], library: str = "", own: Callable[[Any], bool] = lambda orders: False
) -> None:
    """Takes part in a trial. `offered` has a function for each mechanism, which connects as the orders say and returns
    the channel, and perhaps the workloads, if not all. `own` does the whole trial by itself where it returns that it
    did; its mechanisms have no function."""
    try:
        take_part(program, offered, library, own)
    except Exception as error:
        with contextlib.suppress(OSError):
            say({"failed": str(error) or type(error).__name__})
        sys.exit(1)


def take_part(program: str, offered: dict[str, Any], library: str, own: Callable[[Any], bool]) -> None:
    hear()
    both = {name: one if isinstance(one, tuple) else (one, WORKLOADS) for name, one in offered.items()}
    has_codecs = {name for name, (connect, _) in both.items() if connect and name not in WITHOUT_CODECS}
    codecs = {name: available() if name in has_codecs else [] for name in both}
    hello = {
        "protocol": "ipcmark-endpoint",
        "version": 3,
        "program": program,
        "runtime": f"{platform.python_implementation()} {platform.python_version()}",
        "library": library,
        "capabilities": ["each"],
        "mechanisms": [
            {"name": name, "workloads": workloads, "codecs": codecs[name]} for name, (_, workloads) in both.items()
        ],
    }
    say({"hello": hello})
    name, orders = hear()
    if name != "orders":
        return
    if orders["mechanism"] not in both:
        raise Failed(f"this driver has no {orders['mechanism']}")
    parameters = dict(orders["parameters"])
    codec = parameters.pop("codec", None)
    if parameters or (codec and codec not in codecs[orders["mechanism"]]):
        raise Failed(f"this driver has none of the parameters {orders['parameters']}")
    if not own(orders):
        channel = both[orders["mechanism"]][0](orders)
        if codec:
            channel = channel.framed() if orders["mechanism"] in BYTE_STREAMS else channel
            channel = channel.coded(CODECS[codec][0]())
        phases(orders, channel)

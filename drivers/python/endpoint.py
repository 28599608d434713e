"""The core of an endpoint of ipcmark, by the document docs/reference/protocol.md, for drivers in Python: messages, phases and payload. What connects
two endpoints is each driver's own."""

import ctypes
import json
import platform
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

WORKLOADS = ["latency", "transfer", "throughput"]
GOLDEN = 0x9E3779B97F4A7C15
NUMBER = struct.Struct("<Q")


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


def whole(number: int, size: int) -> bytes:
    """Message `number` with every byte as it should be."""
    head = NUMBER.pack(number)[:size]
    return head + bytes(((number + k) * GOLDEN >> 56) & 0xFF for k in range(len(head), size))


class Failed(Exception):
    """Why the endpoint cannot go on."""


class Channel:
    """Whole messages over two functions: one that sends bytes, and one that receives so many."""

    def __init__(self, send: Callable[[Any], Any], receive: Callable[[int], Any]) -> None:
        self.send_bytes, self.receive_bytes = send, receive
        self.check, self.buffers = False, {}

    def send(self, number: int, size: int) -> None:
        if self.check:
            return self.send_bytes(whole(number, size))
        buffer = self.buffers.setdefault(size, bytearray(max(size, 8)))
        NUMBER.pack_into(buffer, 0, number)
        self.send_bytes(memoryview(buffer)[:size])

    def receive(self, number: int, size: int) -> None:
        message = self.receive_bytes(size)
        held = min(size, 8)
        if message[:held] != NUMBER.pack(number)[:held] or self.check and bytes(message) != whole(number, size):
            raise Failed(f"message {number} came changed, or another came in its place")


def ticket() -> bytes:
    name, value = hear()
    if name != "ticket":
        raise Failed(f"{name} came instead of the ticket")
    return bytes(value)


def started(command: list[str], **options: Any) -> subprocess.Popen[bytes]:
    """A program of the trial's own, which the kernel ends with this endpoint (prctl(2), PR_SET_PDEATHSIG), however that ends."""
    libc = ctypes.CDLL(None)
    nowhere = subprocess.DEVNULL
    options = {"stdin": nowhere, "stdout": nowhere, "stderr": nowhere, **options}
    return subprocess.Popen(command, preexec_fn=lambda: libc.prctl(1, signal.SIGKILL), **options)


def phases(orders: Any, channel: Channel) -> None:
    """Does what the coordinator says, phase by phase, until it says goodbye."""
    size, streams = orders["size_bytes"], orders["workload"] == "throughput"
    answer = size if orders["workload"] == "latency" else 1
    is_client = orders["role"] == "client"
    first, second = (channel.send, channel.receive) if is_client else (channel.receive, channel.send)
    say("connected")
    while True:
        name, phase = hear()
        if name != "phase":
            return
        channel.check = phase["check"]
        if not is_client:
            say("ready")
        clock, each, next_number, elapsed_ns, each_ns = time.perf_counter_ns, phase["each"], 0, 0, []
        for stretch in phase["stretches"]:
            numbers = range(next_number, next_number + stretch["messages"])
            next_number = numbers.stop
            start = before = clock()
            if streams:
                for number in numbers:
                    first(number, size)
                if stretch["acknowledged"]:
                    second(next_number, 1)
            elif each and stretch["timed"]:
                for number in numbers:
                    first(number, size)
                    second(number, answer)
                    now = clock()
                    each_ns.append(now - before)
                    before = now
            else:
                for number in numbers:
                    first(number, size)
                    second(number, answer)
            elapsed_ns += clock() - start if stretch["timed"] else 0
        say({"done": {"elapsed_ns": elapsed_ns, "each_ns": each_ns}})


def run(program: str, offered: dict[str, Any], library: str = "", own: Callable[[Any], bool] = lambda orders: False) -> None:
    """Takes part in a trial. `offered` has a function for each mechanism, which connects as the orders say and returns the channel, and perhaps the
    workloads, if not all. `own` does the whole trial by itself where it returns that it did."""
    try:
        take_part(program, offered, library, own)
    except (Failed, OSError, EOFError, ValueError) as error:
        try:
            say({"failed": str(error) or type(error).__name__})
        except OSError:
            pass
        sys.exit(1)


def take_part(program: str, offered: dict[str, Any], library: str, own: Callable[[Any], bool]) -> None:
    hear()
    both = {name: one if isinstance(one, tuple) else (one, WORKLOADS) for name, one in offered.items()}
    hello = {
        "protocol": "ipcmark-endpoint",
        "version": 3,
        "program": program,
        "runtime": f"{platform.python_implementation()} {platform.python_version()}",
        "library": library,
        "capabilities": ["each"],
        "mechanisms": [{"name": name, "workloads": workloads} for name, (_, workloads) in both.items()],
    }
    say({"hello": hello})
    name, orders = hear()
    if name != "orders":
        return
    if orders["parameters"]:
        raise Failed(f"this driver has no parameters, and the orders have {orders['parameters']}")
    if orders["mechanism"] not in both:
        raise Failed(f"this driver has no {orders['mechanism']}")
    if not own(orders):
        phases(orders, both[orders["mechanism"]][0](orders))

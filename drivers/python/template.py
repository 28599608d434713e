"""An endpoint of ipcmark: all that docs/reference/protocol.md asks of one, over a pair of pipes. Make it yours."""

import json
import os
import struct
import sys
import time


def say(message):
    body = json.dumps(message).encode()
    os.write(1, struct.pack("<I", len(body)) + body)


def hear():
    """The next message: its name, and its value if it has one."""
    length = sys.stdin.buffer.read(4)
    if len(length) < 4:
        sys.exit()
    message = json.loads(sys.stdin.buffer.read(struct.unpack("<I", length)[0]))
    return next(iter(message.items())) if isinstance(message, dict) else (message, None)


def made(number, size, check):
    """The message of that number. Only where everything is checked, all of it matters."""
    head = struct.pack("<Q", number)[:size]
    if not check:
        return head.ljust(size, b"\0")
    return head + bytes(((number + k) * 0x9E3779B97F4A7C15 >> 56) & 255 for k in range(len(head), size))


def send(number, size, check):
    message = made(number, size, check)
    while message:
        message = message[os.write(sink, message) :]


def receive(number, size, check):
    message = b""
    while len(message) < size:
        part = os.read(source, size - len(message))
        if not part:
            fail("the peer has closed")
        message += part
    held = size if check else min(size, 8)
    if message[:held] != made(number, size, check)[:held]:
        fail(f"message {number} came changed, or another in its place")


def fail(why):
    say({"failed": why})
    sys.exit(1)


hear()
MECHANISMS = [{"name": "pipe", "workloads": ["latency", "transfer", "throughput"]}]
say({"hello": {"protocol": "ipcmark-endpoint", "version": 3, "program": "NAME", "mechanisms": MECHANISMS}})
name, orders = hear()
if name == "goodbye":
    sys.exit()
if orders["mechanism"] != "pipe" or orders["parameters"]:
    fail("this endpoint has pipes without parameters")
source, sink = orders["descriptors"]
client, size = orders["role"] == "client", orders["size_bytes"]
first, second = (send, receive) if client else (receive, send)
answer = size if orders["workload"] == "latency" else 1
say("connected")
while True:
    name, phase = hear()
    if name == "goodbye":
        break
    if not client:
        say("ready")
    number, check = 0, phase["check"]
    for stretch in phase["stretches"]:
        start, end = time.perf_counter_ns(), number + stretch["messages"]
        while number < end:
            first(number, size, check)
            if orders["workload"] != "throughput":
                second(number, answer, check)
            number += 1
        if stretch.get("acknowledged"):
            second(number, 1, check)
        if stretch.get("timed"):
            elapsed_ns = time.perf_counter_ns() - start
    say({"done": {"elapsed_ns": elapsed_ns}})

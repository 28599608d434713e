"""A ping-pong over two pipes, as one writes it to throw it away: what the driver `python` is held against.
taskset -c 0 python3 pingpong.py SIZE ITERATIONS"""

import os
import select
import sys
import time

size, iterations = int(sys.argv[1]), int(sys.argv[2])


def sent(sink, message):
    view = memoryview(message)
    while view:
        view = view[sink.write(view) :]


def received(source):
    parts, left = [], size
    while left > 0 and (part := source.read(left)):
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def exchanged(source, sink, is_first):
    """Sends and receives all messages, and returns what came and how long it took."""
    send, receive = (lambda message: sent(sink, message)), (lambda _: received(source))
    if size <= select.PIPE_BUF:
        send, receive = sink.write, source.read
    messages = [number.to_bytes(8, "little")[:size].ljust(size, b"\0") for number in range(iterations)]
    came, start = [], time.perf_counter_ns()
    for message in messages:
        if is_first:
            send(message)
        came.append(receive(size))
        if not is_first:
            send(message)
    took = time.perf_counter_ns() - start
    assert came == messages
    return took


there, back = os.pipe(), os.pipe()
is_parent = os.fork() != 0
both = [(back[0], there[1]), (there[0], back[1])]
ends, others = both if is_parent else reversed(both)
for end in others:
    os.close(end)
source, sink = os.fdopen(ends[0], "rb", 0), os.fdopen(ends[1], "wb", 0)
exchanged(source, sink, is_parent)
took = exchanged(source, sink, is_parent)
if is_parent:
    print(took / iterations)

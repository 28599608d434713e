"""The driver in Python with a known delay in one of its layers, which a sum of layers must find: the codec `pickle`
works longer for each message, a broker holds up each message, or a collector stops the client each 100 ms for so long.

Arguments: `codec`, `broker` or `collector`, and the nanoseconds. It lies beside the files of the driver in Python."""

import gc
import select
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any

import codec
import endpoint

LAYER, DELAY_NS = sys.argv[1], int(sys.argv[2])
COLLECTED_EACH_S = 0.1


def spin(since_ns: int) -> None:
    while time.perf_counter_ns() < since_ns + DELAY_NS:
        pass


def slow_pickle() -> codec.Codec:
    encode, decode = codec.pickle_codec()

    def encode_slowly(data: bytes) -> bytes:
        spin(time.perf_counter_ns())
        return encode(data)

    return encode_slowly, decode


def relay(path: str) -> None:
    """The broker: what one connection says, the other one hears after the delay."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    one, other = listener.accept()[0], listener.accept()[0]
    while True:
        for source in select.select([one, other], [], [])[0]:
            message = source.recv(1 << 20)
            if not message:
                return
            spin(time.perf_counter_ns())
            (other if source is one else one).sendall(message)


def through_a_broker(orders: Any) -> endpoint.Channel:
    if orders["role"] == "server":
        path = f"{orders['directory']}/{orders['number']}.broker"
        endpoint.started([sys.executable, __file__, LAYER, str(DELAY_NS), path])
        endpoint.say({"ticket": list(path.encode())})
    else:
        path = endpoint.ticket().decode()
    sock = socket.socket(socket.AF_UNIX)
    while sock.connect_ex(path):
        pass
    receive, whole = sock.recv, socket.MSG_WAITALL
    return endpoint.Channel(sock.sendall, lambda size: receive(size, whole))


def collect_at_times(orders: Any) -> None:
    def collect(*_: Any) -> None:
        begin_ns = time.perf_counter_ns()
        gc.collect()
        spin(begin_ns)

    if DELAY_NS > 0 and orders["role"] == "client":
        signal.signal(signal.SIGALRM, collect)
        signal.setitimer(signal.ITIMER_REAL, COLLECTED_EACH_S, COLLECTED_EACH_S)


def run(program: str, offered: dict[str, Any], own: Any) -> None:
    """What the driver in Python calls, with the delay put in."""
    if LAYER == "codec":
        codec.CODECS["pickle"] = (slow_pickle, "pickle")
    if LAYER == "broker":
        offered["relayed"] = (through_a_broker, ["latency"])

    def own_or_collected(orders: Any) -> bool:
        if LAYER == "collector":
            collect_at_times(orders)
        return bool(own(orders))

    as_it_is(Path(__file__).parent.name, offered, own=own_or_collected)


if len(sys.argv) > 3:
    relay(sys.argv[3])
else:
    as_it_is, endpoint.run = endpoint.run, run
    import driver  # noqa: F401

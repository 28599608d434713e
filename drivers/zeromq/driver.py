"""An endpoint of ipcmark over ZeroMQ. Whoever sends hands the message to a thread of the library, which writes it to a
socket; whoever receives is handed it by another."""

import os
from typing import Any

import zmq

from endpoint import Channel, run, say, ticket

CONTEXT = zmq.Context()


def connected(orders: Any, kinds: tuple[int, int], address: str) -> Channel:
    """A socket of the kind of the client or of the server, which binds."""
    is_client = orders["role"] == "client"
    socket = CONTEXT.socket(kinds[0 if is_client else 1])
    # What is still to be sent when the endpoint ends is for nobody.
    socket.linger = 0
    if is_client:
        socket.connect(ticket().decode())
    else:
        socket.bind(address)
        say({"ticket": list(socket.last_endpoint.rstrip(b"\0"))})
    return Channel(socket.send, lambda size: socket.recv())


def path(orders: Any) -> str:
    return "ipc://" + os.path.join(orders["directory"], f"{orders['number']}.zeromq")


run(
    "zeromq",
    {
        "zeromq-ipc": lambda orders: connected(orders, (zmq.PAIR, zmq.PAIR), path(orders)),
        "zeromq-tcp": lambda orders: connected(orders, (zmq.PAIR, zmq.PAIR), "tcp://127.0.0.1:*"),
        "zeromq-reqrep": (
            lambda orders: connected(orders, (zmq.REQ, zmq.REP), path(orders)),
            ["latency", "transfer"],
        ),
    },
    library=f"libzmq {zmq.zmq_version()}, pyzmq {zmq.__version__}",
)

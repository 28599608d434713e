"""An endpoint of ipcmark over nng. Threads of the library write to the socket and read from it; whoever sends waits
until one of them takes the message, and whoever receives until one hands it over."""

import os
from typing import Any

import pynng

from endpoint import Channel, run, say, ticket


def connected(orders: Any, kinds: tuple[type, type], address: str) -> Channel:
    """A socket of the kind of the client or of the server, which listens."""
    is_client = orders["role"] == "client"
    # By itself it drops what is longer than a mebibyte.
    socket = kinds[0 if is_client else 1](recv_max_size=0)
    if is_client:
        socket.dial(ticket().decode(), block=True)
    else:
        listener = socket.listen(address)
        if address.startswith("tcp:"):
            address = f"tcp://{listener.local_address}"
        say({"ticket": list(address.encode())})
    return Channel(socket.send, lambda size: socket.recv())


def path(orders: Any) -> str:
    return "ipc://" + os.path.join(orders["directory"], f"{orders['number']}.nng")


run(
    "nng",
    {
        "nng-ipc": lambda orders: connected(orders, (pynng.Pair0, pynng.Pair0), path(orders)),
        "nng-tcp": lambda orders: connected(orders, (pynng.Pair0, pynng.Pair0), "tcp://127.0.0.1:0"),
        "nng-reqrep": (
            lambda orders: connected(orders, (pynng.Req0, pynng.Rep0), path(orders)),
            ["latency", "transfer"],
        ),
    },
    library=f"nng {pynng.ffi.string(pynng.lib.nng_version()).decode()}, pynng {pynng.__version__}",
)

"""An endpoint of ipcmark over asyncio's streams on uvloop, the event loop of libuv, in place of asyncio's own."""

import os
from typing import Any

import uvloop

from asyncio_endpoint import over_streams
from endpoint import run, ticket


def stream(orders: Any) -> bool:
    """The whole trial, in an event loop."""
    if orders["role"] == "client":
        path = ticket().decode()
    else:
        path = os.path.join(orders["directory"], f"{orders['number']}.uvloop")
    uvloop.run(over_streams(orders, path))
    return True


run("uvloop", {"uvloop-stream": None}, library=f"uvloop {uvloop.__version__}", own=stream)

"""An endpoint of ipcmark over asyncio's streams and datagrams on uvloop, the event loop of libuv, in place of asyncio's
own."""

import asyncio
import os
from typing import Any

import uvloop

from asyncio_endpoint import AsyncChannel, async_phases, over_streams
from endpoint import fitting, run, say, ticket, window, word


class Datagrams(asyncio.DatagramProtocol):
    """Datagrams that come by events, taken one by one by whoever awaits them: those of the peer, once that is known."""

    def __init__(self) -> None:
        self.waiting: asyncio.Queue[Any] = asyncio.Queue()
        self.peer: Any = None

    def datagram_received(self, data: bytes, addr: Any) -> None:
        if self.peer in (None, addr):
            self.waiting.put_nowait((data, addr))

    def error_received(self, exc: Exception) -> None:
        # As where a stream ends.
        self.waiting.put_nowait((b"", self.peer))

    async def take(self) -> bytes:
        data, _ = await self.waiting.get()
        return bytes(data)


async def greeted(orders: Any) -> tuple[Any, Datagrams, int]:
    """A client: its transport, what comes, and how many messages fit in its server's buffer."""
    shown = ticket()
    server = (orders["network"]["server"], int.from_bytes(shown[:2], "big"))
    transport, datagrams = await asyncio.get_running_loop().create_datagram_endpoint(Datagrams, remote_addr=server)
    transport.sendto(word(orders, b"h"))
    while await datagrams.take() != word(orders, b"w"):
        pass
    transport.sendto(word(orders, b"r"))
    return transport, datagrams, int.from_bytes(shown[2:], "big")


async def welcomed(orders: Any) -> tuple[Any, Datagrams, int]:
    """A server: its transport, what comes, and how many messages fit in its buffer."""
    own = (orders["network"]["server"], 0)
    transport, datagrams = await asyncio.get_running_loop().create_datagram_endpoint(Datagrams, local_addr=own)
    sock = transport.get_extra_info("socket")
    fit = fitting(sock, orders["size_bytes"])
    say({"ticket": list(sock.getsockname()[1].to_bytes(2, "big") + fit.to_bytes(4, "big"))})
    hello = b""
    while hello != word(orders, b"h"):
        hello, datagrams.peer = await datagrams.waiting.get()
    while hello != word(orders, b"r"):
        if hello == word(orders, b"h"):
            transport.sendto(word(orders, b"w"), datagrams.peer)
        hello = await datagrams.take()
    return transport, datagrams, fit


async def over_datagrams(orders: Any) -> None:
    """A trial of udp. In a stream the server acknowledges each half of what its buffer holds, and no more is on its
    way."""
    is_client, streams = orders["role"] == "client", orders["workload"] == "throughput"
    transport, datagrams, fit = await (greeted if is_client else welcomed)(orders)
    half, most = window(fit)
    open_messages = 0

    async def wait_for_room(left: int) -> None:
        nonlocal open_messages
        while open_messages > left:
            await datagrams.take()
            open_messages -= half

    async def send(message: bytes) -> None:
        nonlocal open_messages
        if streams and is_client:
            await wait_for_room(most - 1)
            open_messages += 1
        transport.sendto(message, datagrams.peer)

    async def receive(size: int) -> bytes:
        nonlocal open_messages
        if streams and is_client:
            await wait_for_room(half - 1)
        message = await datagrams.take()
        if streams and not is_client:
            open_messages += 1
            if open_messages == half:
                open_messages = 0
                transport.sendto(b"\0", datagrams.peer)
        return message if len(message) == size else b""

    await async_phases(orders, AsyncChannel(send, receive))


def whole_trial(orders: Any) -> bool:
    """The whole trial, in an event loop."""
    if orders["mechanism"] == "udp":
        uvloop.run(over_datagrams(orders))
        return True
    if orders["role"] == "client":
        path = ticket().decode()
    else:
        path = os.path.join(orders["directory"], f"{orders['number']}.uvloop")
    uvloop.run(over_streams(orders, path))
    return True


run("uvloop", {"uvloop-stream": None, "udp": None}, library=f"uvloop {uvloop.__version__}", own=whole_trial)

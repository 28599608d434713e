"""An endpoint of ipcmark over Cap'n Proto: the client calls a method of the server, which answers in its event loop."""

import asyncio
import os
from collections.abc import Awaitable, Iterator
from typing import Any, Optional

import capnp

from asyncio_endpoint import AsyncChannel, Pairs, async_phases, checked
from endpoint import Failed, run, say, ticket

SCHEMA = capnp.load(os.path.join(os.path.dirname(os.path.abspath(__file__)), "endpoint.capnp"))


class Caller(AsyncChannel):
    """The client: a call is begun, and then waited for."""

    def __init__(self, peer: Any) -> None:
        super().__init__(self.call, self.returned)
        self.peer = peer
        self.promise: Optional[Awaitable[Any]] = None

    async def call(self, message: bytes) -> None:
        self.promise = self.peer.exchange(message)

    async def returned(self, size: int) -> bytes:
        return (await self.promise).answer


class Called(SCHEMA.Endpoint.Server, AsyncChannel):
    """The server: it answers where it is called, from the stretch that it is given, and says when that is over."""

    def __init__(self) -> None:
        self.stretches: asyncio.Queue[Any] = asyncio.Queue()
        self.pairs: Iterator[tuple[bytes, bytes]] = iter(())
        self.pair: Optional[tuple[bytes, bytes]] = None
        self.over: Any = None

    async def serve(self, pairs: Pairs, size: int, ends_ns: Optional[list[int]]) -> None:
        over = asyncio.get_running_loop().create_future()
        self.stretches.put_nowait((iter(pairs), over))
        await over

    async def exchange(self, message: bytes, **_: Any) -> bytes:
        if self.pair is None:
            self.pairs, self.over = await self.stretches.get()
            self.pair = next(self.pairs)
        answer, head = self.pair
        self.pair = next(self.pairs, None)
        try:
            checked(message, head)
        except Failed as error:
            self.over.set_exception(error)
        else:
            if self.pair is None:
                self.over.set_result(None)
        return answer


async def take_part(orders: Any) -> None:
    if orders["role"] == "client":
        stream = await capnp.AsyncIoStream.create_unix_connection(ticket().decode())
        peer = capnp.TwoPartyClient(stream).bootstrap().cast_as(SCHEMA.Endpoint)
        await async_phases(orders, Caller(peer))
    else:
        called = Called()

        async def connected(stream: Any) -> None:
            await capnp.TwoPartyServer(stream, bootstrap=called).on_disconnect()

        path = os.path.join(orders["directory"], f"{orders['number']}.capnp")
        await capnp.AsyncIoStream.create_unix_server(connected, path)
        say({"ticket": list(path.encode())})
        await async_phases(orders, called)


def rpc(orders: Any) -> bool:
    """The whole trial, in an event loop."""
    asyncio.run(capnp.run(take_part(orders)))
    return True


run("capnp", {"capnp-rpc": (None, ["latency", "transfer"])}, library=f"pycapnp {capnp.__version__}", own=rpc)

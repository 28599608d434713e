"""The core of an endpoint of ipcmark whose messages go through an event loop, for drivers in Python: the phases, with
an await before each call that may wait; and the streams of asyncio over a Unix socket."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Optional

from endpoint import hear, made, planned, say, wrong

# What is sent, and how that begins that is received.
Pairs = Iterable[tuple[bytes, bytes]]


class AsyncChannel:
    """Whole messages over two coroutines: one that sends bytes, and one that receives so many, and returns none where
    the peer has closed. A library whose servers are called may override `serve`."""

    def __init__(self, send: Callable[[bytes], Awaitable[Any]], receive: Callable[[int], Awaitable[bytes]]) -> None:
        self.send, self.receive = send, receive

    async def ask(self, pairs: Pairs, size: int, ends_ns: Optional[list[int]]) -> None:
        for message, head in pairs:
            await self.send(message)
            checked(await self.receive(size), head)
            if ends_ns is not None:
                ends_ns.append(time.perf_counter_ns())

    async def serve(self, pairs: Pairs, size: int, ends_ns: Optional[list[int]]) -> None:
        for answer, head in pairs:
            checked(await self.receive(size), head)
            await self.send(answer)

    async def stream(self, pairs: Pairs, size: int, ends_ns: Optional[list[int]]) -> None:
        for message, _ in pairs:
            await self.send(message)

    async def drain(self, pairs: Pairs, size: int, ends_ns: Optional[list[int]]) -> None:
        for _, head in pairs:
            checked(await self.receive(size), head)

    async def acknowledge(self, number: int, is_client: bool) -> None:
        word = made(number, 1, False)
        if is_client:
            checked(await self.receive(1), word)
        else:
            await self.send(word)


def checked(message: bytes, head: bytes) -> None:
    if not message.startswith(head):
        wrong(message)


async def async_phases(orders: Any, channel: AsyncChannel) -> None:
    """Does what the coordinator says, phase by phase, until it says goodbye."""
    size, is_client = orders["size_bytes"], orders["role"] == "client"
    answer = size if orders["workload"] == "latency" else 1
    if orders["workload"] == "throughput":
        exchange = channel.stream if is_client else channel.drain
    else:
        exchange = channel.ask if is_client else channel.serve
    loop = asyncio.get_running_loop()
    say("connected")
    while True:
        name, phase = await loop.run_in_executor(None, hear)
        if name != "phase":
            return
        stretches = list(planned(phase, *((size, answer) if is_client else (answer, size))))
        if not is_client:
            say("ready")
        number, elapsed_ns, times_ns = 0, 0, []
        for stretch, outgoing, incoming in stretches:
            number += stretch["messages"]
            ends_ns = [] if phase["each"] and stretch["timed"] else None
            start_ns = time.perf_counter_ns()
            await exchange(zip(outgoing, incoming), answer if is_client else size, ends_ns)
            if stretch["acknowledged"]:
                await channel.acknowledge(number, is_client)
            if stretch["timed"]:
                elapsed_ns += time.perf_counter_ns() - start_ns
            if ends_ns:
                times_ns = [end - begin for begin, end in zip([start_ns, *ends_ns], ends_ns)]
        say({"done": {"elapsed_ns": elapsed_ns, "each_ns": times_ns}})


async def over_streams(orders: Any, path: str) -> None:
    """A trial over asyncio's streams at a path."""
    if orders["role"] == "client":
        reader, writer = await asyncio.open_unix_connection(path)
    else:
        met: asyncio.Queue[Any] = asyncio.Queue()
        listener = await asyncio.start_unix_server(lambda *both: met.put_nowait(both), path)
        say({"ticket": list(path.encode())})
        reader, writer = await met.get()
        listener.close()

    async def send(message: bytes) -> None:
        writer.write(message)
        await writer.drain()

    async def receive(size: int) -> bytes:
        try:
            return await reader.readexactly(size)
        except asyncio.IncompleteReadError:
            return b""

    await async_phases(orders, AsyncChannel(send, receive))

"""An endpoint of ipcmark over D-Bus: the server of a trial starts a dbus-daemon, and answers method calls of its client through it. What the daemon
uses of the CPU counts for the endpoint that has started it."""

import os
import subprocess
from typing import Any

import jeepney
from endpoint import Channel, run, say, started, ticket
from jeepney.io.blocking import open_dbus_connection

INTERFACE = "org.ipcmark.Endpoint"


def client(orders: Any) -> Channel:
    address, _, name = ticket().decode().partition(" ")
    bus = open_dbus_connection(bus=address)
    peer = jeepney.DBusAddress("/", bus_name=name, interface=INTERFACE)

    def send(message: Any) -> None:
        bus.send(jeepney.new_method_call(peer, "Exchange", "ay", (message,)))

    return Channel(send, lambda size: next_of(bus, jeepney.MessageType.method_return).body[0])


def server(orders: Any) -> Channel:
    path = os.path.join(orders["directory"], f"{orders['number']}.dbus")
    daemon = started(
        ["dbus-daemon", "--session", "--nofork", "--nopidfile", "--print-address=1", f"--address=unix:path={path}"],
        stdout=subprocess.PIPE,
    )
    address = daemon.stdout.readline().decode().strip()
    bus = open_dbus_connection(bus=address)
    say({"ticket": list(f"{address} {bus.unique_name}".encode())})
    asked: list[Any] = []

    def receive(size: int) -> bytes:
        asked.append(next_of(bus, jeepney.MessageType.method_call))
        return asked[-1].body[0]

    def send(message: Any) -> None:
        bus.send(jeepney.new_method_return(asked.pop(), "ay", (message,)))

    return Channel(send, receive)


def next_of(bus: Any, kind: Any) -> Any:
    """The next message of a kind: the daemon has some of its own to say."""
    while True:
        message = bus.receive()
        if message.header.message_type == kind:
            return message


def call(orders: Any) -> Channel:
    return client(orders) if orders["role"] == "client" else server(orders)


run("dbus", {"dbus-call": (call, ["latency", "transfer"])}, library=f"jeepney {jeepney.__version__}")

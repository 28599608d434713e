"""An endpoint of ipcmark over D-Bus: the server of a trial starts a dbus-daemon or a dbus-broker, and answers method
calls of its client through it; or the two are connected without one. What a daemon uses of the CPU counts for the
endpoint that has started it."""

import os
import shutil
import socket
import subprocess
import uuid
from collections.abc import Callable
from typing import Any

import jeepney
from jeepney.auth import BEGIN, Authenticator
from jeepney.io.blocking import DBusConnection, DBusConnectionBase, open_dbus_connection, prep_socket

from endpoint import Channel, Failed, run, say, started, ticket

NAME = "org.ipcmark.Endpoint"
# The policy of a dbus-broker since version 33: for each user who may connect, own names, send and receive what.
RULE = "(btssssuutt)"
RULES = f"(bta(btbs)a{RULE}a{RULE})"
POLICY = f"(a(u{RULES})a(buu{RULES})a(ss)bs)"
FIRST_WITH_POLICY = 33


class Peer(DBusConnection):
    """A connection to somebody who is no bus, and is not asked for a name."""

    def __init__(self, sock: socket.socket, enable_fds: bool = False) -> None:
        DBusConnectionBase.__init__(self, sock, enable_fds)


# The dbus-broker of the trial ends where nobody holds its connection any more.
CONTROLLED: list[Peer] = []


def client(bus: DBusConnection, name: str) -> Channel:
    peer = jeepney.DBusAddress("/", bus_name=name, interface=NAME)

    def send(message: Any) -> None:
        bus.send(jeepney.new_method_call(peer, "Exchange", "ay", (message,)))

    return Channel(send, lambda size: next_of(bus, jeepney.MessageType.method_return).body[0])


def server(bus: DBusConnection) -> Channel:
    asked: list[Any] = []

    def receive(size: int) -> bytes:
        asked.append(next_of(bus, jeepney.MessageType.method_call))
        return asked[-1].body[0]

    def send(message: Any) -> None:
        bus.send(jeepney.new_method_return(asked.pop(), "ay", (message,)))

    return Channel(send, receive)


def signals(bus: DBusConnection) -> Channel:
    """What is not answered is no call."""
    emitter = jeepney.DBusAddress("/", interface=NAME)

    def send(message: Any) -> None:
        bus.send(jeepney.new_signal(emitter, "Exchange", "ay", (message,)))

    return Channel(send, lambda size: next_of(bus, jeepney.MessageType.signal).body[0])


def next_of(bus: Any, kind: Any) -> Any:
    """The next message of a kind: the daemon has some of its own to say."""
    while True:
        message = bus.receive()
        if message.header.message_type == kind:
            return message


def call(orders: Any, start: Callable[[Any], str]) -> Channel:
    """Calls through what the server starts, which says at which address it is reached."""
    if orders["role"] == "client":
        address, _, name = ticket().decode().partition(" ")
        return client(open_dbus_connection(bus=address), name)
    address = start(orders)
    bus = open_dbus_connection(bus=address)
    say({"ticket": list(f"{address} {bus.unique_name}".encode())})
    return server(bus)


def daemon(orders: Any) -> str:
    path = os.path.join(orders["directory"], f"{orders['number']}.dbus")
    process = started(
        ["dbus-daemon", "--session", "--nofork", "--nopidfile", "--print-address=1", f"--address=unix:path={path}"],
        stdout=subprocess.PIPE,
    )
    return process.stdout.readline().decode().strip()


def broker(orders: Any) -> str:
    """A dbus-broker, of which this endpoint is the controller, as dbus-broker-launch is where systemd runs."""
    path, listener = listening(orders)
    listener.setblocking(False)
    ours, theirs = socket.socketpair()
    started(
        ["dbus-broker", "--controller", str(theirs.fileno()), "--machine-id", uuid.uuid4().hex],
        pass_fds=[theirs.fileno()],
    )
    theirs.close()
    authenticator = Authenticator(enable_fds=True)
    for line in authenticator:
        ours.sendall(line)
        authenticator.feed(ours.recv(1024))
    ours.sendall(BEGIN)
    CONTROLLED.append(Peer(ours, enable_fds=True))
    anything = (True, 1, "", "", "", "", 0, 0, 0, 2**64 - 1)
    allowed = (True, 1, [(True, 1, True, "")], [anything], [anything])
    policy = (POLICY, ([(2**32 - 1, allowed)], [], [], False, ""))
    there = jeepney.DBusAddress("/org/bus1/DBus/Broker", "org.bus1.DBus.Broker", "org.bus1.DBus.Broker")
    body = ("/org/bus1/DBus/Listener/0", listener.fileno(), policy)
    reply = CONTROLLED[0].send_and_get_reply(jeepney.new_method_call(there, "AddListener", "ohv", body))
    if reply.header.message_type != jeepney.MessageType.method_return:
        raise Failed(f"dbus-broker refuses to listen: {reply.body}")
    return f"unix:path={path}"


def peer(orders: Any) -> Channel:
    """The two connected to each other."""
    is_client = orders["role"] == "client"
    if is_client:
        bus = Peer(prep_socket(ticket().decode()))
    else:
        path, listener = listening(orders)
        say({"ticket": list(path.encode())})
        sock, _ = listener.accept()
        welcome(sock)
        bus = Peer(sock)
    if orders["workload"] == "throughput":
        return signals(bus)
    return client(bus, NAME) if is_client else server(bus)


def welcome(sock: socket.socket) -> None:
    """The server's part of the handshake, in lines of text. Who may connect is for the directory's mode to say."""
    # Unbuffered: no byte after the last line is of the handshake.
    with sock.makefile("rb", 0) as lines:
        for line in iter(lines.readline, BEGIN):
            if not line:
                raise Failed("the peer has closed")
            is_known = line.lstrip(b"\0").startswith(b"AUTH EXTERNAL ")
            sock.sendall(b"OK %b\r\n" % uuid.uuid4().hex.encode() if is_known else b"REJECTED EXTERNAL\r\n")


def listening(orders: Any) -> tuple[str, socket.socket]:
    path = os.path.join(orders["directory"], f"{orders['number']}.dbus")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    return path, listener


def has_broker() -> bool:
    """Whether a dbus-broker is there, of a version that understands the policy: `dbus-broker 33`."""
    if shutil.which("dbus-broker") is None:
        return False
    said = subprocess.run(["dbus-broker", "--version"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    version = said.stdout.split()[-1:]
    return bool(version) and version[0].isdecimal() and int(version[0]) >= FIRST_WITH_POLICY


CALLS = ["latency", "transfer"]
offered = {"dbus-peer": peer}
if shutil.which("dbus-daemon"):
    offered["dbus-call"] = (lambda orders: call(orders, daemon), CALLS)
if has_broker():
    offered["dbus-broker-call"] = (lambda orders: call(orders, broker), CALLS)
run("dbus", offered, library=f"jeepney {jeepney.__version__}")

"""An endpoint of ipcmark over Redis: the server of a trial starts a redis-server, which keeps nothing, and both are its
clients. What the broker uses of the CPU counts for the endpoint that has started it."""

import os
import socket
import time
from typing import Any

import redis

from endpoint import Channel, Failed, run, say, started, ticket


def broker(orders: Any) -> str:
    """The path at which the redis-server of the trial is reached, when it is."""
    if orders["role"] == "client":
        return ticket().decode()
    path = os.path.join(orders["directory"], f"{orders['number']}.redis")
    options = ["--port", "0", "--unixsocket", path, "--save", "", "--appendonly", "no", "--logfile", os.devnull]
    process = started(["redis-server", *options])
    while not listens(path):
        if process.poll() is not None:
            raise Failed(f"redis-server ended with {process.returncode}")
        time.sleep(0.001)
    return path


def listens(path: str) -> bool:
    """Whether somebody listens at a path: it is there a moment before that."""
    with socket.socket(socket.AF_UNIX) as tried:
        return tried.connect_ex(path) == 0


def names(orders: Any) -> tuple[str, str]:
    """Where this endpoint sends to, and where it receives from."""
    both = ("asked", "answered")
    return both if orders["role"] == "client" else (both[1], both[0])


def lists(orders: Any) -> Channel:
    path = broker(orders)
    sends, receives = redis.Redis(unix_socket_path=path), redis.Redis(unix_socket_path=path)
    to, of = names(orders)
    sends.ping()
    announce(orders, path)

    def send(message: Any) -> None:
        sends.rpush(to, message)

    return Channel(send, lambda size: receives.blpop([of])[1])


def subscription(orders: Any) -> Channel:
    path = broker(orders)
    to, of = names(orders)
    sends = redis.Redis(unix_socket_path=path)
    heard = redis.Redis(unix_socket_path=path).pubsub(ignore_subscribe_messages=True)
    heard.subscribe(of)
    # The first is that it is subscribed.
    heard.get_message(timeout=None)
    announce(orders, path)
    # What is published before the other one has subscribed would be lost.
    while sends.pubsub_numsub(to)[0][1] == 0:
        time.sleep(0.001)

    def send(message: Any) -> None:
        sends.publish(to, message)

    def receive(size: int) -> bytes:
        while True:
            message = heard.get_message(timeout=None)
            if message is not None:
                return message["data"]

    return Channel(send, receive)


def announce(orders: Any, path: str) -> None:
    if orders["role"] == "server":
        say({"ticket": list(path.encode())})


run(
    "redis",
    {"redis-list": lists, "redis-pubsub": (subscription, ["latency", "transfer"])},
    library=f"redis-py {redis.__version__}",
)

"""An endpoint of ipcmark over gRPC, by its synchronous interface: a client calls, and a thread of the server's pool
answers where the call comes in. Messages are protobuf's, with bytes in one field."""

import itertools
import os
import queue
from collections.abc import Iterable, Iterator
from concurrent import futures
from typing import Any, Optional

import google.protobuf
import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from endpoint import EXCHANGES, Channel, phases, run, say, ticket

SERVICE = "ipcmark.Endpoint"


def message_class() -> Any:
    """What protoc makes of `message Message { bytes value = 1; }`."""
    field = descriptor_pb2.FieldDescriptorProto(
        name="value",
        number=1,
        type=descriptor_pb2.FieldDescriptorProto.TYPE_BYTES,
        label=descriptor_pb2.FieldDescriptorProto.LABEL_OPTIONAL,
    )
    message = descriptor_pb2.DescriptorProto(name="Message", field=[field])
    file = descriptor_pb2.FileDescriptorProto(
        name="ipcmark.proto", package="ipcmark", syntax="proto3", message_type=[message]
    )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("ipcmark.Message"))


Message = message_class()


def call(channel: grpc.Channel) -> Channel:
    """The client of unary calls, each of which waits for its answer."""
    method = channel.unary_unary(f"/{SERVICE}/Call", Message.SerializeToString, Message.FromString)
    answers: list[bytes] = []

    def send(message: bytes) -> None:
        answers.append(method(Message(value=message)).value)

    return Channel(send, lambda size: answers.pop())


def stream(channel: grpc.Channel) -> Channel:
    """The client of a stream: a thread of the library takes from an iterator what is to be sent."""
    method = channel.stream_stream(f"/{SERVICE}/Stream", Message.SerializeToString, Message.FromString)
    stretches: queue.SimpleQueue[Iterable[bytes]] = queue.SimpleQueue()
    outgoing = itertools.chain.from_iterable(iter(stretches.get, None))
    incoming = method(Message(value=message) for message in outgoing)

    def stream_all(channel: Channel, outgoing: Iterable[bytes], *_: Any) -> list[bytes]:
        # The library's thread goes through them at the pace at which they are taken: in a queue they would pile up.
        stretches.put(outgoing)
        return []

    EXCHANGES[True, True] = stream_all
    return Channel(lambda message: stretches.put((message,)), lambda size: next(incoming).value)


class Answers(Channel):
    """The server of calls. A thread of its pool answers with the messages of a stretch, which the endpoint's own thread
    gives it, and gives that what came: a hand-over for each message would be more than gRPC does."""

    def __init__(self) -> None:
        self.given: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.ended: queue.SimpleQueue[list[bytes]] = queue.SimpleQueue()
        self.answers: Iterator[bytes] = iter(())
        self.came: list[bytes] = []
        self.left = 0
        # How many bytes of a message are kept, none for all: of the next stretch, and of this one.
        self.kept: Optional[int] = None
        self.bytes_kept: Optional[int] = None

    def begin(self) -> None:
        EXCHANGES[False, False] = self.serve

    def end(self) -> None:
        # A call that still waits for a stretch is for nobody.
        self.given.put(None)

    def of_heads(self) -> Channel:
        self.kept = 8
        return self

    def serve(self, channel: Channel, outgoing: Iterable[bytes], count: int, *_: Any) -> list[bytes]:
        kept, self.kept = self.kept, None
        self.given.put((iter(outgoing), count, kept))
        return self.ended.get()

    def answer(self, request: Any, context: Any = None) -> Any:
        if self.left == 0:
            self.answers, self.left, self.bytes_kept = self.given.get()
            self.came = []
        self.came.append(request.value[: self.bytes_kept])
        answer = Message(value=next(self.answers))
        self.left -= 1
        if self.left == 0:
            self.ended.put(self.came)
        return answer

    def answer_all(self, requests: Iterator[Any], context: Any) -> Iterator[Any]:
        return map(self.answer, requests)


class Drain(Channel):
    """The server of a stream that is not answered: the endpoint's own thread takes from it, and a thread of the pool
    sends what acknowledges it."""

    def __init__(self) -> None:
        self.calls: queue.SimpleQueue[Iterator[Any]] = queue.SimpleQueue()
        self.words: queue.SimpleQueue[Optional[bytes]] = queue.SimpleQueue()
        super().__init__(self.words.put, lambda size: next(self.requests).value)

    def begin(self) -> None:
        self.requests = self.calls.get()

    def end(self) -> None:
        self.words.put(None)

    def acknowledge_all(self, requests: Iterator[Any], context: Any) -> Iterator[Any]:
        self.calls.put(requests)
        return (Message(value=word) for word in iter(self.words.get, None))


def handlers(orders: Any, channel: Any) -> dict[str, Any]:
    """What is called at the server, by name."""
    coding = {"request_deserializer": Message.FromString, "response_serializer": Message.SerializeToString}
    if orders["workload"] == "throughput":
        return {"Stream": grpc.stream_stream_rpc_method_handler(channel.acknowledge_all, **coding)}
    return {
        "Call": grpc.unary_unary_rpc_method_handler(channel.answer, **coding),
        "Stream": grpc.stream_stream_rpc_method_handler(channel.answer_all, **coding),
    }


def serve(orders: Any) -> None:
    channel = Drain() if orders["workload"] == "throughput" else Answers()
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=1))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers(orders, channel)),))
    if orders["mechanism"] == "grpc-unary-tcp":
        address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    else:
        address = "unix:" + os.path.join(orders["directory"], f"{orders['number']}.grpc")
        server.add_insecure_port(address)
    server.start()
    say({"ticket": list(address.encode())})
    try:
        channel.begin()
        phases(orders, channel)
    finally:
        channel.end()
        # With a grace, so that a client that is still there is told, and does not take it for a failure.
        server.stop(0.2).wait()


def take_part(orders: Any) -> bool:
    """The whole trial: a server has threads that end with it."""
    if orders["role"] == "server":
        serve(orders)
        return True
    # A proxy that the environment names is for other hosts.
    channel = grpc.insecure_channel(ticket().decode(), [("grpc.enable_http_proxy", 0)])
    grpc.channel_ready_future(channel).result()
    phases(orders, (stream if orders["mechanism"] == "grpc-stream-unix" else call)(channel))
    channel.close()
    return True


run(
    "grpc",
    {
        "grpc-unary-unix": (None, ["latency", "transfer"]),
        "grpc-unary-tcp": (None, ["latency", "transfer"]),
        "grpc-stream-unix": None,
    },
    library=f"grpcio {grpc.__version__}, protobuf {google.protobuf.__version__}",
    own=take_part,
)

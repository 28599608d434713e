"""Codecs: what makes bytes of a message where a program sends objects, and an object of them again. The object is a
mapping of a word, `kind`, and bytes, `data`; in JSON, which has no bytes, those are base64."""

import base64
import importlib.util
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

# What makes bytes of the bytes of a message, and the reverse.
Codec = tuple[Callable[[bytes], bytes], Callable[[bytes], bytes]]
KIND = "message"


def json_codec() -> Codec:
    def encode(data: bytes) -> bytes:
        return json.dumps({"kind": KIND, "data": base64.b64encode(data).decode()}).encode()

    return encode, lambda body: base64.b64decode(json.loads(body)["data"])


def pickle_codec() -> Codec:
    def encode(data: bytes) -> bytes:
        return pickle.dumps({"kind": KIND, "data": data}, pickle.HIGHEST_PROTOCOL)

    return encode, lambda body: pickle.loads(body)["data"]


def msgpack_codec() -> Codec:
    import msgpack

    return lambda data: msgpack.packb({"kind": KIND, "data": data}), lambda body: msgpack.unpackb(body)["data"]


def protobuf_codec() -> Codec:
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="message.proto", syntax="proto3")
    message = file.message_type.add(name="Message")
    optional = field.LABEL_OPTIONAL
    message.field.add(name="kind", number=1, type=field.TYPE_STRING, label=optional)
    message.field.add(name="data", number=2, type=field.TYPE_BYTES, label=optional)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    kind = message_factory.GetMessageClass(pool.FindMessageTypeByName("Message"))
    return lambda data: kind(kind=KIND, data=data).SerializeToString(), lambda body: kind.FromString(body).data


def capnp_codec() -> Codec:
    import capnp

    kind = capnp.load(str(Path(__file__).with_name("message.capnp"))).Message

    def decode(body: bytes) -> bytes:
        with kind.from_bytes(body) as message:
            return bytes(message.data)

    return lambda data: kind.new_message(kind=KIND, data=data).to_bytes(), decode


# By name: what makes one, and the module that it needs.
CODECS: dict[str, tuple[Callable[[], Codec], str]] = {
    "json": (json_codec, "json"),
    "pickle": (pickle_codec, "pickle"),
    "msgpack": (msgpack_codec, "msgpack"),
    "protobuf": (protobuf_codec, "google.protobuf"),
    "capnp": (capnp_codec, "capnp"),
}


def available() -> list[str]:
    """The codecs whose modules are installed."""
    return [name for name, (_, module) in CODECS.items() if is_installed(module)]


def is_installed(module: str) -> bool:
    try:
        found: Any = importlib.util.find_spec(module)
    except ModuleNotFoundError:
        # The package that the module is in.
        return False
    return found is not None

"""ONNX files as protobuf's wire format, without any package.

Only the fields that a descriptor needs are known. Whatever else is in a file is refused, since what
one reader skips another may act upon.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from hamflow.descriptors.graph import OPERATIONS, Node, Value

T = TypeVar("T")

OWN_DOMAINS = ("", "ai.onnx")
"""How ONNX calls the operations that it defines itself."""

# Element types by their number in ONNX.
_TYPES = {1: np.float32, 2: np.uint8, 3: np.int8, 6: np.int32, 7: np.int64}
# Types of settings by their number in ONNX, and the field that has the value.
_KINDS = {1: "f", 2: "i", 3: "s", 7: "ints"}
_INT64_SIGN = 2**63


class _Field(NamedTuple):
    name: str
    wire: int  # protobuf's type: 0 a whole number, 2 a length and bytes, 5 four bytes
    many: bool = False


# The fields that a file may have, by message and number.
_MODEL = {
    1: _Field("ir_version", 0),
    2: _Field("producer_name", 2),
    3: _Field("producer_version", 2),
    7: _Field("graph", 2),
    8: _Field("opset_import", 2, many=True),
    14: _Field("metadata_props", 2, many=True),
}
_OPSET = {1: _Field("domain", 2), 2: _Field("version", 0)}
_ENTRY = {1: _Field("key", 2), 2: _Field("value", 2)}
_GRAPH = {
    1: _Field("node", 2, many=True),
    2: _Field("name", 2),
    5: _Field("initializer", 2, many=True),
    11: _Field("input", 2, many=True),
    12: _Field("output", 2, many=True),
}
_NODE = {
    1: _Field("input", 2, many=True),
    2: _Field("output", 2, many=True),
    3: _Field("name", 2),
    4: _Field("op_type", 2),
    5: _Field("attribute", 2, many=True),
    7: _Field("domain", 2),
}
_ATTRIBUTE = {
    1: _Field("name", 2),
    2: _Field("f", 5),
    3: _Field("i", 0),
    4: _Field("s", 2),
    8: _Field("ints", 0, many=True),
    20: _Field("type", 0),
}
_TENSOR = {
    1: _Field("dims", 0, many=True),
    2: _Field("data_type", 0),
    8: _Field("name", 2),
    9: _Field("raw_data", 2),
}
_VALUE_INFO = {1: _Field("name", 2), 2: _Field("type", 2)}

# Why some others are refused, by message and number.
_REASONS = {
    ("model", 20): "holds instructions for training",
    ("model", 25): "defines functions of its own",
    ("graph", 15): "holds sparse weights",
    ("attribute", 6): "holds a graph within its graph",
    ("attribute", 11): "holds a graph within its graph",
    ("tensor", 13): "refers to data in other files",
    ("tensor", 14): "refers to data in other files",
}


class Refused(Exception):  # noqa: N818  (it reads as a sentence)
    """Why a file is refused, as the predicate of a sentence."""


class OnnxModel(NamedTuple):
    """The outermost message; the graph within it waits to be parsed."""

    ir_version: int
    opsets: list[tuple[str, int]]
    metadata: dict[str, str]
    graph: bytes


class OnnxGraph(NamedTuple):
    """Names of inputs and outputs, nodes by the name of their result, tensors by their own."""

    inputs: list[str]
    outputs: list[str]
    nodes: dict[str, Node]
    tensors: dict[str, NDArray[Any]]


def parse_model(data: bytes) -> OnnxModel:
    """Return what a file says about itself, or raise `Refused`."""
    model = _message(data, _MODEL, "model")
    opsets = [_message(item, _OPSET, "opset") for item in model["opset_import"]]
    return OnnxModel(
        model.get("ir_version", 0),
        [(_text(opset.get("domain", b"")), opset.get("version", 0)) for opset in opsets],
        _unique(map(_entry, model["metadata_props"]), "says something twice in its metadata"),
        model.get("graph", b""),
    )


def parse_graph(data: bytes) -> OnnxGraph:
    """Return what a graph consists of, or raise `Refused`."""
    graph = _message(data, _GRAPH, "graph")
    return OnnxGraph(
        [_name(_message(item, _VALUE_INFO, "input")) for item in graph["input"]],
        [_name(_message(item, _VALUE_INFO, "output")) for item in graph["output"]],
        _unique(map(_node, graph["node"]), "computes something twice"),
        _unique(map(_tensor, graph["initializer"]), "holds some weights twice"),
    )


# --- protobuf's wire format ----------------------------------------------------------------------


def _message(data: bytes, fields: Mapping[int, _Field], what: str) -> dict[str, Any]:
    """Return the fields of a message; a field that may occur only once is not in a list."""
    found: dict[str, Any] = {field.name: [] for field in fields.values() if field.many}
    for number, wire, value in _walk(data):
        field = fields.get(number)
        if field is None:
            reason = _REASONS.get((what, number), f"has an unexpected field {number} in a {what}")
            raise Refused(reason)
        if field.many and field.wire == 0 and wire == 2:
            found[field.name].extend(_numbers(value))
        elif wire != field.wire:
            raise Refused(f"has a field {field.name} of another type")
        elif field.many:
            found[field.name].append(value)
        elif field.name in found:
            # Readers differ in what they make of it: the last one, or both together.
            raise Refused(f"has {field.name} twice in a {what}")
        else:
            found[field.name] = value
    return found


def _walk(data: bytes) -> Iterator[tuple[int, int, Any]]:
    """Generate number, wire type and value of each field."""
    place = 0
    while place < len(data):
        tag, place = _varint(data, place)
        number, wire = tag >> 3, tag & 7
        value: int | bytes
        if wire == 0:
            value, place = _varint(data, place)
            value = value - 2 * _INT64_SIGN if value >= _INT64_SIGN else value
        elif wire in (1, 2, 5):
            size = {1: 8, 5: 4}.get(wire, 0)
            if wire == 2:
                size, place = _varint(data, place)
            value = data[place : place + size]
            place += size
            if len(value) != size:
                raise Refused("ends in the middle of a field")
        else:
            raise Refused("is not in ONNX's format")
        yield number, wire, value


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = 0
    for index in range(10):
        if place + index >= len(data):
            raise Refused("ends in the middle of a number")
        byte = data[place + index]
        value |= (byte & 127) << (7 * index)
        if byte < 128:
            if value >= 2 * _INT64_SIGN:
                break
            return value, place + index + 1
    raise Refused("has a number of more than 64 bits")


def _numbers(data: bytes) -> Iterator[int]:
    place = 0
    while place < len(data):
        value, place = _varint(data, place)
        yield value - 2 * _INT64_SIGN if value >= _INT64_SIGN else value


# --- what the messages say -----------------------------------------------------------------------


def _unique(items: Iterable[tuple[str, T]], otherwise: str) -> dict[str, T]:
    found: dict[str, T] = {}
    for name, value in items:
        if name in found:
            raise Refused(otherwise)
        found[name] = value
    return found


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise Refused("has a name that is no text") from None


def _name(message: Mapping[str, Any]) -> str:
    return _text(message.get("name", b""))


def _entry(data: bytes) -> tuple[str, str]:
    entry = _message(data, _ENTRY, "entry")
    return _text(entry.get("key", b"")), _text(entry.get("value", b""))


def _node(data: bytes) -> tuple[str, Node]:
    node = _message(data, _NODE, "node")
    op = _text(node.get("op_type", b""))
    if _text(node.get("domain", b"")) not in OWN_DOMAINS:
        raise Refused(f"uses the operation {op[:40]!r}, which is not one of ONNX itself")
    if op not in OPERATIONS:
        raise Refused(f"uses the operation {op[:40]!r}")
    if len(node["output"]) != 1:
        raise Refused("has an operation with several results")
    settings = _unique(map(_attribute, node["attribute"]), "has a setting twice")
    return _text(node["output"][0]), Node(op, tuple(map(_text, node["input"])), settings)


def _attribute(data: bytes) -> tuple[str, Value]:
    attribute = _message(data, _ATTRIBUTE, "attribute")
    kind = _KINDS.get(attribute.get("type", 0))
    given = {key for key, value in attribute.items() if value != []} - {"name", "type"}
    if kind is None or given != {kind}:
        raise Refused("has a setting of another type")
    value: Any = attribute[kind]
    if kind == "f":
        value = struct.unpack("<f", value)[0]
    elif kind != "i":
        value = _text(value) if kind == "s" else tuple(value)
    return _name(attribute), value


def _tensor(data: bytes) -> tuple[str, NDArray[Any]]:
    tensor = _message(data, _TENSOR, "tensor")
    kind = _TYPES.get(tensor.get("data_type", 0))
    if kind is None:
        raise Refused("holds weights of another type")
    dtype = np.dtype(kind).newbyteorder("<")
    raw: bytes = tensor.get("raw_data", b"")
    count = 1
    for size in tensor["dims"]:
        count *= size if 0 < size <= len(raw) else 0
    if not raw or len(tensor["dims"]) > 4 or count * dtype.itemsize != len(raw):
        raise Refused("announces weights of another size than it holds")
    return _name(tensor), np.frombuffer(raw, dtype).reshape(tensor["dims"])

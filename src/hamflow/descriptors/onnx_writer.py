"""A writer of ONNX files for descriptor networks, which needs no package.

ONNX files are protobuf messages. The numbers of the fields are those of ``onnx.proto``, ONNX's own
definition of its format.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from hamflow.descriptors.graph import Graph, Node, Value

OPSET = 17
IR_VERSION = 8
"""Old enough for every onnxruntime from 1.17 on."""

# ONNX's numbers for the types of tensors.
_FLOAT = 1
_TYPES = {"float32": _FLOAT, "uint8": 2, "int8": 3, "int32": 6, "int64": 7}

Shape = Sequence[int | str]
"""Sizes of the axes of a tensor; a name stands for a size that is known at run time only."""


def write_model(
    graph: Graph,
    image: tuple[str, Shape],
    result: tuple[str, Shape],
    metadata: Mapping[str, str],
) -> bytes:
    """Return the content of an ONNX file: the same bytes for the same arguments.

    The graph has all tensors that its nodes read, except the image. `image` and `result` are the
    names and shapes of the input and the output, which are of type float32.
    """
    content = [
        *(_message(1, _node(name, node)) for name, node in graph.nodes.items()),
        _text(2, "descriptor"),
        *(_message(5, _tensor(name, value)) for name, value in graph.constants.items()),
        _message(11, _value_info(*image)),
        _message(12, _value_info(*result)),
    ]
    entries = (_text(1, key) + _text(2, value) for key, value in metadata.items())
    return b"".join(
        [
            _number(1, IR_VERSION),
            _text(2, "hamflow"),
            _message(7, b"".join(content)),
            _message(8, _text(1, "") + _number(2, OPSET)),
            *(_message(14, entry) for entry in entries),
        ]
    )


def _node(name: str, node: Node) -> bytes:
    return b"".join(
        [
            *(_text(1, source) for source in node.inputs),
            _text(2, name),
            _text(3, name),
            _text(4, node.op),
            *(_message(5, _attribute(*setting)) for setting in node.settings.items()),
        ]
    )


def _attribute(name: str, value: Value) -> bytes:
    if isinstance(value, int):
        content, kind = _number(3, value), 2
    elif isinstance(value, str):
        content, kind = _text(4, value), 3
    else:
        content, kind = b"".join(_number(8, item) for item in value), 7
    return _text(1, name) + content + _number(20, kind)


def _tensor(name: str, value: NDArray[np.generic]) -> bytes:
    dims = b"".join(_number(1, size) for size in value.shape)
    raw = value.astype(value.dtype.newbyteorder("<")).tobytes()
    return dims + _number(2, _TYPES[value.dtype.name]) + _text(8, name) + _message(9, raw)


def _value_info(name: str, shape: Shape) -> bytes:
    sizes = (_text(2, size) if isinstance(size, str) else _number(1, size) for size in shape)
    dimensions = b"".join(_message(1, size) for size in sizes)
    tensor = _number(1, _FLOAT) + _message(2, dimensions)
    return _text(1, name) + _message(2, _message(1, tensor))


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value % 2**64)


def _text(field: int, value: str) -> bytes:
    return _message(field, value.encode())


def _message(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    """Return a number in groups of seven bits, the lowest first; all but the last have bit 7."""
    groups = bytearray()
    while value > 127:
        groups.append(value & 127 | 128)
        value >>= 7
    groups.append(value)
    return bytes(groups)

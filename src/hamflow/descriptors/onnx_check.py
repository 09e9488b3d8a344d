"""What an ONNX file must look like before onnxruntime may see it.

ONNX can refer to other files, define functions, loop, and ask for any amount of memory. A
descriptor needs none of that: a file is accepted only if its graph is, node by node, the one that
`build_graph` makes of the architecture in its metadata (quantization may stand in between), with
weights of exactly the right shapes. The file is walked through as protobuf's wire format, where
every field that is not expected is refused, so this needs no package.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hamflow.descriptors._onnx_format import (
    OWN_DOMAINS,
    OnnxGraph,
    OnnxModel,
    Refused,
    parse_graph,
    parse_model,
)
from hamflow.descriptors.architecture import Architecture
from hamflow.descriptors.graph import IMAGE, IR_VERSION, OPSET, PHI, Graph, Node, build_graph
from hamflow.descriptors.weights import MAX_BYTES, parse_metadata, refuse_pickle
from hamflow.errors import FileError
from hamflow.io._reading import open_regular

_QUANTIZATION = ("QuantizeLinear", "DequantizeLinear")
_QUANTIZED = "_quantized"  # how the quantizer calls the whole numbers of a weight


class Checked(NamedTuple):
    """An ONNX file that may be run."""

    data: bytes
    architecture: Architecture
    metadata: dict[str, str]


def read_onnx(path: str | os.PathLike[str]) -> Checked:
    """Read an ONNX file and refuse it unless it is a descriptor network and nothing else.

    Parameters
    ----------
    path : str or os.PathLike
        A file that `build_model` or `quantize` made.

    Returns
    -------
    checked : Checked
        The bytes that were checked, to be run as they are.

    Raises
    ------
    FileError
        If the file is anything else.
    """
    with open_regular(path) as file:
        data = file.read(MAX_BYTES + 1)
    return check_onnx(os.fspath(path), data)


def check_onnx(name: str, data: bytes) -> Checked:
    """Do what `read_onnx` does with the content of a file; `name` is for the messages."""
    refuse_pickle(name, data[:9])
    if len(data) > MAX_BYTES:
        raise FileError(
            f"{name}: has more than the {MAX_BYTES} bytes that Hamflow reads; it cannot be a "
            "descriptor."
        )
    try:
        model = parse_model(data)
        architecture = parse_metadata(name, model.metadata)
        _check_versions(model)
        _check_graph(parse_graph(model.graph), architecture)
    except Refused as reason:
        raise FileError(
            f"{name}: {reason}, as no descriptor of Hamflow does; use a file that "
            "'hamflow export' wrote."
        ) from None
    return Checked(data, architecture, model.metadata)


def _check_versions(model: OnnxModel) -> None:
    if model.ir_version != IR_VERSION:
        raise Refused("has another version of ONNX's format")
    if any(domain not in OWN_DOMAINS for domain, _ in model.opsets):
        raise Refused("uses operations beyond those of ONNX itself")
    if [version for _, version in model.opsets] != [OPSET]:
        raise Refused("uses another version of ONNX's operations")


def _check_graph(graph: OnnxGraph, architecture: Architecture) -> None:
    """Compare with the graph that the architecture makes, looking through quantization."""
    if graph.inputs != [IMAGE] or graph.outputs != [PHI]:
        raise Refused(f"has other inputs or outputs than {IMAGE} and {PHI}")
    expected = build_graph(architecture)
    around = {name: node for name, node in graph.nodes.items() if node.op in _QUANTIZATION}

    def resolve(name: str) -> str:
        """Return what a name stands for, but for rounding."""
        for _ in range(len(around) + 1):
            if name not in around:
                return name.removesuffix(_QUANTIZED) if name in graph.tensors else name
            name = around[name].inputs[0]
        raise Refused("goes round in circles")

    numbers = _check_quantization(around, graph.tensors)
    found = {
        name: Node(node.op, tuple(map(resolve, node.inputs)), node.settings)
        for name, node in graph.nodes.items()
        if name not in around
    }
    if found != {name: _rounded(node) for name, node in expected.nodes.items()}:
        raise Refused("computes something else than its network")
    kept = {name: values for name, values in graph.tensors.items() if name not in numbers}
    _check_tensors(kept, expected, architecture)


def _check_quantization(
    around: Mapping[str, Node], tensors: Mapping[str, NDArray[Any]]
) -> set[str]:
    """Check the numbers by which is quantized, and return their names."""
    numbers: set[str] = set()
    for node in around.values():
        if len(node.inputs) != 3 or not set(node.settings) <= {"axis"}:
            raise Refused("quantizes in an unexpected way")
        scale, zero = (tensors.get(name) for name in node.inputs[1:])
        if scale is None or zero is None:
            raise Refused("quantizes by numbers that it computes")
        # One for all, or for weights one for each channel.
        weight = tensors.get(node.inputs[0])
        sizes = {1} if weight is None else {1, len(weight) if weight.ndim else 1}
        if (
            not {scale.size, zero.size} <= sizes
            or max(scale.ndim, zero.ndim) > 1
            or scale.dtype != np.float32
            or zero.dtype not in (np.uint8, np.int8, np.int32)
            or not (np.isfinite(scale) & (scale > 0)).all()
        ):
            raise Refused("quantizes by impossible numbers")
        numbers |= set(node.inputs[1:])
    return numbers


def _check_tensors(
    tensors: Mapping[str, NDArray[Any]], expected: Graph, architecture: Architecture
) -> None:
    """Compare names, types and shapes of weights, and the values of constants."""
    shapes = architecture.parameters()
    names = [name.removesuffix(_QUANTIZED) for name in tensors]
    if sorted(names) != sorted([*shapes, *expected.constants]):
        raise Refused("holds other weights than its network has")
    for (name, values), weight in zip(tensors.items(), names, strict=True):
        if name in expected.constants:
            constant = expected.constants[name]
            fine = values.dtype == constant.dtype and np.array_equal(values, constant)
        else:
            fine = values.shape == shapes.get(weight) and values.dtype == _type_of(name)
        if not fine:
            raise Refused(f"holds something unexpected as {name[:40]!r}")
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            raise Refused(f"holds values that are not finite as {name[:40]!r}")


def _type_of(weight: str) -> type[Any]:
    if not weight.endswith(_QUANTIZED):
        return np.float32
    return np.int32 if ".bias" in weight else np.int8


def _rounded(node: Node) -> Node:
    """Return a node as a file has it: settings in single precision."""
    settings = {
        name: float(np.float32(value)) if isinstance(value, float) else value
        for name, value in node.settings.items()
    }
    return Node(node.op, node.inputs, settings)

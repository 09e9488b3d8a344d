"""The descriptor network as a graph of ONNX operations, built from its architecture."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hamflow.descriptors.architecture import Architecture

IMAGE = "image"
"""Name of the input: 1×3×H×W, red, green, blue in 0..1."""
PHI = "phi"
"""Name of the output: 1×H×W×m."""
LOCAL_RADIUS = 12
"""The coarse network compares each pixel with the square of this radius around it."""
Value = int | str | tuple[int, ...]
"""The type of a setting of an operation."""


@dataclass(frozen=True)
class Node:
    """One operation: its name in ONNX, the names of its inputs, and its settings."""

    op: str
    inputs: tuple[str, ...]
    settings: Mapping[str, Value]


@dataclass(frozen=True)
class Graph:
    """Nodes in the order of computation, by the name of their result, and constant tensors."""

    nodes: dict[str, Node] = field(default_factory=dict)
    constants: dict[str, NDArray[Any]] = field(default_factory=dict)

    def add(self, op: str, *inputs: str, name: str = "", **settings: Value) -> str:
        """Append a node and return the name of its result."""
        name = name or f"{op.lower()}.{len(self.nodes)}"
        self.nodes[name] = Node(op, inputs, settings)
        return name

    def constant(self, name: str, values: object, dtype: type[Any] = np.float32) -> str:
        """Add a constant tensor and return its name."""
        self.constants[name] = np.array(values, dtype)
        return name


def build_graph(architecture: Architecture) -> Graph:
    """Return the graph of a network; its weights are inputs with the names of the architecture."""
    graph = Graph()
    if architecture.kind == "coarse":
        phi = _coarse(graph, architecture, _contrasts(graph))
    else:
        layers = {"paper": _paper, "context": _context}[architecture.kind]
        phi = layers(graph, architecture, _normalized(graph))
    graph.add("Transpose", phi, name=PHI, perm=(0, 2, 3, 1))
    return graph


def _normalized(graph: Graph) -> str:
    """Scale the image to -2..2."""
    centered = graph.add("Sub", IMAGE, graph.constant("gray", 0.5))
    return graph.add("Mul", centered, graph.constant("gain", 4))


def _paper(graph: Graph, architecture: Architecture, x: str) -> str:
    x = _padded(graph, x, (architecture.layers + 1) // 2)
    for layer in architecture.convolutions():
        x = graph.add("Tanh", _convolution(graph, x, layer))
    return x


def _context(graph: Graph, architecture: Architecture, x: str) -> str:
    near = _padded(graph, x, (architecture.layers + 1) // 2)
    for layer in range(architecture.layers):
        near = graph.add("Tanh", _convolution(graph, near, f"local.{layer}"))
    seen = []
    for number, scale in enumerate(architecture.scales):
        # One row and one column more, for the 2×2 layer.
        radius = scale * (architecture.taps // 2)
        if scale == 1:
            source = _padded(graph, x, radius, radius + 1)
        else:
            wider = _padded(graph, x, radius + 1, radius + 2)
            source = graph.add("AveragePool", wider, kernel_shape=(3, 3))
        seen.append(_convolution(graph, source, f"taps.{number}", dilations=(scale, scale)))
    far = seen[0]
    for other in seen[1:]:
        far = graph.add("Add", far, other)
    far = graph.add("Tanh", far)
    for layer in range(3):
        far = graph.add("Tanh", _convolution(graph, far, f"wide.{layer}"))
    return graph.add("Concat", near, far, axis=1)


def _contrasts(graph: Graph) -> str:
    """Return 4 channels: the colors relative to the whole image, and gray to what is around.

    Fog, darkness and exposure change both far less than the colors themselves.
    """
    least, tiny = graph.constant("least", 0.02), graph.constant("tiny", 1e-4)
    centered = graph.add("Sub", IMAGE, graph.add("ReduceMean", IMAGE, axes=(1, 2, 3)))
    variance = graph.add("ReduceMean", graph.add("Mul", centered, centered), axes=(1, 2, 3))
    colors = graph.add("Div", centered, graph.add("Add", graph.add("Sqrt", variance), least))

    gray = graph.add("ReduceMean", IMAGE, axes=(1,))
    wide = _padded(graph, gray, LOCAL_RADIUS)
    mean = _box(graph, wide)
    square = _box(graph, graph.add("Mul", wide, wide))
    spread = graph.add("Relu", graph.add("Sub", square, graph.add("Mul", mean, mean)))
    deviation = graph.add("Sqrt", graph.add("Add", spread, tiny))
    local = graph.add("Div", graph.add("Sub", gray, mean), deviation)
    limits = graph.constant("lowest", -4), graph.constant("highest", 4)
    clipped = graph.add("Clip", local, *limits)
    local = graph.add("Mul", clipped, graph.constant("local.gain", 0.7))
    return graph.add("Concat", colors, local, axis=1)


def _box(graph: Graph, x: str) -> str:
    side = 2 * LOCAL_RADIUS + 1
    return graph.add(
        "AveragePool", graph.add("AveragePool", x, kernel_shape=(side, 1)), kernel_shape=(1, side)
    )


def _coarse(graph: Graph, architecture: Architecture, x: str) -> str:
    x = _halved(graph, x, "half", 2)
    near = _block(graph, _halved(graph, x, "quarter", 1), "near", 1)
    far = _halved(graph, near, "eighth", 1)
    for number, dilation in enumerate(architecture.dilations):
        far = _block(graph, far, f"blocks.{number}", dilation)
    twice = graph.constant("twice", (1, 1, 2, 2))
    far = graph.add("Resize", _convolution(graph, far, "far"), "", twice, mode="linear")
    near = _convolution(graph, near, "near.last", pads=(1, 1, 1, 1))
    both = graph.add("Relu", graph.add("Add", near, far))
    return graph.add("Tanh", _convolution(graph, both, "head"))


def _halved(graph: Graph, x: str, layer: str, pad: int) -> str:
    return graph.add("Relu", _convolution(graph, x, layer, strides=(2, 2), pads=(pad,) * 4))


def _block(graph: Graph, x: str, name: str, dilation: int) -> str:
    apart = {"dilations": (dilation, dilation), "pads": (dilation,) * 4}
    inner = graph.add("Relu", _convolution(graph, x, f"{name}.first", **apart))
    outer = _convolution(graph, inner, f"{name}.second", pads=(1, 1, 1, 1))
    return graph.add("Relu", graph.add("Add", x, outer))


def _convolution(graph: Graph, x: str, layer: str, **settings: Value) -> str:
    return graph.add("Conv", x, f"{layer}.weight", f"{layer}.bias", name=layer, **settings)


def _padded(graph: Graph, x: str, by: int, after: int | None = None) -> str:
    end = by if after is None else after
    name = f"border.{by}" if end == by else f"border.{by}.{end}"
    pads = graph.constant(name, (0, 0, by, by, 0, 0, end, end), np.int64)
    return graph.add("Pad", x, pads, mode="edge")

"""The 8-bit ONNX file of a network, derived from its weights and the scales of its activations.

Hamflow itself computes 8 bits by `hamflow.descriptors.integer`; this is for other programs.

The first layer stays in floating point: it computes small differences of large numbers, takes
hardly any time, and in 8 bits would flip more bits than all other layers together. Weights have 7
bits, because sums of two products of 8 bits overflow on processors without VNNI. Half a rounding
step is added to the last layer, so that rounding does not change the signs, which are the bits.

A real number x is stored as the whole number ``round(x / scale) + zero_point``. For weights the
scale of each output channel follows from its largest weight; for activations, scale and zero point
were chosen from images (`hamflow.descriptors.quantize`) and are stored beside the weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hamflow.descriptors.architecture import Architecture
from hamflow.descriptors.graph import Graph, build_graph
from hamflow.errors import InputError

_LARGEST = 64  # whole number of a weight
_SMALLEST = np.float32(1e-20)  # scale of weights; products of smaller ones lose precision
_RANGE = (1e-6, 1e6)  # of the scales of activations


class Scales(NamedTuple):
    """How activations become 8-bit numbers, one entry for each of `quantized_results`."""

    scale: NDArray[np.float32]
    zero_point: NDArray[np.uint8]

    def check(self, architecture: Architecture) -> None:
        """Raise an InputError unless these are the scales of such a network."""
        count = len(quantized_results(build_graph(architecture)))
        expected = {"scale": np.dtype(np.float32), "zero_point": np.dtype(np.uint8)}
        for name, dtype in expected.items():
            value: NDArray[Any] = getattr(self, name)
            if value.dtype != dtype or value.shape != (count,):
                raise InputError(f"int8.{name} must be an array of {count} {dtype} numbers.")
        low, high = _RANGE
        if not ((self.scale >= low) & (self.scale <= high)).all():
            raise InputError(f"int8.scale must have values from {low:g} to {high:g}.")
        if architecture.kind == "coarse" and self.zero_point.any():
            raise InputError("int8.zero_point of a coarse network must be 0.")


def quantized_layers(graph: Graph) -> list[str]:
    """Return the layers that are computed in 8 bits: those whose input comes from another layer."""
    return [
        name
        for name, node in graph.nodes.items()
        if node.op == "Conv" and graph.nodes[node.inputs[0]].op == "Tanh"
    ]


def quantized_results(graph: Graph) -> list[str]:
    """Return the results that are rounded to 8 bits: inputs and outputs of these layers.

    In a coarse network these are the positive parts that a layer reads.
    """
    read = {node.inputs[0] for node in graph.nodes.values() if node.op == "Conv"}
    if positive := [n for n, node in graph.nodes.items() if node.op == "Relu" and n in read]:
        return positive
    layers = quantized_layers(graph)
    rounded = {*layers, *(graph.nodes[layer].inputs[0] for layer in layers)}
    return [name for name in graph.nodes if name in rounded]


def last_layers(graph: Graph) -> set[str]:
    """Return the layers whose output no other layer reads."""
    read = {graph.nodes[layer].inputs[0] for layer in quantized_layers(graph)}
    ends = (node for name, node in graph.nodes.items() if node.op == "Tanh" and name not in read)
    return {node.inputs[0] for node in ends}


def int8_graph(
    architecture: Architecture, weights: Mapping[str, NDArray[np.float32]], scales: Scales
) -> Graph:
    """Return the graph of a network in 8-bit arithmetic, with all its weights.

    It is written in floating point with pairs of QuantizeLinear and DequantizeLinear (QDQ), from
    which onnxruntime makes the 8-bit operations.
    """
    source = build_graph(architecture)
    layers, last = set(quantized_layers(source)), last_layers(source)
    steps = dict(zip(quantized_results(source), zip(*scales, strict=True), strict=True))
    graph = Graph(constants=dict(source.constants))
    dequantized: dict[str, str] = {}
    for name, node in source.nodes.items():
        inputs = [dequantized.get(read, read) for read in node.inputs]
        if name in layers:
            numbers = weights[inputs[1]], weights[inputs[2]]
            half_step = steps[name][0] / 2 if name in last else np.float32(0)
            inputs[1:] = _layer(graph, name, numbers, steps[node.inputs[0]][0], half_step)
        elif node.op == "Conv":
            graph.constants.update({read: weights[read] for read in inputs[1:]})
        graph.add(node.op, *inputs, name=name, **node.settings)
        if name in steps:
            scale, zero_point = steps[name]
            by = (
                graph.constant(f"{name}.scale", scale),
                graph.constant(f"{name}.zero_point", zero_point, np.uint8),
            )
            rounded = graph.add("QuantizeLinear", name, *by, name=f"{name}.quantized")
            dequantized[name] = graph.add("DequantizeLinear", rounded, *by, name=f"{name}.rounded")
    return graph


def _layer(
    graph: Graph,
    layer: str,
    numbers: tuple[NDArray[np.float32], NDArray[np.float32]],
    input_scale: np.float32,
    half_step: np.float32,
) -> list[str]:
    """Add the weight and the bias of a layer in whole numbers; return the names to read."""
    weight, bias = numbers
    largest = abs(weight).reshape(len(weight), -1).max(axis=1)
    scale = largest / np.float32(_LARGEST)
    scale[scale < _SMALLEST] = 1  # a channel of zeros
    whole_weight = np.rint(weight / scale[:, None, None, None]).astype(np.int8)
    # The bias has the scale of the products, so that it can be added to their sums.
    product = input_scale * scale
    whole_bias = np.rint(bias.astype(np.float64) / product) + np.rint(half_step / product)
    limits = np.iinfo(np.int32)
    return [
        _dequantized(graph, f"{layer}.{kind}", values, by)
        for kind, values, by in (
            ("weight", whole_weight, scale),
            ("bias", np.clip(whole_bias, limits.min, limits.max).astype(np.int32), product),
        )
    ]


def _dequantized(
    graph: Graph, name: str, values: NDArray[np.signedinteger], scale: NDArray[np.float32]
) -> str:
    inputs = (
        graph.constant(f"{name}.quantized", values, values.dtype.type),
        graph.constant(f"{name}.scale", scale),
        graph.constant(f"{name}.zero_point", np.zeros(len(scale)), values.dtype.type),
    )
    return graph.add("DequantizeLinear", *inputs, name=f"{name}.rounded", axis=0)

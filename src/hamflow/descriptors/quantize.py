"""Descriptor networks in 8-bit arithmetic: quicker, at the price of some flipped bits.

The first layer stays in floating point: it sees small differences of large numbers, costs next to
nothing, and in 8 bits can flip more bits than all others together. Weights have 7 bits, because
sums of two products of 8 bits overflow on processors without VNNI. What goes into a tanh is cut at
±3, where tanh is 1 but for half a step, which makes the steps smaller. And half a step is added to
the last layer, so that rounding leaves the signs, which are the bits, as they were.
"""

from __future__ import annotations

import contextlib
import io
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hamflow.descriptors.graph import IMAGE, Graph, build_graph, import_onnx, with_metadata
from hamflow.descriptors.model import Model, checked_image
from hamflow.descriptors.onnx_check import Checked, check_onnx
from hamflow.descriptors.tiles import network_input
from hamflow.descriptors.weights import extra_metadata, file_metadata
from hamflow.errors import InputError

PRECISION = "precision"
"""Entry of the metadata that says int8."""

_TANH_RANGE = np.float32(3)
_PERCENTILE = 99.99  # of the values that are not cut; single ones may be far out
_CROP = (160, 256)  # of the images: the quantizer keeps all layers of all images in memory


def quantize(checked: Checked, images: Sequence[ArrayLike]) -> Checked:
    """Return a network in 8-bit arithmetic (QDQ), with steps that suit some images.

    Parameters
    ----------
    checked : Checked
        The network in floating point, from `read_onnx` or `check_onnx`.
    images : sequence of (H, W) or (H, W, 3) array_like
        A few typical images; of large ones only the middle is looked at.

    Returns
    -------
    quantized : Checked
        The network with 8-bit weights and activations.

    Raises
    ------
    InputError
        If there is no image, the network is quantized already, or the package onnx is missing.
    """
    if checked.metadata.get(PRECISION) is not None:
        raise InputError("The network is quantized already; start from the one in floating point.")
    if not len(images):
        raise InputError("images must hold at least one image to choose the steps by.")
    onnx = import_onnx()
    model = _quantized(onnx, checked, images)
    _shift_last_layers(onnx, model, build_graph(checked.architecture))
    # As the check wants it: no derived shapes, and all numbers in one form.
    del model.graph.value_info[:]
    for tensor in model.graph.initializer:
        tensor.CopyFrom(_tensor(onnx, _values(onnx, tensor), tensor.name))
    extra = extra_metadata(checked.metadata) | {PRECISION: "int8"}
    data = with_metadata(model, file_metadata(checked.architecture, extra))
    return check_onnx("the quantized network", data)


def flipped_share(model: Model, other: Model, images: Sequence[ArrayLike]) -> float:
    """Return the share of components whose signs differ between two models."""
    different = total = 0
    for image in images:
        signs = model.describe(image) > 0
        different += int((signs != (other.describe(image) > 0)).sum())
        total += signs.size
    return different / total


def _quantized(onnx: Any, checked: Checked, images: Sequence[ArrayLike]) -> Any:
    """Return what onnxruntime's quantizer makes of the network."""
    from onnxruntime import quantization  # noqa: PLC0415  (heavy, and needs onnx)

    class Images(quantization.CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            self._inputs = _inputs(images)

        def get_next(self) -> dict[str, NDArray[np.float32]] | None:
            return next(self._inputs, None)

    graph = build_graph(checked.architecture)
    depth, last = _depths(graph), _last_layers(graph)
    floating = [name for name in graph.nodes if depth[name] < 2 or _follows(graph, name, last)]
    before_tanh = {node.inputs[0] for node in graph.nodes.values() if node.op == "Tanh"}
    cut = [name for name in graph.nodes if name in before_tanh and depth[name] >= 2]
    model = onnx.load_from_string(checked.data)
    # A mark without which the quantizer recommends a preparation that does nothing here.
    model.metadata_props.add(key="onnx.quant.pre_process", value="onnxruntime.quant")
    with tempfile.TemporaryDirectory(prefix="hamflow-") as folder:
        file = Path(folder) / "quantized.onnx"
        # The quantizer prints how it gets on.
        with contextlib.redirect_stdout(io.StringIO()):
            quantization.quantize_static(
                model,
                file,
                Images(),
                quant_format=quantization.QuantFormat.QDQ,
                per_channel=True,
                reduce_range=True,
                activation_type=quantization.QuantType.QUInt8,
                weight_type=quantization.QuantType.QInt8,
                nodes_to_exclude=floating,
                calibrate_method=quantization.CalibrationMethod.Percentile,
                extra_options={
                    "CalibPercentile": _PERCENTILE,
                    "TensorQuantOverrides": {
                        name: [{"rmin": -_TANH_RANGE, "rmax": _TANH_RANGE}] for name in cut
                    },
                },
            )
        return onnx.load(file)


def _inputs(images: Sequence[ArrayLike]) -> Iterator[dict[str, NDArray[np.float32]]]:
    for image in images:
        array = checked_image(image)
        middle = [
            slice(start := max(0, size - most) // 2, start + most)
            for size, most in zip(array.shape, _CROP, strict=False)
        ]
        yield {IMAGE: network_input(array[tuple(middle)])}


def _shift_last_layers(onnx: Any, model: Any, graph: Graph) -> None:
    """Add half a step to the last layers, so that rounding to whole steps keeps every sign."""
    tensors = {tensor.name: tensor for tensor in model.graph.initializer}
    for layer in _last_layers(graph):
        bias = tensors[f"{layer}.bias_quantized"]
        step = _values(onnx, tensors[f"{layer}_scale"])
        unit = _values(onnx, tensors[f"{layer}.bias_quantized_scale"])
        shifted = _values(onnx, bias) + np.rint(step / 2 / unit).astype(np.int32)
        bias.CopyFrom(_tensor(onnx, shifted, bias.name))


def _depths(graph: Graph) -> dict[str, int]:
    """Return how many layers have worked on each result."""
    depths: dict[str, int] = {}
    for name, node in graph.nodes.items():
        before = max((depths.get(source, 0) for source in node.inputs), default=0)
        depths[name] = before + (node.op == "Conv")
    return depths


def _last_layers(graph: Graph) -> list[str]:
    """Return the layers that no other layer comes after."""
    layers = [name for name, node in graph.nodes.items() if node.op == "Conv"]
    return [name for name in layers if not any(_follows(graph, other, [name]) for other in layers)]


def _follows(graph: Graph, name: str, layers: list[str]) -> bool:
    """Return whether a result is computed from those of some layers."""
    reached = set(layers)
    for other, node in graph.nodes.items():
        if not reached.isdisjoint(node.inputs):
            reached.add(other)
    return name in reached and name not in layers


def _values(onnx: Any, tensor: Any) -> NDArray[Any]:
    values: NDArray[Any] = onnx.numpy_helper.to_array(tensor)
    return values


def _tensor(onnx: Any, values: NDArray[Any], name: str) -> Any:
    return onnx.numpy_helper.from_array(values, name)

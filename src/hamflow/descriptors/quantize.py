"""Scales of a network's activations in 8 bits, chosen such that they suit some images.

Those of a coarse network are needed for its 8-bit variant, and follow from the largest activations.
Those of the others are only needed for an 8-bit ONNX file.
The input of a tanh is clipped at ±3, where tanh differs from ±1 by half a rounding step; the ranges
of all other activations are measured. This needs the package onnx, which onnxruntime's quantizer
uses; everything else follows from the weights (`hamflow.descriptors.int8`).
"""

from __future__ import annotations

import contextlib
import io
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hamflow._check import as_intensities
from hamflow.descriptors.graph import IMAGE, build_graph
from hamflow.descriptors.int8 import Scales, quantized_layers, quantized_results
from hamflow.descriptors.onnx_writer import write_model
from hamflow.descriptors.session import Runner
from hamflow.descriptors.tiles import network_input
from hamflow.descriptors.weights import PRECISION, Network
from hamflow.errors import InputError

_TANH_RANGE = np.float32(3)
_PERCENTILE = 99.99  # of the other activations: single values may be far out
_CROP = (160, 256)  # of the images: the quantizer keeps all layers of all images in memory


def quantize(network: Network, images: Sequence[ArrayLike]) -> Network:
    """Return the network with scales; its default variant becomes the one in 8 bits.

    Parameters
    ----------
    network : Network
        The network; existing scales are replaced.
    images : sequence of (H, W) or (H, W, 3) array_like
        A few typical images, from which the scales are chosen; of large images only the middle is
        used.
    """
    if not len(images):
        raise InputError("images must contain at least one image to choose the scales from.")
    names = quantized_results(build_graph(network.architecture))
    if network.architecture.kind == "coarse":
        scales = _largest_values(network, names, images)
    else:
        found = _quantizer_tensors(network, images)
        scales = Scales(
            np.array([found[f"{name}_scale"] for name in names], np.float32),
            np.array([found[f"{name}_zero_point"] for name in names], np.uint8),
        )
    return replace(network, notes={**network.notes, PRECISION: "int8"}, scales=scales, digest="")


def _largest_values(network: Network, names: Sequence[str], images: Sequence[ArrayLike]) -> Scales:
    """Return scales by which the largest positive parts become 255."""
    graph = build_graph(network.architecture)
    graph.constants.update(network.weights)
    inputs = [item[IMAGE] for item in _inputs(images, multiple=2 * network.architecture.cell)]
    largest = []
    for name in names:
        data = write_model(graph, (IMAGE, (1, 3, "H", "W")), (name, (1, "C", "h", "w")), {})
        runner = Runner("", data, None, name)
        largest.append(max(float(runner.run(x).max()) for x in inputs))
    scale = np.maximum(largest, 1e-3) / 255
    return Scales(scale.astype(np.float32), np.zeros(len(names), np.uint8))


def _quantizer_tensors(network: Network, images: Sequence[ArrayLike]) -> dict[str, NDArray[Any]]:
    """Return all tensors of the network that onnxruntime's quantizer makes."""
    try:
        import onnx  # noqa: PLC0415  (an extra)
        from onnx import numpy_helper  # noqa: PLC0415
    except ImportError:
        raise InputError(
            "Making an 8-bit variant needs the package onnx: pip install 'hamflow[quantize]'."
        ) from None
    from onnxruntime import quantization  # noqa: PLC0415  (heavy, and needs onnx)

    class Images(quantization.CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            self._inputs = _inputs(images)

        def get_next(self) -> dict[str, NDArray[np.float32]] | None:
            return next(self._inputs, None)

    layers = quantized_layers(build_graph(network.architecture))
    model = onnx.load_from_string(network.onnx())
    # Without this mark, the quantizer recommends a preparation that would change nothing here.
    model.metadata_props.add(key="onnx.quant.pre_process", value="onnxruntime.quant")
    cut = {"rmin": -_TANH_RANGE, "rmax": _TANH_RANGE}
    with tempfile.TemporaryDirectory(prefix="hamflow-") as folder:
        file = Path(folder) / "quantized.onnx"
        # The quantizer prints its progress.
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
                nodes_to_quantize=layers,
                calibrate_method=quantization.CalibrationMethod.Percentile,
                extra_options={
                    "CalibPercentile": _PERCENTILE,
                    "TensorQuantOverrides": {layer: [cut] for layer in layers},
                },
            )
        tensors = onnx.load(file).graph.initializer
    return {tensor.name: numpy_helper.to_array(tensor) for tensor in tensors}


def _inputs(
    images: Sequence[ArrayLike], multiple: int = 1
) -> Iterator[dict[str, NDArray[np.float32]]]:
    for image in images:
        array = as_intensities(image)
        middle = [
            slice(start := max(0, size - most) // 2, start + min(size, most) // multiple * multiple)
            for size, most in zip(array.shape, _CROP, strict=False)
        ]
        yield {IMAGE: network_input(array[tuple(middle)])}

"""``hamflow export``: a descriptor network as an ONNX file."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Annotated

import numpy as np
import tyro
from numpy.typing import NDArray
from rich.console import Console

from hamflow.datasets import SyntheticConfig, SyntheticDataset, demo_scene
from hamflow.descriptors.model import PAIRS, NetworkModel, read_network
from hamflow.descriptors.onnx_check import Checked
from hamflow.errors import FileError, InputError
from hamflow.io._atomic import atomic_write, check_writable

_SCENES = 3  # of either kind, to choose the steps of 8-bit arithmetic by
_SEEN, _UNSEEN = 1000, 2000  # seeds: those scenes, and the one that tells how good the result is


def export(
    model: tyro.conf.Positional[str],
    output: Annotated[Path, tyro.conf.arg(aliases=["-o"])],
    *,
    int8: bool = False,
) -> None:
    """Write a descriptor network as an ONNX file, in floating point or in 8-bit arithmetic.

    Needs the package onnx: pip install 'hamflow[export]'. With --int8, the network runs on some
    rendered scenes to choose the steps of its numbers, and on another one to count how many bits
    come out different.

    Parameters
    ----------
    model
        The .safetensors file that 'hamflow train' wrote, an .onnx file, or the name of a model that
        comes with Hamflow.
    output
        Where to write the network (.onnx).
    int8
        Use 8-bit arithmetic: a fourth of the size, quicker, and a few bits in a hundred flip.
    """
    if output.suffix.lower() != ".onnx":
        raise FileError(f"{output}: is not an ONNX file by its name; let it end in .onnx.")
    check_writable(output)
    if os.path.realpath(model) == os.path.realpath(output):
        raise InputError(f"The model and the output are the same file, {output}; name two.")
    if model == PAIRS:
        raise InputError("The hand-crafted descriptor is no network; it needs no file.")
    network = read_network(model)
    result = _quantized(network) if int8 else network
    agreement = _agreement(network, result) if int8 else ""
    with atomic_write(output) as file:
        file.write(result.data)
    kind = network.architecture.kind
    Console(soft_wrap=True, markup=False).print(
        f"Wrote {output}: the {kind} network, {len(result.data)} bytes, "
        f"sha256 {hashlib.sha256(result.data).hexdigest()}.{agreement}",
        highlight=False,
    )


def calibration_images() -> list[NDArray[np.uint8]]:
    """Return rendered scenes that networks may be fitted to: never pictures of a benchmark."""
    height, width = 160, 256
    scenes = SyntheticDataset(SyntheticConfig(height, width), seed=_SEEN, size=_SCENES)
    plain = [demo_scene(height, width, seed=_SEEN + i).image0 for i in range(_SCENES)]
    return [*plain, *(scene.image0 for scene in scenes)]


def _quantized(network: Checked) -> Checked:
    from hamflow.descriptors.quantize import quantize  # noqa: PLC0415  (heavy)

    return quantize(network, calibration_images())


def _agreement(network: Checked, quantized: Checked) -> str:
    from hamflow.descriptors.quantize import flipped_share  # noqa: PLC0415

    models = [NetworkModel("", checked, None, None) for checked in (network, quantized)]
    share = flipped_share(models[0], models[1], [demo_scene(seed=_UNSEEN).image0])
    return (
        f" {1 - share:.2%} of the bits are those of the network in floating point, on a rendered "
        "scene."
    )

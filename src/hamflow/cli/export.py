"""``hamflow export``: a descriptor network as an ONNX file, or with an 8-bit variant."""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path
from typing import Annotated

import numpy as np
import tyro
from numpy.typing import NDArray
from rich.console import Console

from hamflow.datasets import SyntheticConfig, SyntheticDataset, demo_scene
from hamflow.descriptors.model import find_network
from hamflow.descriptors.network import NetworkDescriptor
from hamflow.descriptors.weights import PRECISION, Network, save_weights
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
    """Write a descriptor network as an ONNX file for other programs, or make its 8-bit variant.

    With --int8, a network without an 8-bit variant runs on some rendered scenes to choose the steps
    of its numbers (this needs the package onnx: pip install 'hamflow[quantize]'). On another scene
    is counted how many bits come out different.

    Parameters
    ----------
    model
        The .safetensors file that 'hamflow train' wrote, or the name of a model that comes with
        Hamflow.
    output
        Where to write the network: one variant as .onnx, or a .safetensors file, which holds the
        floating-point weights and, with --int8, the 8-bit variant beside them.
    int8
        Use 8-bit arithmetic: quicker, and about one bit in a hundred flips. A .safetensors file
        that was written so is used in 8-bit arithmetic wherever it is loaded.
    """
    if output.suffix.lower() not in (".onnx", ".safetensors"):
        raise FileError(f"{output}: must end in .onnx or .safetensors; rename it.")
    check_writable(output)
    if os.path.realpath(model) == os.path.realpath(output):
        raise InputError(f"The model and the output are the same file, {output}; name two.")
    network = find_network(model)
    if int8 and network.scales is None:
        from hamflow.descriptors.quantize import quantize  # noqa: PLC0415  (heavy)

        network = quantize(network, calibration_images())
    agreement = _agreement(network) if int8 else ""
    if output.suffix.lower() == ".onnx":
        with atomic_write(output) as file:
            file.write(network.onnx("int8" if int8 else "float"))
    else:
        notes = {key: value for key, value in network.notes.items() if key != PRECISION}
        notes |= {PRECISION: "int8"} if int8 else {}
        scales = network.scales if int8 else None
        save_weights(output, network.architecture, network.weights, notes, scales)
    data = output.read_bytes()
    Console(soft_wrap=True, markup=False).print(
        f"Wrote {output}: the {network.architecture.kind} network, {len(data)} bytes, "
        f"sha256 {sha256(data).hexdigest()}.{agreement}",
        highlight=False,
    )


def calibration_images() -> list[NDArray[np.uint8]]:
    """Return rendered scenes that networks may be fitted to: never pictures of a benchmark."""
    height, width = 160, 256
    scenes = SyntheticDataset(SyntheticConfig(height, width), seed=_SEEN, size=_SCENES)
    plain = [demo_scene(height, width, seed=_SEEN + i).image0 for i in range(_SCENES)]
    return [*plain, *(scene.image0 for scene in scenes)]


def _agreement(network: Network) -> str:
    from hamflow.descriptors.quantize import flipped_share  # noqa: PLC0415

    exact, small = (NetworkDescriptor("", network, variant) for variant in network.variants)
    share = flipped_share(exact, small, [demo_scene(seed=_UNSEEN).image0])
    return (
        f" {1 - share:.2%} of the bits are those of the network in floating point, on a rendered "
        "scene."
    )

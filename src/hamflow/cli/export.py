"""``hamflow export``: a descriptor network as an ONNX file or in 8-bit arithmetic."""

from __future__ import annotations

import os
from hashlib import sha256
from typing import Annotated

import numpy as np
import tyro
from numpy.typing import NDArray

from hamflow.cli._console import say
from hamflow.cli._options import OutputFile, Overwrite, check_new
from hamflow.datasets import SyntheticConfig, SyntheticDataset, demo_scene
from hamflow.descriptors.model import find_network
from hamflow.descriptors.network import NetworkDescriptor
from hamflow.descriptors.session import Runner
from hamflow.descriptors.tiles import network_input
from hamflow.descriptors.weights import PRECISION, Network, Variant, save_weights
from hamflow.errors import FileError, InputError
from hamflow.io._atomic import atomic_write, check_writable

_SCENES = 3  # scenes of each kind that the 8-bit variant is fitted to
_SEEN, _UNSEEN = 1000, 2000  # seeds of these scenes, and of the scene that it is tested on


def export(
    model: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="MODEL")],
    output: OutputFile,
    *,
    variant: Variant = "float",
    overwrite: Overwrite = False,
) -> None:
    """Write a descriptor network as an ONNX file for other programs, or quantize it to 8 bits.

    For example:

        hamflow export default -o default.onnx
        hamflow export default -o default8.onnx --variant int8

    For int8, a network that is not quantized yet is run on rendered scenes to find the range of its
    values (this needs the extra 'quantize'). The command then prints how many descriptor bits stay
    the same on another scene.

    A .safetensors file holds the floating-point weights and, for int8, also the scales of 8-bit
    activations. Hamflow computes the variant that the file was written for, unless
    hamflow.load_model is told otherwise.

    Parameters
    ----------
    model
        A .safetensors file from 'hamflow train', or the name of a learned descriptor that comes
        with Hamflow.
    output
        Where to write the network (.onnx or .safetensors).
    variant
        float, or int8: 8-bit arithmetic, which is faster and changes about one bit in a hundred.
        The names are those of hamflow.load_model.
    """
    if output.suffix.lower() not in (".onnx", ".safetensors"):
        raise FileError(f"{output}: must end in .onnx or .safetensors; choose another name.")
    check_writable(output)
    if os.path.realpath(model) == os.path.realpath(output):
        raise InputError(f"The model and the output are the same file, {output}; name two files.")
    check_new([output], overwrite)
    network = find_network(model)
    int8 = variant == "int8"
    if int8 and network.scales is None:
        from hamflow.descriptors.quantize import quantize  # noqa: PLC0415  (heavy)

        network = quantize(network, calibration_images())
    agreement = _agreement(network, output.suffix.lower()) if int8 else ""
    if output.suffix.lower() == ".onnx":
        with atomic_write(output) as file:
            file.write(network.onnx(variant))
    else:
        notes = {**network.notes, PRECISION: variant}
        scales = network.scales if int8 else None
        save_weights(output, network.architecture, network.weights, notes, scales)
    data = output.read_bytes()
    say(
        f"Wrote {output}: the network {model}, {len(data)} bytes, "
        f"sha256 {sha256(data).hexdigest()}.{agreement}"
    )


def calibration_images() -> list[NDArray[np.uint8]]:
    """Return rendered scenes to fit 8-bit networks to; pictures of a benchmark are never used."""
    height, width = 160, 256
    scenes = SyntheticDataset(SyntheticConfig(height, width), seed=_SEEN, size=_SCENES)
    plain = [demo_scene(height, width, seed=_SEEN + i).image0 for i in range(_SCENES)]
    return [*plain, *(scene.image0 for scene in scenes)]


def _agreement(network: Network, suffix: str) -> str:
    image = demo_scene(seed=_UNSEEN).image0
    exact = NetworkDescriptor("", network, "float").describe(image)
    if suffix == ".onnx":
        small = Runner("", network.onnx("int8"), None).run(network_input(image))[0]
    else:
        small = NetworkDescriptor("", network, "int8").describe(image)
    share = float(((exact > 0) == (small > 0)).mean())
    return f" On a rendered scene, {share:.2%} of the bits are the same as in floating point."

"""Small networks for tests, and what they compute, slowly and obviously."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hamflow.descriptors.architecture import Architecture

Array = NDArray[Any]

SMALL = {
    "paper": Architecture("paper", layers=3, channels=4),
    "paper, deeper": Architecture("paper", layers=5, channels=6),
    "context": Architecture(
        "context", layers=3, channels=4, local=8, wide=56, scales=(1, 3), taps=3
    ),
    "context, one scale": Architecture(
        "context", layers=5, channels=3, local=30, wide=40, scales=(2,)
    ),
}

COARSE = Architecture("coarse", widths=(3, 4, 5), dilations=(1, 2))


def random_weights(architecture: Architecture, seed: int = 0) -> dict[str, NDArray[np.float32]]:
    """Weights that keep the variance from layer to layer, so that no bit is constant."""
    rng = np.random.default_rng(seed)
    weights = {}
    for name, shape in architecture.parameters().items():
        spread = 1.5 / np.sqrt(np.prod(shape[1:])) if len(shape) > 1 else 0.1
        weights[name] = (spread * rng.standard_normal(shape)).astype(np.float32)
    return weights


def random_image(*shape: int, seed: int = 0) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, shape, np.uint8)


def reference(architecture: Architecture, weights: dict[str, Any], image: Array) -> Array:
    """Descriptors of an image in 0..1, H×W×3, in float64."""
    x = (image.astype(np.float64).transpose(2, 0, 1) - 0.5) * 4
    layers = _Layers(architecture, weights)
    phi = layers.paper(x) if architecture.kind == "paper" else layers.context(x)
    return phi.transpose(1, 2, 0)


class _Layers:
    def __init__(self, architecture: Architecture, weights: dict[str, Any]) -> None:
        self.architecture = architecture
        self.weights = weights

    def convolve(self, x: Array, name: str, dilation: int = 1) -> Array:
        weight = self.weights[f"{name}.weight"].astype(np.float64)
        size = weight.shape[2]
        rows, columns = (n - dilation * (size - 1) for n in x.shape[1:])
        total = np.zeros((len(weight), rows, columns))
        for i in range(size):
            for j in range(size):
                top, left = dilation * i, dilation * j
                seen = x[:, top : top + rows, left : left + columns]
                total += np.einsum("oc,cyx->oyx", weight[:, :, i, j], seen)
        return total + self.weights[f"{name}.bias"][:, None, None]

    def chain(self, x: Array, prefix: str, count: int) -> Array:
        for layer in range(count):
            x = np.tanh(self.convolve(x, f"{prefix}.{layer}"))
        return x

    def paper(self, x: Array) -> Array:
        layers = self.architecture.layers
        return self.chain(padded(x, (layers + 1) // 2), "layers", layers)

    def context(self, x: Array) -> Array:
        a = self.architecture
        near = self.chain(padded(x, (a.layers + 1) // 2), "local", a.layers)
        far: Any = 0
        for number, scale in enumerate(a.scales):
            radius = scale * (a.taps // 2)
            if scale == 1:
                source = padded(x, radius, radius + 1)
            else:
                source = box_inside(padded(x, radius + 1, radius + 2), 1)
            far = far + self.convolve(source, f"taps.{number}", scale)
        far = self.chain(np.tanh(far), "wide", 3)
        return np.concatenate([near, far])


def padded(x: Array, before: int, after: int | None = None) -> Array:
    sides = (before, before if after is None else after)
    return np.pad(x, ((0, 0), sides, sides), "edge")


def box_inside(x: Array, radius: int) -> Array:
    size = 2 * radius + 1
    rows, columns = (n - 2 * radius for n in x.shape[1:])
    shifted = [x[:, i : i + rows, j : j + columns] for i in range(size) for j in range(size)]
    return np.mean(shifted, axis=0)

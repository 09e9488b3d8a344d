"""A network in 8-bit whole numbers, computed by the native kernels: the variant int8.

Weights have 8 bits, with a scale for each output channel. Activations have 8 bits, too: a tanh is
rounded to steps of 1/127, and the positive parts in the coarse network to steps that its file names
(`hamflow.descriptors.int8.Scales`). The input of the first layer has 16 bits, because that layer
computes small differences of large numbers. Sums are exact, so that every machine gets the same
bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hamflow import _native
from hamflow._types import Image
from hamflow.descriptors.architecture import Architecture
from hamflow.descriptors.graph import LOCAL_RADIUS
from hamflow.descriptors.int8 import Scales

_STEPS = 127  # of a weight, and of a tanh
_LARGEST_PAIR = 127  # two weights: 255 * 128 fits into 16 bits, and rounding may add one
_SMALLEST = 1e-20  # scale of weights; a channel of zeros has none
_LARGEST_SUM = 2**30  # of a first layer; biases come on top
_LARGEST_SCALE = 1e28  # of sums, which are less than 2³¹: zero times infinity is no number
_CHANNELS = 4  # of the input: three colors, and zero or the local contrast


@dataclass(frozen=True)
class _Input:
    """What a layer reads: how many whole numbers make a unit, the largest one, the one of zero."""

    units: float
    largest: int = 255
    zero: int = 0

    @property
    def wide(self) -> bool:
        return self.largest > 255


_TANH = _Input(_STEPS, zero=128)
_COLOR = _Input(_native.UNITS_OF_COLOR, int(2 * _native.UNITS_OF_COLOR))
_CONTRAST = _Input(_native.UNITS_OF_CONTRAST, 2**15)


@dataclass(frozen=True)
class _Chain:
    """Layers with a tanh after each, what the first of them reads, and its first component."""

    layers: list[_native.IntegerLayer]
    runs: list[tuple[int, int, bool]]
    start: int
    count: int


class IntegerNetwork:
    """Computes the 8-bit variant of a network.

    Several threads may use it at once; it has no memory of its own beyond the weights.

    Parameters
    ----------
    architecture : Architecture
        Which network it is.
    weights : dict of str to array of float32
        Those of `Architecture.parameters`.
    scales : Scales or None
        Of the activations of a coarse network; the others need none.
    """

    def __init__(
        self,
        architecture: Architecture,
        weights: Mapping[str, NDArray[np.float32]],
        scales: Scales | None,
    ) -> None:
        self._source = (architecture, weights, scales)
        self._architecture = architecture
        self._weights = weights
        self._chains: list[_Chain] = []
        self._coarse: list[_native.IntegerLayer] = []
        self._levels: list[float] = []
        if architecture.kind == "coarse":
            assert scales is not None
            self._levels = [float(level) for level in 1 / scales.scale]
            self._coarse = self._coarse_layers()
        elif architecture.kind == "paper":
            self._chains = [self._local_chain("layers", architecture.m)]
        else:
            local = self._local_chain("local", architecture.local)
            self._chains = [local, self._wide_chain()]

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._source

    def bits(self, image: Image, threads: int) -> NDArray[np.uint64]:
        """Return the signs of the first 64 components, packed: (H, W), or that of the cells.

        The sides of an image for the coarse network are multiples of 8. `threads` is the largest
        number of threads; 0 for all.
        """
        parts = self._run(image, np.uint32, threads)
        words = parts[0][1]
        if len(parts) == 1 and words.shape[2] == 2:
            whole: NDArray[np.uint64] = words.view("<u8")[..., 0].astype(np.uint64, copy=False)
            return whole
        packed = np.zeros(words.shape[:2], np.uint64)
        for chain, words in parts:
            for k in range(words.shape[2]):
                shift = np.uint64(chain.start + 32 * k)
                packed |= words[..., k].astype(np.uint64) << shift
        return packed

    def describe(self, image: Image, threads: int) -> NDArray[np.float32]:
        """Return the descriptors, (H, W, m); see `bits`."""
        parts = [
            values[..., : chain.count] for chain, values in self._run(image, np.float32, threads)
        ]
        phi: NDArray[np.float32] = np.tanh(np.concatenate(parts, axis=2))
        return phi

    def _run(
        self, image: Image, dtype: type[Any], threads: int
    ) -> list[tuple[_Chain, NDArray[Any]]]:
        """Return what each chain computes; the coarse network is one of them."""
        architecture = self._architecture
        cell = architecture.cell
        height, width = image.shape[0] // cell, image.shape[1] // cell
        chains = self._chains or [_Chain(self._coarse, [], 0, architecture.m)]
        found = []
        for chain in chains:
            per_word = _native.OUTPUT_GROUP if dtype is np.uint32 else 1
            out = np.empty((height, width, _padded(chain.count) // per_word), dtype)
            if self._coarse:
                _native.run_coarse(
                    self._coarse,
                    list(architecture.dilations),
                    self._levels,
                    LOCAL_RADIUS,
                    image,
                    out,
                    threads,
                )
            else:
                _native.run_chain(chain.layers, chain.runs, image, out, threads)
            found.append((chain, out))
        return found

    def _local_chain(self, name: str, count: int) -> _Chain:
        """Return the paper's network: a 3×3 layer, then 2×2 layers."""
        depth = self._architecture.layers
        first = -((depth + 1) // 2)
        layers = [self._layer(f"{name}.0", _COLOR, 3, last=False)]
        layers += [
            self._layer(f"{name}.{k}", _TANH, 2, last=k == depth - 1) for k in range(1, depth)
        ]
        return _Chain(layers, [(first + i, first, False) for i in range(3)], 0, count)

    def _wide_chain(self) -> _Chain:
        """Return the part of the context network with the large receptive field."""
        a = self._architecture
        # One sum over the taps of all scales; each tap is a run of its own.
        kernels = [self._weights[f"taps.{k}.weight"] for k in range(len(a.scales))]
        weight = np.concatenate([k.reshape(a.wide, 3, -1) for k in kernels], axis=2)[:, :, None]
        bias = np.sum([self._weights[f"taps.{k}.bias"] for k in range(len(a.scales))], axis=0)
        runs = [
            (scale * (i - a.taps // 2), scale * (j - a.taps // 2), scale > 1)
            for scale in a.scales
            for i in range(a.taps)
            for j in range(a.taps)
        ]
        layers = [make_layer(weight, bias, _COLOR, len(runs), tanh=True)]
        sizes = (2, 1, 1)
        layers += [
            self._layer(f"wide.{k}", _TANH, size, last=k == 2) for k, size in enumerate(sizes)
        ]
        return _Chain(layers, runs, a.local, a.m - a.local)

    def _coarse_layers(self) -> list[_native.IntegerLayer]:
        """Return the layers in the order in which they are computed."""
        inputs = [_CONTRAST, *map(_Input, self._levels)]
        half, quarter, inner, near, eighth = range(1, 6)
        blocks = len(self._architecture.dilations)
        # Each layer reads the activations before it, but two read others.
        reads = {"half": 0, "quarter": half, "near.first": quarter, "near.second": inner}
        runs = {"half": 6, "quarter": 4, "near.first": 3, "near.second": 3, "eighth": 4}
        reads["eighth"] = near
        for block, dilation in enumerate(self._architecture.dilations):
            reads[f"blocks.{block}.first"] = eighth + 2 * block
            reads[f"blocks.{block}.second"] = eighth + 2 * block + 1
            runs[f"blocks.{block}.first"] = 3 if dilation == 1 else 9
            runs[f"blocks.{block}.second"] = 3
        reads |= {"far": eighth + 2 * blocks, "near.last": near, "head": eighth + 2 * blocks + 1}
        runs |= {"far": 1, "near.last": 3, "head": 1}
        return [
            make_layer(
                self._weights[f"{name}.weight"],
                self._weights[f"{name}.bias"],
                inputs[read],
                runs[name],
            )
            for name, read in reads.items()
        ]

    def _layer(self, name: str, read: _Input, runs: int, *, last: bool) -> _native.IntegerLayer:
        weight, bias = self._weights[f"{name}.weight"], self._weights[f"{name}.bias"]
        return make_layer(weight, bias, read, runs, tanh=not last)


def make_layer(
    weight: NDArray[np.float32],
    bias: NDArray[np.float32],
    read: _Input,
    runs: int,
    *,
    tanh: bool = False,
) -> _native.IntegerLayer:
    """Return a layer in whole numbers.

    Parameters
    ----------
    weight : (outputs, inputs, h, w) array of float32
        Those of the convolution.
    bias : (outputs,) array of float32
        Added to the sums.
    read : _Input
        What it reads.
    runs : int
        In how many pieces of memory its input lies.
    tanh : bool
        Whether a tanh follows.
    """
    outputs, inputs, high, across = weight.shape
    # Channels last, as in memory; superfluous channels have weight zero.
    channels = _CHANNELS if read.wide else _padded(inputs)
    taps = np.zeros((_padded(outputs), high, across, channels))
    taps[:outputs, ..., :inputs] = weight.transpose(0, 2, 3, 1)
    exact = taps.reshape(len(taps), -1)
    if read.wide:
        step = np.maximum(
            abs(exact).max(axis=1) / (2**15 - 1),
            abs(exact).sum(axis=1) * (read.largest / _LARGEST_SUM),
        )
    else:
        step = abs(exact).max(axis=1) / _STEPS
        if read is _TANH:
            # AVX2 multiplies bytes if the products of two neighbors stay within 16 bits. Here that
            # flips .08 % more bits; in a coarse network it would be .3 %.
            pairs = exact.reshape(len(exact), -1, 2)
            largest = [np.maximum(sign * pairs, 0).sum(axis=2).max(axis=1) for sign in (1, -1)]
            step = np.maximum(step, np.maximum(*largest) / _LARGEST_PAIR)
    step[step < _SMALLEST] = 1
    whole = np.rint(exact / step[:, None])
    product = step / read.units
    first = np.zeros(len(exact))
    first[:outputs] = np.clip(np.rint(bias / product[:outputs]), -_LARGEST_SUM, _LARGEST_SUM)
    first -= read.zero * whole.sum(axis=1)
    unit = _native.TANH_RANGE / (2**15 - 1) if tanh else 1
    scale = np.minimum(product / unit, _LARGEST_SCALE)
    return _native.IntegerLayer(
        whole.astype(np.int16),
        first.astype(np.int32),
        scale.astype(np.float32),
        runs,
        read.wide,
    )


def _padded(channels: int) -> int:
    group: int = _native.OUTPUT_GROUP
    return -(-channels // group) * group

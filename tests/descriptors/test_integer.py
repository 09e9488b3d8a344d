"""The 8-bit variant: near to floating point, and the same bytes however it is computed."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import pytest

import hamflow
from _networks import COARSE, SMALL, random_image, random_weights
from _problems import at_level, with_threads
from hamflow import _native
from hamflow.descriptors import pack_bits
from hamflow.descriptors.architecture import Architecture
from hamflow.descriptors.int8 import Scales
from hamflow.descriptors.integer import IntegerNetwork
from hamflow.descriptors.network import NetworkDescriptor
from hamflow.descriptors.quantize import quantize
from hamflow.descriptors.weights import Network

T = TypeVar("T")
DEEP = Architecture("coarse", widths=(40, 33, 70), dilations=(2, 1, 4))
NETWORKS = SMALL | {
    "wider than a group": Architecture("paper", layers=3, channels=33),
    "coarse": COARSE,
    "coarse, wider": DEEP,
}
CASES = pytest.mark.parametrize("architecture", NETWORKS.values(), ids=NETWORKS)
SIZES = [(1, 1), (3, 50), (50, 3), (37, 345)]


def network(architecture: Architecture) -> Network:
    whole = Network(architecture, random_weights(architecture))
    if architecture.kind != "coarse":
        return whole
    return quantize(whole, [random_image(48, 64, 3, seed=seed) for seed in range(2)])


def described(architecture: Architecture, threads: int | None = None) -> NetworkDescriptor:
    return NetworkDescriptor("a network", network(architecture), "int8", threads)


def by_way(name: str, work: Callable[[], T]) -> T:
    """Return what `work` gives with these convolutions."""
    assert _native.force_convolutions(name)
    try:
        return work()
    finally:
        _native.force_convolutions(None)


@CASES
@pytest.mark.parametrize("size", SIZES)
def test_near_to_floating_point(architecture: Architecture, size: tuple[int, int]) -> None:
    image = random_image(*size, 3, seed=4)
    model = described(architecture)
    phi = model.describe(image)
    exact = NetworkDescriptor("a network", network(architecture), "float").describe(image)
    assert phi.shape == exact.shape
    assert phi.dtype == np.float32
    assert abs(phi - exact).mean() < 0.025
    assert ((phi > 0) != (exact > 0)).mean() < 0.02
    bits = model.bits(image)
    assert (bits == pack_bits(phi)).all()
    assert bits.flags.c_contiguous


@CASES
def test_levels_and_threads_leave_no_trace(architecture: Architecture) -> None:
    image = random_image(37, 345, 3)
    model = described(architecture)
    expected = model.describe(image).tobytes(), model.bits(image).tobytes()
    for level in ("reference", *hamflow.isa_levels()):
        phi, bits = at_level(level, lambda: (model.describe(image), model.bits(image)))
        assert (phi.tobytes(), bits.tobytes()) == expected
    for way in _native.convolutions():
        phi, bits = by_way(way, lambda: (model.describe(image), model.bits(image)))
        assert (phi.tobytes(), bits.tobytes()) == expected
    for threads in (1, 2, 5):
        assert with_threads(threads, lambda: model.bits(image)).tobytes() == expected[1]
        assert described(architecture, threads).bits(image).tobytes() == expected[1]


def test_convolutions_of_a_level() -> None:
    """A level takes the best ones that go with it, and the reference its own."""
    ways = _native.convolutions()
    assert ways[0] == "portable"
    hamflow.set_isa(None)
    assert _native.convolution() == ways[-1]
    goes_with = {"avx2": ("avx2", "avxvnni"), "avx512": ("vnni", "amx")}
    for level in ("reference", *hamflow.isa_levels()):
        allowed = goes_with.get(level, (level,))
        assert at_level(level, _native.convolution) in allowed
    assert not _native.force_convolutions("nonsense")
    assert by_way("reference", _native.convolution) == "reference"
    hamflow.set_isa(None)
    assert _native.convolution() == ways[-1]


def test_kinds_of_images() -> None:
    for architecture in (SMALL["context"], COARSE):
        model = described(architecture)
        image = random_image(13, 18, 3)
        bits = model.bits(image)
        for same in (image / 255, (image / 255).astype(np.float32), image.astype(np.uint16) * 257):
            assert np.bitwise_count(model.bits(same) ^ bits).mean() < 0.1
        gray = image[..., 0]
        assert (model.bits(gray) == model.bits(np.repeat(gray[..., None], 3, axis=2))).all()
        mirrored = image[:, ::-1]
        assert (model.bits(mirrored) == model.bits(mirrored.copy())).all()


def test_extreme_weights() -> None:
    architecture = SMALL["paper"]
    weights = random_weights(architecture)
    weights["layers.1.weight"][0] = 0
    weights["layers.1.weight"][1] = 1e-30
    weights["layers.1.weight"][2] = 1e37
    weights["layers.0.weight"][1] = 1e37
    weights["layers.2.bias"][:2] = 1e30, -1e30
    model = IntegerNetwork(architecture, weights, None)
    image = random_image(9, 12, 3).astype(np.float32) / 255
    expected = model.bits(image, 0)
    assert (expected & np.uint64(3) == 1).all()
    for level in ("reference", *hamflow.isa_levels()):
        assert (at_level(level, lambda: model.bits(image, 0)) == expected).all()


def test_pickled() -> None:
    model, image = described(SMALL["context"]), random_image(9, 9)
    assert (pickle.loads(pickle.dumps(model)).bits(image) == model.bits(image)).all()


def test_scales_of_a_coarse_network() -> None:
    found = network(COARSE)
    assert found.scales is not None
    assert found.variants == ("float", "int8")
    assert len(found.scales.scale) == 6 + 2 * len(COARSE.dilations)
    wrong = Scales(found.scales.scale, np.ones_like(found.scales.zero_point))
    with pytest.raises(hamflow.InputError, match="zero_point of a coarse network must be 0"):
        Network(COARSE, found.weights, {}, wrong)


# --- what the bindings refuse ---------------------------------------------------------------------


def layer(
    outputs: int, length: int, runs: int, *, wide: bool = False, value: int = 0
) -> _native.IntegerLayer:
    weights, zeros = np.full((outputs, length), value, np.int16), np.zeros(outputs, np.int32)
    return _native.IntegerLayer(weights, zeros, zeros.astype(np.float32), runs, wide)


@pytest.mark.parametrize("shape", [(31, 36, 3, True), (32, 36, 5, True), (32, 38, 3, False)])
def test_bad_layers(shape: tuple[int, int, int, bool]) -> None:
    outputs, length, runs, wide = shape
    with pytest.raises(ValueError, match="weights"):
        layer(outputs, length, runs, wide=wide)
    with pytest.raises(ValueError, match="8 bits"):
        _native.IntegerLayer(
            np.full((32, 4), 128, np.int16),
            np.zeros(32, np.int32),
            np.zeros(32, np.float32),
            1,
            False,
        )


def test_bad_chains() -> None:
    first, second = layer(32, 36, 3, wide=True), layer(64, 128, 2)
    runs = [(-1, -1, False), (0, -1, False), (1, -1, False)]
    image, out = np.zeros((5, 6, 3), np.float32), np.zeros((5, 6, 2), np.uint32)
    _native.run_chain([first, second], runs, image, out, 0)
    bad: list[tuple[Any, ...]] = [
        ([first], runs, image, out, 0),
        ([second, second], runs, image, out, 0),
        ([first, layer(64, 64, 2)], runs, image, out, 0),
        ([first, layer(64, 9 * 32, 3)], runs, image, out, 0),
        ([first, second], runs[:2], image, out, 0),
        ([first, second], [(9999, 0, False)] * 3, image, out, 0),
        ([first, second], runs, image[..., :2].copy(), out, 0),
        ([first, second], runs, image, out[:4].copy(), 0),
        ([first, second], runs, image, out, -1),
    ]
    for arguments in bad:
        with pytest.raises(ValueError, match=r"layer|input|image|out|threads"):
            _native.run_chain(*arguments)


def test_bad_coarse_networks() -> None:
    source = network(COARSE)
    model = IntegerNetwork(source.architecture, source.weights, source.scales)
    layers, levels = model._coarse, model._levels
    image, out = np.zeros((16, 24, 3), np.float32), np.zeros((4, 6, 2), np.uint32)
    good = (layers, [1, 2], levels, 12, image, out, 0)
    _native.run_coarse(*good)
    for position, value in (
        (0, layers[:-1]),
        (0, [*layers[:1], *layers[:-1]]),
        (1, [1]),
        (1, [2, 2]),
        (1, [1, 99]),
        (2, levels[1:]),
        (3, -1),
        (4, image[:12].copy()),
        (5, out[:3].copy()),
    ):
        bad: Any = (*good[:position], value, *good[position + 1 :])
        with pytest.raises(ValueError, match=r"layer|dilations|radius|image|out"):
            _native.run_coarse(*bad)

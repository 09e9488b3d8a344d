"""Confidence and occlusion: the kernel against a slow reference, and what they say where the answer
is known."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from numpy.typing import NDArray

import hamflow
from _problems import same_everywhere
from hamflow.descriptors import load_model
from hamflow.flow import warp
from hamflow.pipeline.frame import Frame
from hamflow.refinement import assess, disagreement
from hamflow.refinement._networks import network
from hamflow.refinement.confidence import evidence
from hamflow.refinement.evidence import NAMES, OWN, SURROUNDINGS, surroundings, texture, variation
from hamflow.refinement.variational import features

Array = NDArray[Any]
UNITS = 16
COUNT = len(NAMES)


class Problem:
    """Random frames, flows and matches."""

    def __init__(self, shape: tuple[int, int], scale: int, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        descriptor = load_model("pairs")
        self.frames = tuple(Frame(rng.random((*shape, 3), np.float32), descriptor) for _ in "ab")
        # Steps that lead outside, to pixels and between them.
        flow = rng.normal(size=(2, *shape, 2)).astype(np.float32) * 4
        flow[rng.random(flow.shape) < 0.3] = 1
        flow[1, : shape[0] // 2] = -flow[0, : shape[0] // 2]
        flow[0, 0, 0] = 1e9
        flow[0, -1, -1] = np.nan
        self.flows = list(flow)
        small = tuple(-(-side // scale) for side in shape)
        self.bits = tuple(rng.integers(0, 2**63, small, np.uint64) for _ in "ab")
        self.matched = [
            SimpleNamespace(
                trusted=rng.random(small) < 0.7,
                completed=rng.normal(size=(*small, 2)).astype(np.float32) * 2,
                decided=rng.random(small, np.float32),
            )
            for _ in "ab"
        ]
        self.scale = scale

    @property
    def arguments(self) -> tuple[Any, ...]:
        return self.frames, self.flows, self.bits, self.matched, self.scale


def networks(known: Array) -> tuple[Array, Array]:
    """Return confidence and score of occlusion of evidence, slowly."""
    numbers = network("confidence")
    low, high, rest = numbers[:COUNT], numbers[COUNT : 2 * COUNT], numbers[2 * COUNT : -1]
    results = []
    for part in np.split(rest, 2):
        bias, first = part[:UNITS], part[UNITS : UNITS * (COUNT + 1)].reshape(COUNT, UNITS)
        z = np.clip(known, low, high).astype(np.float64) @ first + bias
        z[..., : UNITS // 2] = np.maximum(z[..., : UNITS // 2], 0)
        z[..., UNITS // 2 :] = np.minimum(z[..., UNITS // 2 :], 0)
        results.append(z @ part[-UNITS - 1 : -1] + part[-1])
    return 1 / (1 + np.exp(np.minimum(results[0], numbers[-1]))), results[1]


def arrivals(flow: Array) -> Array:
    """Return how many pixels lead to each one, in 3×3 pixels."""
    h, w = flow.shape[:2]
    count = np.zeros((h + 3, w + 3))
    for (y, x), u in np.ndenumerate(flow[..., 0]):
        tx, ty = x + u, y + flow[y, x, 1]
        if -1 < tx < w and -1 < ty < h:
            tx, ty = np.floor((tx + 1) * 16) / 16, np.floor((ty + 1) * 16) / 16
            i, j = int(ty), int(tx)
            count[i : i + 2, j : j + 2] += np.outer([i + 1 - ty, ty - i], [j + 1 - tx, tx - j])
    inner = count[1 : h + 1, 1 : w + 1]
    out = np.empty((h, w))
    for y, x in np.ndindex(h, w):
        out[y, x] = inner[max(y - 1, 0) : y + 2, max(x - 1, 0) : x + 2].mean()
    return out


def own_evidence(problem: Problem) -> dict[str, Array]:
    """Return what is known of single pixels, slowly."""
    flow, backward = problem.flows
    h, w = flow.shape[:2]
    apart = disagreement(flow, backward)
    inside = np.isfinite(apart)
    apart = np.where(inside, apart, 0)
    y, x = np.mgrid[:h, :w]
    there = np.stack([x, y], axis=2) + np.where(np.isnan(flow), 1e6, flow).astype(np.float64)
    off = np.linalg.norm(there - np.clip(there, 0, [w - 1, h - 1]), axis=2).clip(max=1e6)
    # What is up to half a pixel outside is looked up at the border.
    nearest = np.clip(there, 0, [w - 1, h - 1]) - np.stack([x, y], axis=2)
    a, b = (features(frame.pixels, 0.6) for frame in problem.frames)
    b = warp(b, nearest.astype(np.float32))
    difference = np.where(inside[..., None], abs(a - b), 0)
    padded = np.pad(flow, ((1, 1), (1, 1), (0, 0)), mode="edge")
    sides = [padded[:-2, 1:-1], padded[2:, 1:-1], padded[1:-1, :-2], padded[1:-1, 2:]]
    jumps = np.nan_to_num(np.stack([abs(side - flow) for side in sides]), nan=0, posinf=0)
    length = np.nan_to_num(np.linalg.norm(flow, axis=2), nan=1e6).clip(max=1e6)
    return {
        "disagreement": np.log(np.minimum(apart, 100) + 0.05),
        "outside": np.where(inside, 0, 1 + np.log(1 + off)),
        "length": np.log(length + 0.1),
        "color": np.log(difference[..., :3].mean(axis=2) + 0.002),
        "gradient": np.log(difference[..., 3:7].mean(axis=2) + 0.001),
        "slope": np.log(np.hypot(a[..., 3], a[..., 4]) + 0.002),
        "slope there": np.log(np.where(inside, np.hypot(b[..., 3], b[..., 4]), 0) + 0.002),
        "variation": np.log(jumps.max(axis=(0, 3)).clip(max=1e6) + 0.02),
        "brightness": a[..., :3].mean(axis=2),
        "arrivals": np.minimum(arrivals(backward), 2),
    }


@pytest.mark.parametrize(("shape", "scale"), [((1, 1), 1), ((13, 37), 2), ((30, 18), 4)])
def test_against_the_reference(shape: tuple[int, int], scale: int) -> None:
    problem = Problem(shape, scale)
    known = evidence(*problem.arguments)
    assert known.shape == (*shape, COUNT)
    for k, (name, expected) in enumerate(own_evidence(problem).items()):
        assert name == OWN[k]
        assert np.allclose(known[..., k], expected, rtol=1e-4, atol=2e-4), name
    coarse = surroundings(*problem.arguments[:1], *problem.arguments[2:])
    larger = hamflow._scale.upsample_linear(coarse, scale, shape)
    assert np.allclose(known[..., len(OWN) : -1], larger, atol=1e-5)
    assert (known[..., -1] == np.log2(scale)).all()
    certain, score = networks(known)
    hidden, confidence = assess(*problem.arguments)
    assert np.allclose(confidence, certain, atol=1e-4)
    clear = abs(score) > 1e-3
    outside = known[..., 1] > 0
    back = known[..., 0] < np.log(0.15)  # a tenth of a pixel, and what is added to it
    assert (hidden == (((score > 0) & ~back) | outside))[clear | outside].all()


def test_surroundings() -> None:
    problem = Problem((12, 15), 1)
    coarse = dict(
        zip(
            SURROUNDINGS,
            np.moveaxis(surroundings(*problem.arguments[:1], *problem.arguments[2:]), 2, 0),
            strict=True,
        )
    )
    forward, backward = problem.matched

    def mean(values: Array, side: int) -> Array:
        padded = np.pad(values.astype(float), side // 2, mode="edge")
        windows = np.lib.stride_tricks.sliding_window_view(padded, (side, side))
        return windows.mean(axis=(2, 3))

    h, w = 12, 15
    bits, trusted, there = np.full((h, w), 0.5), np.zeros((h, w)), np.zeros((h, w))
    textures = texture(problem.frames[1].pixels)[..., 0]
    for y, x in np.ndindex(h, w):
        tx, ty = np.rint(np.float32([x, y]) + forward.completed[y, x]).astype(int)
        if 0 <= tx < w and 0 <= ty < h:
            bits[y, x] = (
                int(problem.bits[0][y, x]) ^ int(problem.bits[1][ty, tx])
            ).bit_count() / 64
            trusted[y, x] = backward.trusted[ty, tx]
            there[y, x] = textures[ty, tx]
    apart = np.minimum(disagreement(forward.completed, backward.completed), 20)
    expected = {
        "texture there": np.log(there + 1e-6),
        "trusted": mean(forward.trusted, 3),
        "trusted around": mean(forward.trusted, 9),
        "decided": mean(forward.decided, 9),
        "bits": mean(bits, 3),
        "trusted there": mean(trusted, 3),
        "disagreement around": np.log(mean(apart, 9) + 0.05),
        "variation around": np.log(mean(variation(forward.completed), 9) + 0.02),
    }
    for name, values in expected.items():
        assert np.allclose(coarse[name], values, atol=1e-4), name


def test_texture_is_what_shows_motion_in_all_directions() -> None:
    rng = np.random.default_rng(0)
    shape = (20, 24)
    plain, stripes = np.full((*shape, 3), 0.4, np.float32), np.zeros((*shape, 3), np.float32)
    stripes[:] = rng.random((shape[1], 1))
    noise = rng.random((*shape, 3), np.float32)
    smaller, both, _ = zip(
        *(np.moveaxis(texture(i), 2, 0) for i in (plain, stripes, noise)), strict=True
    )
    assert not smaller[0].any()
    assert not both[0].any()
    assert smaller[1].max() < 1e-6
    assert both[1].min() > 1e-3
    assert smaller[2].min() > 1e-3
    assert (smaller[2] <= both[2] / 2).all()


def test_levels_and_threads() -> None:
    problem = Problem((33, 50), 2)

    def run() -> tuple[Any, ...]:
        return *assess(*problem.arguments), evidence(*problem.arguments)

    assert same_everywhere(run)


SIGNS = dict.fromkeys(("disagreement", "outside", "length", "color", "gradient", "variation"), 1)
SIGNS |= dict.fromkeys(("bits", "disagreement around", "variation around"), 1)
SIGNS |= dict.fromkeys(("texture", "texture there", "texture around"), -1)
SIGNS |= dict.fromkeys(("trusted", "trusted around"), -1)
SIGNS |= dict.fromkeys(("decided", "trusted there"), -1)


@given(
    known=st.lists(st.floats(-15, 15, width=32), min_size=COUNT, max_size=COUNT),
    name=st.sampled_from(sorted(SIGNS)),
    more=st.floats(0, 10, width=32),
)
def test_what_speaks_for_an_error_never_raises_the_confidence(
    known: list[float], name: str, more: float
) -> None:
    before = np.float32(known)
    after = before.copy()
    after[NAMES.index(name)] += SIGNS[name] * more
    assert networks(after)[0] <= networks(before)[0] + 1e-9


def textured(height: int = 96, width: int = 128, seed: int = 3) -> Array:
    """An image with details of all sizes."""
    rng = np.random.default_rng(seed)
    image = np.zeros((height, width, 3))
    for size in (1, 2, 4, 8):
        coarse = rng.normal(size=(-(-height // size), -(-width // size), 3))
        image += np.repeat(np.repeat(coarse, size, 0), size, 1)[:height, :width]
    low, high = image.min(), image.max()
    return np.asarray((image - low) / (high - low) * 255).astype(np.uint8)


PRESETS = ("balanced", "fast", "realtime")


@pytest.mark.parametrize("preset", PRESETS)
def test_texture_that_moves_as_a_whole_is_certain(preset: str) -> None:
    image = textured(112, 144)
    result = hamflow.estimate(image[8:104, 8:136], image[5:101, 4:132], preset)
    assert result.confidence is not None
    assert result.occlusion is not None
    inner = np.s_[16:-16, 16:-16]
    assert abs(result.flow[inner] - [4, 3]).max() < 0.5
    assert result.confidence[inner].mean() > 0.75
    assert result.occlusion[inner].mean() < 0.01


@pytest.mark.parametrize("preset", PRESETS)
def test_static_texture_is_certain(preset: str) -> None:
    result = hamflow.estimate(textured(), textured(), preset)
    assert result.confidence is not None
    assert result.occlusion is not None
    assert result.confidence.mean() > 0.9
    assert not result.occlusion.any()


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize(
    ("shape", "colors"),
    [
        *(((96, 128), colors) for colors in [(0, 0), (0, 255), (128, 128), (255, 255)]),
        # Matched at half of the size; `balanced` looks closer at the smaller ones.
        *((size, color) for size in [(360, 480), (480, 640)] for color in [(0, 0), (255, 255)]),
    ],
)
def test_nothing_to_see_is_uncertain(
    preset: str, shape: tuple[int, int], colors: tuple[int, int]
) -> None:
    images = [np.full((*shape, 3), color, np.uint8) for color in colors]
    confidence = hamflow.estimate(*images, preset).confidence
    assert confidence is not None
    assert confidence.max() < 0.5

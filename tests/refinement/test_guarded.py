"""The guarded refinement: it does no harm to a flow that is right, and helps one that is not."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from _flows_reference import jumps, largest_around
from _problems import same_bytes, same_everywhere
from _synthetic import SMALL, textures
from hamflow import Frame, InputError, _native
from hamflow._scale import upsample_linear
from hamflow.datasets.synthetic import SyntheticScene, render_scene
from hamflow.descriptors import load_model
from hamflow.flow import endpoint_error
from hamflow.refinement import GuardedRefinement, VariationalRefinement
from hamflow.stages import following

Array = NDArray[Any]
F = np.float32
SEEDS = (1, 2)  # with motion boundaries


@cache
def scene(seed: int) -> SyntheticScene:
    return render_scene(replace(SMALL, height=160, width=192), seed, textures())


def frames(scene: SyntheticScene) -> tuple[Frame, Frame]:
    descriptor = load_model("pairs")
    return Frame(scene.image0, descriptor), Frame(scene.image1, descriptor)


def error(flow: Array, scene: SyntheticScene) -> float:
    return float(np.nanmean(endpoint_error(flow, scene.flow)))


def halved(scene: SyntheticScene) -> tuple[Array, Array]:
    """The truth and the visible pixels at half the size."""
    height, width = scene.flow.shape[:2]
    boxes = scene.flow.reshape(height // 2, 2, width // 2, 2, 2).mean(axis=(1, 3)) / 2
    hidden = scene.occluded.reshape(height // 2, 2, width // 2, 2).mean(axis=(1, 3))
    return boxes.astype(F), hidden < 0.5


@pytest.mark.parametrize("seed", SEEDS)
def test_the_truth_stays(seed: int) -> None:
    truth = scene(seed).flow
    arguments = frames(scene(seed)), truth, ~scene(seed).occluded, 1
    refined = GuardedRefinement()(*arguments)
    found, before = (
        error(refined, scene(seed)),
        error(VariationalRefinement()(*arguments), scene(seed)),
    )
    enlarged = upsample_linear(halved(scene(seed))[0], 2, truth.shape[:2]) * F(2)
    assert found <= 1.3 * error(enlarged, scene(seed))
    assert found < 0.5 * before
    assert abs(refined - truth).max() <= 0.5 + 1e-4


@pytest.mark.parametrize("seed", SEEDS)
def test_half_the_truth_stays_better_than_without_guards(seed: int) -> None:
    small, visible = halved(scene(seed))
    arguments = frames(scene(seed)), small, visible, 2
    guarded = error(GuardedRefinement()(*arguments), scene(seed))
    assert guarded < 0.85 * error(VariationalRefinement()(*arguments), scene(seed))


def test_whole_pixels_become_fractions() -> None:
    rng = np.random.default_rng(0)
    wide = np.pad(rng.random((30, 40, 3)), ((2, 2), (2, 2), (0, 0)), mode="wrap")
    fine = upsample_linear(wide.astype(F), 4, (136, 176))
    images = fine[4:132:2, 4:172:2], fine[5:133:2, 4:172:2]  # half a pixel up
    pair = Frame(images[0], load_model("pairs")), Frame(images[1], load_model("pairs"))
    flow = GuardedRefinement()(pair, np.zeros((32, 42, 2), F), np.ones((32, 42), np.bool_), 2)
    assert abs(flow[8:-8, 8:-8] - [0, -0.5]).max() < 0.1


@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (7, 2), (13, 37)])
def test_guards_equal_plain_numpy(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    flow = rng.normal(size=(*shape, 2)).astype(F)
    weight = rng.random(shape).astype(F)
    found = np.full((3, *shape), np.nan, F)
    _native.guards(flow, weight, 0.5, 1.5, *found)
    right, down = jumps(flow)
    mixed = largest_around(right, down, 2)
    assert np.allclose(found[0, :, :-1], 1 / (1 + (right / 0.5) ** 2)[:, :-1], rtol=1e-5)
    assert np.allclose(found[1, :-1], 1 / (1 + (down / 0.5) ** 2)[:-1], rtol=1e-5)
    assert not found[0, :, -1].any()
    assert not found[1, -1].any()
    assert np.allclose(found[2], weight / (1 + (mixed / 1.5) ** 2), rtol=1e-5)
    _native.guards(flow, weight, 0.5, 0.0, *found)
    assert same_bytes(found[2], weight)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_next_pair_of_a_video_takes_less_and_is_about_as_good(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    small, visible = halved(scene(seed))
    pair = frames(scene(seed))
    real, done = _native.variational, []

    def spy(*args: Any) -> None:
        done.append(args[0].shape[0] * args[0].shape[1] * args[7][0])  # warped pixels
        real(*args)

    def run(refinement: GuardedRefinement) -> tuple[Array, Array, int]:
        done.clear()
        # In whole pixels, as they are matched.
        flow = refinement(pair, np.rint(small), visible, 2)
        return flow, refinement(pair[::-1], -np.rint(small), visible, 2, flow), sum(done)

    monkeypatch.setattr(_native, "variational", spy)
    alone, next_one = run(GuardedRefinement()), run(following(GuardedRefinement()))
    assert error(next_one[0], scene(seed)) <= 1.12 * error(alone[0], scene(seed))
    assert next_one[2] < 0.8 * alone[2]


def test_where_the_next_pair_of_a_video_saves() -> None:
    refinement = following(GuardedRefinement(warps=5, rounds=2))
    assert refinement == following(refinement)
    assert [refinement.at_step(8, finer).warps for finer in (4, 2, 1)] == [5, 5, 3]
    assert refinement.at_step(1, 1).warps == 5  # nothing was done at a coarser scale
    few = following(GuardedRefinement(warps=2, finest=2))
    assert [few.at_step(16, finer).warps for finer in (8, 4, 2)] == [2, 5, 1]
    assert few.at_step(2, 2).warps == 2


@pytest.mark.parametrize("refinement", [GuardedRefinement(), following(GuardedRefinement())])
def test_equal_images_and_threads(refinement: GuardedRefinement) -> None:
    frame, _ = frames(scene(0))
    nothing, everywhere = np.zeros((80, 96, 2), F), np.ones((80, 96), np.bool_)
    assert not refinement((frame, frame), nothing, everywhere, 2).any()
    small, visible = halved(scene(0))

    def run() -> Array:
        return refinement(frames(scene(0)), small, visible, 2)  # features anew

    assert same_everywhere(run)


@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (7, 2), (13, 17)])
@pytest.mark.parametrize("scale", [1, 2, 4])
def test_any_size(shape: tuple[int, int], scale: int) -> None:
    rng = np.random.default_rng(0)
    pair = tuple(Frame(rng.random((*shape, 3)), load_model("pairs")) for _ in range(2))
    small = tuple(-(-side // scale) for side in shape)
    flow = rng.normal(size=(*small, 2)).astype(F) * 3
    trusted = rng.random(small) < 0.7
    for refinement in (GuardedRefinement(), following(GuardedRefinement())):
        result = refinement((pair[0], pair[1]), flow, trusted, scale)
        assert result.shape == (*shape, 2)
        assert result.dtype == F
        assert np.isfinite(result).all()


@pytest.mark.parametrize(
    ("name", "value"),
    [("boundary", 0), ("near", -1), ("firmness", -0.5), ("limit", math.nan), ("rounds", 1.5)],
)
def test_bad_parameters(name: str, value: Any) -> None:
    with pytest.raises(InputError, match=f"^{name} must .*{value}.*\\.$"):
        GuardedRefinement(**{name: value})

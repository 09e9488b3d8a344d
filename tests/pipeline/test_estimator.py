"""The whole route, from two images to a flow and what is known about it."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import hamflow
from _problems import same_bytes
from _route import SMALL, STAGES, error, estimate, moving_square, shifted, texture, usual
from hamflow import Estimator, InputError, Window
from hamflow.config import PRESETS
from hamflow.flow import endpoint_error
from hamflow.refinement import (
    ChoiceCompletion,
    LabelingCompletion,
    NoCompletion,
    Upsampling,
    assess,
    refine,
    variational,
)

Array = NDArray[Any]


@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_nothing_moves(preset: str) -> None:
    image = texture(40, 50)
    result = hamflow.estimate(image, image, preset=preset)
    assert not result.flow.any()
    if preset == "paper":
        return
    assert result.backward is not None
    assert result.occlusion is not None
    assert not result.backward.any()
    assert not result.occlusion.any()


@pytest.mark.parametrize("preset", ["fast", "balanced"])
def test_a_shift(preset: str) -> None:
    result = hamflow.estimate(*shifted(5, -3), preset=preset, model="pairs")
    assert error(result.flow, 5, -3) < 0.05
    assert result.backward is not None
    assert error(result.backward, -5, 3) < 0.05


def test_a_shift_by_the_paper() -> None:
    result = estimate(*shifted(5, -3), preset="paper", model="pairs", window=16)
    assert error(result.flow, 5, -3) == 0
    assert result.window == Window.square(16)
    assert result.scale == 1
    assert result.backward is None
    assert result.occlusion is None
    assert result.confidence is None
    assert result.flow.dtype == np.float32


def test_a_fraction_of_a_pixel() -> None:
    """Reducing a shift by an odd number gives one that ends in a half."""
    first, second = (image.astype(float) for image in shifted(7, 4, 120, 160))
    halves = [im.reshape(60, 2, 80, 2, 3).mean(axis=(1, 3)) / 255 for im in (first, second)]
    flow = estimate(*halves).flow
    assert error(flow, 3.5, 2) < 0.2
    assert abs(flow - [3.5, 2])[12:-12, 12:-12].mean() < 0.03


def test_a_large_displacement() -> None:
    first, second = shifted(120, 0, 300, 400)
    flow = hamflow.estimate(first, second, preset="fast", model="pairs").flow
    overlap = flow[20:-20, 20 : 400 - 120 - 20]
    assert np.median(np.hypot(*np.moveaxis(overlap - [120, 0], 2, 0))) < 0.05
    assert np.hypot(*np.moveaxis(overlap - [120, 0], 2, 0)).max() < 0.5


def test_a_moving_square() -> None:
    first, second, square, hidden = moving_square()
    result = hamflow.estimate(first, second, preset="balanced", model="pairs")
    assert np.median(abs(result.flow[square] - [12, 0])) < 0.05
    assert np.median(abs(result.flow[~square & ~hidden])) < 0.05
    assert result.occlusion is not None
    assert (result.occlusion & hidden).sum() > 0.5 * (result.occlusion | hidden).sum()
    assert result.confidence is not None
    assert result.confidence.min() >= 0
    assert result.confidence.max() <= 1
    assert result.confidence[hidden].mean() < 0.8 * result.confidence[~hidden].mean()


# --- sizes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(1, 1), (1, 2), (2, 1), (3, 50), (50, 3), (1, 60), (51, 49)])
@pytest.mark.parametrize("preset", ["balanced", "paper"])
def test_any_size(shape: tuple[int, int], preset: str) -> None:
    rng = np.random.default_rng(0)
    first, second = rng.integers(0, 256, (2, *shape, 3), np.uint8)
    result = hamflow.estimate(first, second, preset=preset, model="pairs")
    fields = [result.flow, result.backward, result.occlusion, result.confidence]
    for field in fields[: 1 if preset == "paper" else 4]:
        assert field is not None
        assert field.shape[:2] == shape
        assert np.isfinite(field).all()
    assert result.flow.dtype == np.float32
    json.dumps(result.summary(), allow_nan=False)


def test_small_images_with_a_network() -> None:
    image = np.full((1, 1, 3), 7, np.uint8)
    assert not hamflow.estimate(image, image, preset="fast").flow.any()


@pytest.mark.parametrize("scale", [1, 2, 4, 256])
def test_scales(scale: int) -> None:
    first, second = shifted(8, -4, 61, 83)  # no multiple of anything
    result = estimate(first, second, scale=scale)
    assert result.scale == scale
    assert result.flow.shape == (61, 83, 2)
    assert np.isfinite(result.flow).all()
    if scale < 256:
        assert np.median(abs(result.flow - [8, -4])) < 0.1


def test_different_sizes() -> None:
    first, second = shifted(5, -3)
    with pytest.raises(InputError, match=r"80×60 and 79×60 \(width × height\); crop or resize"):
        estimate(first, second[:, :-1])


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (np.full((60, 80), np.nan), "must have values from 0 to 1"),
        (np.full((60, 80), 1.01), "must have values from 0 to 1"),
        (np.full((60, 80), -0.01), "must have values from 0 to 1"),
        (np.zeros((60, 80), np.int32), "must be of type uint8, uint16 or floating point"),
        (np.zeros((60, 80, 2), np.uint8), "must have the shape"),
        (np.zeros((0, 80), np.uint8), "must have the shape .*; check how it was read or cut out"),
        (None, "is None; OpenCV's imread"),
        (np.full((60, 80), 200.0), "must have .* its largest is 200, so divide it by 255"),
        (np.full((60, 80), 999.0), "must have .*, so divide it by 65535"),
        (np.full((60, 80), -2.0), "must have .* its smallest is -2, so undo its normalization"),
        (np.full((60, 80), np.inf), "must have .*; replace those that are NaN or infinite"),
        (np.zeros((60, 80), np.int64), "must be of .* from 0 to 255, pass it as uint8"),
        (np.zeros((3, 60, 80), np.uint8), r"must have .*channels come first, .*permute\(1, 2, 0\)"),
        (np.zeros((1, 60, 80, 3), np.uint8), r"must have .* pass one of them at a time, .*\[0\]"),
        ([[1, 2], [3]], r"cannot be read as an array \(.*\); pass a NumPy array"),
    ],
)
def test_bad_images(which: int, bad: Any, message: str) -> None:
    images: list[Any] = [np.zeros((60, 80), np.uint8)] * 2
    images[which] = bad
    with pytest.raises(InputError, match=f"^image{which} {message}"):
        estimate(*images)


def test_arrays_in_place_of_frames() -> None:
    estimator, image = Estimator(SMALL), texture(20, 30)
    wrong: Any = image
    with pytest.raises(InputError, match=r"^frame0 must be a Frame, .* call Estimator\.estimate"):
        estimator.between(wrong, wrong)
    with pytest.raises(InputError, match=r"^frame1 must be a Frame, .* type ndarray"):
        estimator.between(estimator.frame(image), wrong)
    frame: Any = estimator.frame(image)
    with pytest.raises(InputError, match=r"^image0 is a Frame already; .* Estimator\.between"):
        hamflow.estimate(frame, frame)


@pytest.mark.parametrize("of", ["paper", "fast"])
def test_frames_of_another_estimator(of: str) -> None:
    """One lacks the coarse descriptors, and the other has others for its pixels."""
    own, other = Estimator("balanced"), Estimator(of)
    frame, foreign = own.frame(texture(20, 30)), other.frame(texture(20, 30))
    with pytest.raises(InputError, match=r"^frame0 was prepared by an estimator of another preset"):
        own.between(foreign, frame)
    with pytest.raises(InputError, match=r"^frame1 .* with this estimator's frame\(image\)"):
        own.between(frame, foreign)


@pytest.mark.parametrize(("of", "to"), [("fast", "realtime"), ("balanced", "paper")])
def test_frames_of_an_estimator_with_the_same_descriptors(of: str, to: str) -> None:
    first, second = shifted(5, -3)
    own, other = Estimator(to, window=16), Estimator(of)
    found, _ = own.between(other.frame(first), other.frame(second))
    assert same_bytes(found.flow, own.estimate(first, second).flow)


@pytest.mark.parametrize("wrong", [5, ("result", "matches")])
def test_wrong_previous(wrong: Any) -> None:
    estimator = Estimator(SMALL)
    frame = estimator.frame(texture(20, 30))
    with pytest.raises(InputError, match=r"^previous must be None or the second value that"):
        estimator.between(frame, frame, previous=wrong)


def test_bad_files(tmp_path: Path) -> None:
    with pytest.raises(hamflow.FileError, match=r"none\.png"):
        estimate(tmp_path / "none.png", tmp_path / "none.png")


# --- options ------------------------------------------------------------------------------------


@pytest.mark.parametrize("window", [16, np.int64(16), (-8, 16, -8, 16), Window(-8, 16, -8, 16)])
def test_windows(window: Any) -> None:
    result = estimate(*shifted(5, -3), window=window)
    assert result.window == Window.square(16)
    assert error(result.flow, 5, -3) < 0.05


def test_a_window_that_leaves_out_the_motion() -> None:
    flow = estimate(*shifted(5, -3), window=(-2, 5, -2, 5), preset="paper", model="pairs").flow
    assert abs(flow).max() == 2


def test_stereo() -> None:
    result = estimate(*shifted(-9, 0), window=(-20, 21, 0, 1))
    assert result.window.dv == 1
    assert error(result.flow, -9, 0) < 0.05


@pytest.mark.parametrize("window", ["foo", "", None, 7, 4.0, (1, 2, 3), [1, 2, 3, 4]])
def test_bad_windows(window: Any) -> None:
    with pytest.raises(InputError, match=r"[Ww]indow"):
        Estimator(SMALL, window=window)


def test_the_word_for_the_window() -> None:
    with pytest.raises(InputError, match=r"window must be 'auto', a number D, .* not 'foo'"):
        Estimator(SMALL, window="foo")  # type: ignore[arg-type]


@pytest.mark.parametrize("scale", [3, -1, 1.0, "2"])
def test_bad_scales(scale: Any) -> None:
    with pytest.raises(InputError, match="scale must be 0 or a power of two"):
        Estimator(SMALL, scale=scale)


def test_without_refinement() -> None:
    result = estimate(
        *shifted(6, -4), preset=dataclasses.replace(SMALL, refinement=Upsampling(), scale=2)
    )
    # At half scale the descriptors of these many pixels look beyond the border.
    assert error(result.flow, 6, -4, margin=20) < 0.05
    assert result.flow.dtype == np.float32


def test_without_completion() -> None:
    result = estimate(*shifted(5, -3), preset=dataclasses.replace(SMALL, completion=NoCompletion()))
    assert error(result.flow, 5, -3) < 0.05
    whole = dataclasses.replace(
        SMALL, completion=NoCompletion(), refinement=Upsampling(smooth=False), scale=2
    )
    flow = estimate(*shifted(6, -4), preset=whole).flow
    assert flow.dtype == np.float32
    assert (flow == 2 * np.rint(flow / 2)).all()
    assert error(flow, 6, -4) == 0


def test_progress() -> None:
    calls: list[tuple[str, float]] = []
    images = shifted(5, -3, 100, 120)
    Estimator(SMALL).estimate(*images, progress=lambda name, share: calls.append((name, share)))
    shares = [share for _, share in calls]
    assert shares == sorted(shares)
    assert shares[0] >= 0
    assert list(dict.fromkeys(name for name, _ in calls)) == [*STAGES, "assessment", "done"]
    assert shares[-1] == 1
    assert shares.count(1) == 1


# --- many pairs ---------------------------------------------------------------------------------


def test_frames_are_prepared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    estimator = Estimator(SMALL)
    described = []
    real = estimator._descriptor.bits
    monkeypatch.setattr(
        estimator._descriptor, "bits", lambda im: described.append(im.shape) or real(im)
    )
    first, second = (estimator.frame(image) for image in shifted(5, -3))
    there, matched = estimator.between(first, second)
    back, _ = estimator.between(second, first)
    assert len(described) == len(set(described)) * 2  # each scale of each image
    assert there.backward is not None
    # It starts from the forward flow, and ends near to what it would be by itself.
    assert endpoint_error(there.backward, back.flow).mean() < 0.02
    assert same_bytes(there.flow, usual().flow)
    again, _ = estimator.between(first, second, previous=matched)
    assert error(again.flow, 5, -3) < 0.05


def test_frames_at_smaller_scales() -> None:
    """Incomplete boxes are completed by the outermost pixels."""
    image = texture(5, 7)
    small = Estimator(SMALL).frame(image).at(4)
    rows, columns = (np.minimum(np.arange(8), side - 1) for side in image.shape[:2])
    padded = image[np.ix_(rows, columns)] / 255
    assert small.dtype == np.float32
    assert np.allclose(small, padded.reshape(2, 4, 2, 4, 3).mean(axis=(1, 3)), atol=1e-6)


def test_only_trusted_matches_are_refined_by_the_data(monkeypatch: pytest.MonkeyPatch) -> None:
    weights = []

    def spy(first: Array, second: Array, flow: Array, weight: Array, **more: Any) -> Array:
        weights.append(weight)
        return refine(first, second, flow, weight, **more)

    monkeypatch.setattr(variational, "refine", spy)
    estimator = Estimator(SMALL, scale=4)
    # In the unrelated half, what both directions agree on is an accident.
    images = [image.copy() for image in shifted(8, -4, 80, 110)]
    images[1][:, 50:] = texture(80, 60, 1)
    first, second = (estimator.frame(image) for image in images)
    _, matched = estimator.between(first, second)
    # Forward at half the size and the full one; backward from the forward flow, at full size.
    assert [weight.shape for weight in weights] == [(40, 55), (80, 110), (80, 110)]
    for k, direction in enumerate(matched.directions):
        trusted = direction.trusted
        assert 0 < trusted.mean() < 1
        expected = np.repeat(np.repeat(trusted, 4, axis=0), 4, axis=1)[:, :110]
        assert (weights[k + 1] == expected).all()
        if k == 0:
            assert (weights[0] == expected[::2, ::2]).all()


@pytest.mark.parametrize("completion", [LabelingCompletion(), ChoiceCompletion()])
@pytest.mark.parametrize("finest", [1, 2])
def test_what_the_confidence_is_made_of(finest: int, completion: LabelingCompletion) -> None:
    """Of the flow, and of the descriptors and matches of the matching scale."""
    refinement = dataclasses.replace(SMALL.refinement, finest=finest)  # type: ignore[type-var]
    config = dataclasses.replace(SMALL, refinement=refinement, completion=completion)
    estimator = Estimator(config, scale=2)
    frames = tuple(estimator.frame(image) for image in moving_square()[:2])
    result, matched = estimator.between(*frames)
    assert result.backward is not None
    hidden, certain = assess(
        (frames[0], frames[1]),
        [result.flow, result.backward],
        (frames[0].bits(2), frames[1].bits(2)),
        matched.directions,
        2,
        finest=finest,
        completion=completion.method,
    )
    assert same_bytes(result.occlusion, hidden)
    assert same_bytes(result.confidence, certain)


def test_calc() -> None:
    estimator, images = Estimator(SMALL), shifted(5, -3)
    expected = usual().flow
    flow = np.full((60, 80, 2), np.nan, np.float32)
    assert same_bytes(estimator.calc(*images, flow), expected)
    assert same_bytes(flow, expected)
    assert same_bytes(estimator.calc(*images, None), expected)
    with pytest.raises(
        InputError, match=r"have the shape \(60, 80, 2\), but is float32 and \(60, 80\)"
    ):
        estimator.calc(*images, np.zeros((60, 80), np.float32))

"""Augmentation: whatever happens to the images happens to the flow."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from _learning import one_thread  # noqa: E402, F401
from _problems import Array  # noqa: E402
from hamflow import warp  # noqa: E402
from hamflow.learning.augment import Sample, _blurred, augment  # noqa: E402
from hamflow.learning.config import AugmentConfig  # noqa: E402

PLAIN = AugmentConfig(mirror=False, photometric=0, blur=0, noise=0)


def smooth_sample(height: int = 48, width: int = 48) -> Sample:
    """A smooth scene that is turned, enlarged and moved; its second frame is known exactly."""
    y, x = np.mgrid[:height, :width].astype(np.float64)

    def scene(x: Array, y: Array) -> Array:
        waves = [
            np.sin(0.31 * x + 0.13 * y + 0.4),
            np.cos(0.17 * x - 0.29 * y),
            np.sin(0.23 * y + 0.11 * x + 1),
        ]
        return 0.5 + 0.4 * np.stack(waves, axis=-1)

    # Where a point of frame 1 is in frame 2, and back.
    forward = np.array([[1.04, -0.06], [0.05, 0.97]])
    moved = np.array([2.3, -1.7])
    back = np.linalg.inv(forward)
    target = np.stack([x, y], axis=-1) @ forward.T + moved
    source = (np.stack([x, y], axis=-1) - moved) @ back.T
    flow = target - np.stack([x, y], axis=-1)
    inside = (target >= 0).all(axis=2) & (target <= [width - 1, height - 1]).all(axis=2)
    return Sample(
        scene(x, y).astype(np.float32),
        scene(source[..., 0], source[..., 1]).astype(np.float32),
        flow.astype(np.float32),
        ~inside,
    )


def consistency(sample: Sample) -> float:
    """How far the second frame, fetched by the flow, is from the first where it is visible."""
    height, width = sample.flow.shape[:2]
    fetched = warp(sample.image1, sample.flow)
    y, x = np.mgrid[:height, :width]
    target = sample.flow + np.stack([x, y], axis=-1)
    inside = (target >= 1).all(axis=2) & (target <= [width - 2, height - 2]).all(axis=2)
    visible = inside & ~sample.occluded
    assert visible.mean() > 0.5
    return float(np.abs(fetched - sample.image0)[visible].max())


def test_the_scene_itself_is_consistent() -> None:
    sample = smooth_sample()
    assert consistency(sample) < 0.02
    # The test bites: half a pixel of error shows.
    assert consistency(replace(sample, flow=sample.flow + np.float32(0.5))) > 0.06


@pytest.mark.parametrize("size", [(48, 48), (40, 52)], ids=str)
def test_mirrored_and_transposed(size: tuple[int, int]) -> None:
    sample = smooth_sample(*size)
    seen = set()
    for seed in range(48):
        out = augment(sample, replace(PLAIN, mirror=True), None, np.random.default_rng(seed))
        assert out.flow.shape == sample.flow.shape
        assert consistency(out) < 0.02
        assert all(a.flags.c_contiguous for a in (out.image0, out.image1, out.flow, out.occluded))
        seen.add(out.image0.tobytes())
    # All symmetries of the square, or of the rectangle: batches keep one size.
    assert len(seen) == (8 if size[0] == size[1] else 4)


def test_cropped() -> None:
    sample = smooth_sample()
    corners = set()
    for seed in range(8):
        out = augment(sample, PLAIN, (30, 36), np.random.default_rng(seed))
        assert out.flow.shape == (30, 36, 2)
        assert consistency(out) < 0.02
        corners.add(out.image0[0, 0].tobytes())
    assert len(corners) > 4
    whole = augment(sample, PLAIN, (400, 36), np.random.default_rng(0))
    assert whole.flow.shape == (48, 36, 2)


def test_rescaled() -> None:
    sample = smooth_sample()
    sizes = set()
    for seed in range(8):
        out = augment(sample, replace(PLAIN, rescale=1.5), None, np.random.default_rng(seed))
        sizes.add(out.flow.shape[:2])
        scale = out.flow.shape[0] / 48
        assert 1 / 1.5 - 0.02 < scale < 1.5 + 0.02
        # The flow of the nearest pixel is off by what it changes over half a pixel.
        assert consistency(out) < 0.06
        center = out.flow[out.flow.shape[0] // 2, out.flow.shape[1] // 2] / scale
        np.testing.assert_allclose(center, sample.flow[24, 24], atol=0.1)
    assert len(sizes) > 4


def test_rescaled_is_never_smaller_than_the_crop() -> None:
    for seed in range(12):
        config = replace(PLAIN, rescale=4.0)
        out = augment(smooth_sample(), config, (40, 33), np.random.default_rng(seed))
        assert out.flow.shape == (40, 33, 2)


def test_all_at_once_is_consistent() -> None:
    config = replace(PLAIN, mirror=True, rescale=1.4)
    for seed in range(12):
        out = augment(smooth_sample(), config, (34, 34), np.random.default_rng(seed))
        assert consistency(out) < 0.06


def test_unknown_and_hidden_pixels_move_along() -> None:
    sample = smooth_sample()
    flow, occluded = sample.flow.copy(), np.zeros((48, 48), bool)
    flow[5:9, 10:20] = np.nan
    occluded[30:34, 2:6] = True
    # Bright marks where they are.
    image = np.where(np.isnan(flow[..., :1]), 1, np.where(occluded[..., None], 0.5, 0))
    marked = Sample(np.repeat(image, 3, 2).astype(np.float32), sample.image1, flow, occluded)
    for seed in range(6):
        out = augment(marked, replace(PLAIN, mirror=True), (40, 40), np.random.default_rng(seed))
        assert np.array_equal(out.image0[..., 0] == 1, np.isnan(out.flow[..., 0]))
        assert np.array_equal(out.image0[..., 0] == 0.5, out.occluded)


def test_light_sharpness_and_noise_leave_the_flow() -> None:
    sample = smooth_sample()
    for config in (
        replace(PLAIN, photometric=1.0),
        replace(PLAIN, blur=1.0, max_blur=2.0),
        replace(PLAIN, noise=0.1),
    ):
        changes = []
        for seed in range(4):
            out = augment(sample, config, None, np.random.default_rng(seed))
            assert np.array_equal(out.flow, sample.flow)
            for before, after in ((sample.image0, out.image0), (sample.image1, out.image1)):
                assert after.dtype == np.float32
                assert 0 <= after.min() <= after.max() <= 1
                changes.append(np.abs(after - before).mean())
        assert 1e-3 < np.mean(changes) < 0.2


def test_the_two_images_change_differently() -> None:
    image = smooth_sample().image0
    still = Sample(image, image, np.zeros((48, 48, 2), np.float32), np.zeros((48, 48), bool))
    for config in (replace(PLAIN, photometric=1.0), replace(PLAIN, noise=0.1)):
        out = augment(still, config, None, np.random.default_rng(1))
        assert np.abs(out.image0 - out.image1).mean() > 1e-3


def test_same_seed_same_bytes_and_the_input_stays() -> None:
    sample = smooth_sample()
    copies = [array.copy() for array in vars(sample).values()]
    config = AugmentConfig(rescale=1.3, photometric=1.0, blur=1.0)
    outs = [augment(sample, config, (32, 32), np.random.default_rng(s)) for s in (7, 7, 8)]
    for first, second in zip(vars(outs[0]).values(), vars(outs[1]).values(), strict=True):
        assert first.tobytes() == second.tobytes()
    assert not np.array_equal(outs[0].image0, outs[2].image0)
    for before, after in zip(copies, vars(sample).values(), strict=True):
        assert np.array_equal(before, after)


def test_nothing_at_all() -> None:
    sample = smooth_sample()
    out = augment(sample, PLAIN, None, np.random.default_rng(0))
    for before, after in zip(vars(sample).values(), vars(out).values(), strict=True):
        assert np.array_equal(before, after)


def test_blur_keeps_the_mean_and_loses_detail() -> None:
    rng = np.random.default_rng(0)
    image = rng.random((32, 40, 3), np.float32)
    blurred = _blurred(image, 1.5)
    assert blurred.std() < 0.4 * image.std()
    np.testing.assert_allclose(blurred.mean(), image.mean(), atol=0.01)
    constant = np.full((5, 6, 3), 0.25, np.float32)
    np.testing.assert_allclose(_blurred(constant, 2.0), constant, rtol=1e-5)
    assert _blurred(image, 0.1) is image

"""What counts as an image, and what is kept of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

import hamflow
from _problems import same_bytes
from _route import SMALL, error, estimate, shifted, texture, usual
from hamflow import Estimator
from hamflow.io.sources import ArraySource
from hamflow.pipeline import frame as frame_module
from hamflow.pipeline.box import Box
from hamflow.pipeline.frame import LargeFrame

Array = NDArray[Any]


def pixels(image: Any) -> Array:
    return Estimator(SMALL).frame(image).pixels


def test_kinds_of_numbers() -> None:
    image = texture(20, 30)
    expected = pixels(image)
    assert expected.dtype == np.float32
    assert expected.shape == (20, 30, 3)
    for other in (
        image.astype(np.uint16) * np.uint16(257),
        image / 255,
        (image / 255).astype(np.float32),
        (image / 255).tolist(),
    ):
        assert np.allclose(pixels(other), expected, rtol=0, atol=1e-7)
    turned = np.ascontiguousarray(image.transpose(1, 0, 2)).transpose(1, 0, 2)
    assert same_bytes(pixels(turned), expected)
    assert np.allclose(pixels((image / 255).astype(np.float16)), expected, rtol=0, atol=1e-3)
    black_and_white = image[..., 0] > 128
    assert (pixels(black_and_white) == black_and_white[..., None]).all()


@pytest.mark.parametrize("dtype", [np.uint16, np.float64])
def test_flow_of_other_numbers(dtype: Any) -> None:
    largest = 65535 if dtype == np.uint16 else 1
    images = [(image / 255 * largest).round(9).astype(dtype) for image in shifted(5, -3)]
    assert abs(estimate(*images).flow - usual().flow)[12:-12, 12:-12].max() < 0.02


def test_kinds_of_images() -> None:
    color = texture(20, 30)
    expected = pixels(color)
    picture = Image.fromarray(color)
    alpha = np.dstack([color, np.arange(600).reshape(20, 30) % 256]).astype(np.uint8)
    for same in (alpha, picture, picture.convert("RGBA")):
        assert same_bytes(pixels(same), expected)
    gray = color[..., 1]
    for same in (gray, gray[..., None], Image.fromarray(gray)):
        assert same_bytes(pixels(same), np.ascontiguousarray(expected[..., [1, 1, 1]]))


def test_gray_images() -> None:
    assert error(estimate(*(image[..., 1] for image in shifted(5, -3))).flow, 5, -3) < 0.05


@pytest.mark.parametrize("kind", [Path, str])
def test_files(tmp_path: Path, kind: Any) -> None:
    names = [kind(tmp_path / f"{k}.png") for k in range(2)]
    for image, name in zip(shifted(5, -3), names, strict=True):
        hamflow.write_image(name, image)
    assert same_bytes(estimate(*names).flow, usual().flow)


@pytest.mark.parametrize("mode", ["P", "LA", "CMYK", "1", "I;16"])
def test_modes_of_pictures(mode: str) -> None:
    """What a picture looks like counts, not the numbers that it is stored as."""
    gray = mode == "I;16"
    image = texture(20, 30)[..., 0].astype(np.uint16) * 200 if gray else texture(20, 30)
    picture = Image.fromarray(image) if gray else Image.fromarray(image).convert(mode)
    if gray:
        assert np.allclose(pixels(picture), image[..., None] / 65535)
    else:
        assert np.allclose(pixels(picture), np.asarray(picture.convert("RGB")) / 255)


def test_a_large_frame_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is computed part by part has the bytes of what is computed at once."""
    monkeypatch.setattr(frame_module, "_READ", 3000)
    monkeypatch.setattr(frame_module, "DESCRIBED", 200 * 200)
    image = texture(203, 301)
    estimator = Estimator("balanced")
    usual_frame = estimator.frame(image)
    large = LargeFrame(ArraySource(image), estimator._descriptor, estimator._coarse)
    assert large.shape == usual_frame.shape
    for scale in (1, 2, 4, 16):
        assert same_bytes(large.at(scale), usual_frame.at(scale))
        assert same_bytes(large.bits(scale), usual_frame.bits(scale))
        assert same_bytes(large.wide_bits(scale), usual_frame.wide_bits(scale))
        box = Box(3, 2, 5, 7)
        part = large.part(box, scale).pixels
        assert same_bytes(part, np.ascontiguousarray(usual_frame.at(scale)[box.slices]))
        assert same_bytes(part, usual_frame.part(box, scale).pixels)

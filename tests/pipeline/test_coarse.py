"""The coarse descriptor beside the local one, and what it finds as a prior of the next scale."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hamflow.estimation
from _networks import COARSE, random_image, random_weights
from hamflow import Estimator, EstimatorConfig, Window
from hamflow.crf.joint_model import JointModel
from hamflow.descriptors import load_model
from hamflow.descriptors.weights import save_weights
from hamflow.errors import InputError
from hamflow.matching.local_model import LocalModel
from hamflow.pipeline.clock import Clock
from hamflow.pipeline.frame import Frame
from hamflow.pipeline.matches import Found
from hamflow.pipeline.scales import SearchStep
from hamflow.pipeline.search import search
from hamflow.refinement import AffineCompletion


@pytest.fixture
def model(tmp_path: Path) -> str:
    path = tmp_path / "cells.safetensors"
    save_weights(path, COARSE, random_weights(COARSE))
    return str(path)


def config(model: str, **changes: Any) -> EstimatorConfig:
    completion = AffineCompletion(neighbors=20, rounds=2)
    small = EstimatorConfig(model="pairs", coarse_model=model, completion=completion)
    return replace(small, **changes)


def smooth(height: int = 120, width: int = 160) -> Any:
    image = random_image(height, width, 3).astype(np.float32)
    for axis in (0, 1) * 3:
        image = (image + np.roll(image, 1, axis) + np.roll(image, -1, axis)) / 3
    return (image / 255).clip(0, 1)


@pytest.mark.parametrize("scale", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("shape", [(37, 50), (64, 96)])
def test_bits_of_a_pixel_are_its_own_and_those_of_its_cell(
    model: str, scale: int, shape: tuple[int, int]
) -> None:
    image = random_image(*shape, 3)
    frame = Frame(image, load_model("pairs"), "image", load_model(model))
    bits = frame.wide_bits(scale)
    size = frame.at(scale).shape[:2]
    assert bits.shape == (*size, 2)
    assert (bits[..., 0] == frame.bits(scale)).all()
    cells = load_model(model).bits(frame.at(max(1, scale // 4)))
    step = max(1, 4 // scale)
    y, x = np.indices(size)
    assert (bits[..., 1] == cells[y // step, x // step]).all()


def steps_of(monkeypatch: pytest.MonkeyPatch, settings: EstimatorConfig, **more: Any) -> list[Any]:
    """The steps of the search for an image that moves by (9, -6)."""
    seen: list[SearchStep] = []
    real = hamflow.estimation.search

    def spy(frames: Any, step: SearchStep, *others: Any) -> list[Found]:
        seen.append(step)
        return real(frames, step, *others)

    monkeypatch.setattr(hamflow.estimation, "search", spy)
    image = smooth()
    result = Estimator(settings, **more).estimate(image, np.roll(image, (-6, 9), (0, 1)))
    inner = result.flow[30:90, 40:120]
    assert np.abs(inner - (9, -6)).max() < 0.5
    return seen


def test_the_coarsest_scale_uses_it_and_the_next_its_result(
    monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    coarse, fine = steps_of(monkeypatch, config(model, scale=2))
    assert coarse.coarse
    assert coarse.priors is None
    assert not fine.coarse
    assert len(fine.priors) == 2
    prior = fine.priors[0]
    assert prior.flow.shape[:2] == prior.weight.shape == (60, 80)
    assert np.median(prior.flow, axis=(0, 1)) == pytest.approx([4.5, -3], abs=0.5)
    assert 0 <= prior.weight.min() <= prior.weight.max() <= config(model).prior
    assert np.median(prior.weight) > 0


def test_no_prior_at_full_size(monkeypatch: pytest.MonkeyPatch, model: str) -> None:
    coarse, fine = steps_of(monkeypatch, config(model))
    assert (coarse.scale, fine.scale) == (2, 1)
    assert coarse.coarse
    assert fine.priors is None


@pytest.mark.parametrize(
    "changes",
    [
        {"matcher": LocalModel()},
        {"bidirectional": False},
        {"levels": 1},
        {"matcher": JointModel(tau1=4.0, tau2=50.0, arithmetic="float32"), "scale": 2},
    ],
)
def test_with_other_settings(
    monkeypatch: pytest.MonkeyPatch, model: str, changes: dict[str, Any]
) -> None:
    first, *_ = steps_of(monkeypatch, config(model, **changes))
    assert first.coarse


@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (5, 4), (30, 50)])
def test_tiny_and_gray_images(model: str, shape: tuple[int, int]) -> None:
    image = random_image(*shape)
    result = Estimator(config(model)).estimate(image, image)
    assert (result.flow == 0).all()


def test_cells_find_what_local_bits_cannot() -> None:
    """Local bits that say nothing, and cells that know everything."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2**64, (40, 60), np.uint64)
    moved = np.roll(codes, (2, -5), (0, 1))
    fields = {0: codes, 1: moved}

    class Nothing:
        def bits(self, image: Any) -> Any:
            return np.zeros(image.shape[:2], np.uint64)

    class Cells:
        def bits(self, image: Any) -> Any:
            return fields[int(image[0, 0, 0] > 0.5)]

    images = [np.full((160, 240, 3), value, np.uint8) for value in (0, 255)]
    frames = tuple(Frame(i, Nothing(), "image", Cells()) for i in images)  # type: ignore[arg-type]
    step = SearchStep(4, (Window.of(16),) * 2, coarse=True)
    found = search(frames, step, JointModel(tau1=4.0, tau2=50.0), Clock(None))  # type: ignore[arg-type]
    assert (found[0].flow[5:35, 8:52] == (-5, 2)).all()
    assert (found[1].flow[5:35, 8:52] == (5, -2)).all()


def test_without_it_and_without_a_prior(monkeypatch: pytest.MonkeyPatch) -> None:
    coarse, fine = steps_of(monkeypatch, config("", prior=0.0))
    assert not coarse.coarse
    assert fine.priors is None


def test_a_given_window_needs_neither(monkeypatch: pytest.MonkeyPatch, model: str) -> None:
    (only,) = steps_of(monkeypatch, config(model), window=32)
    assert not only.coarse
    assert only.priors is None


def test_settings_are_checked() -> None:
    with pytest.raises(InputError, match="prior"):
        EstimatorConfig(prior=300.0)
    with pytest.raises(InputError, match="coarse_model"):
        EstimatorConfig(coarse_model=3)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="cells"):
        Estimator(EstimatorConfig(coarse_model="default"))

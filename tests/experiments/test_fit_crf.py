"""What the fit of the joint model's parameters finds, and what it refuses."""

from __future__ import annotations

import itertools
import math
from dataclasses import asdict
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from _fits import QUICK, bowl, one_pair, same, values
from experiments.fit_crf.case import FitCase
from experiments.fit_crf.fitting import FitResult, fit
from experiments.fit_crf.points import FitStep
from hamflow import crf
from hamflow.crf import CrfConfig
from hamflow.datasets import demo_scene
from hamflow.datasets.folder import FolderDataset
from hamflow.descriptors import pair_bits
from hamflow.errors import InputError
from hamflow.evaluation import epe_metrics
from hamflow.matching import local_flow

# --- the fit -------------------------------------------------------------------------------------


def test_starts_with_the_paper_and_never_gets_worse(fitted: FitResult) -> None:
    assert asdict(fitted.start.config) == asdict(CrfConfig(outer=2, inner=2))
    assert fitted.points[0] is fitted.start
    assert fitted.best in fitted.points
    # On these scenes there is something to gain.
    assert fitted.best.objective < fitted.start.objective < fitted.wta.objective
    assert fitted.wta.objective == pytest.approx(1)
    assert fitted.best.objective <= 1.001 * min(point.objective for point in fitted.points)


def test_table_is_complete(fitted: FitResult) -> None:
    assert fitted.names == ("group/one", "group/two")
    assert fitted.ended == "budget"
    assert len(fitted.points) == QUICK["budget"]
    assert len({tuple(values(point).values()) for point in fitted.points}) == QUICK["budget"]
    for point in (*fitted.points, fitted.wta):
        assert len(point.epe) == len(point.capped) == 2
        assert all(0 < capped <= epe for epe, capped in zip(point.epe, point.capped, strict=True))
        assert point.seconds > 0


def test_errors_are_those_of_the_solver(fitted: FitResult, pairs: FolderDataset) -> None:
    for place, pair in enumerate(pairs):
        flow = crf.solve(
            bits0=pair_bits(pair.image0),
            bits1=pair_bits(pair.image1),
            image=pair.image0,
            window=20,
            config=fitted.best.config,
        ).flow
        assert fitted.best.epe[place] == pytest.approx(epe_metrics(flow, pair.flow).epe_all)
        flow = local_flow(pair.image0, pair.image1, 20, describe=pair_bits)
        assert fitted.wta.epe[place] == pytest.approx(epe_metrics(flow, pair.flow).epe_all)


def test_deterministic(fitted: FitResult, pairs: FolderDataset) -> None:
    assert same(fit(pairs, **QUICK), fitted)


def test_defaults_stay_the_papers() -> None:
    assert values(SimpleNamespace(config=CrfConfig())) == {  # type: ignore[arg-type]
        "tau1": 0.25,
        "tau2": 25.0,
        "delta": 2.0,
        "c_outside": 0.0,
        "alpha": 8.5,
    }


@pytest.mark.parametrize("objective", ["relative", "capped", "epe"])
def test_objectives(objective: Any) -> None:
    pairs = [one_pair(), one_pair(**vars(demo_scene(40, 48, 1)))]
    result = fit(pairs, window=12, scale=1, budget=2, cap=0.8, objective=objective)
    for point in result.points:
        ratios = np.array(point.capped) / result.wta.capped
        expected = {
            "relative": np.sqrt(ratios[0] * ratios[1]),
            "capped": np.mean(point.capped),
            "epe": np.mean(point.epe),
        }
        assert point.objective == pytest.approx(expected[objective], rel=0.01)
        assert max(point.capped) <= 0.8 < max(result.wta.epe)


def test_finds_a_minimum(monkeypatch: pytest.MonkeyPatch) -> None:
    optimum = {"tau1": 4.0, "tau2": 100.0, "delta": 4.0, "c_outside": -24.0, "alpha": 4.25}
    asked = bowl(monkeypatch, **optimum)
    result = fit([one_pair()], budget=200)
    assert result.ended == "converged"
    assert values(result.best) == optimum
    assert len(asked) == len(result.points) == len(set(asked)) < 80


def test_from_zero_and_from_odd_values(monkeypatch: pytest.MonkeyPatch) -> None:
    bowl(monkeypatch, tau1=1.0, tau2=8.0, delta=5.0, alpha=2.0)
    start = CrfConfig(tau1=0, tau2=0, delta=5, alpha=0)
    result = fit([one_pair()], start, budget=300)
    # Nearest to that: along a diagonal of tau2 >= tau1, no step may leave the model.
    assert all(point.config.tau1 <= point.config.tau2 for point in result.points)
    assert values(result.best) == {
        "tau1": 1.0,
        "tau2": 8.0,
        "delta": 5.0,
        "c_outside": 0.0,
        "alpha": 2.0,
    }


def test_fits_only_what_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    bowl(monkeypatch, tau1=4.0, tau2=100.0, alpha=1.0)
    result = fit([one_pair()], parameters=("tau2",))
    assert {**values(result.best), "tau2": 25.0} == values(result.start)
    assert result.best.config.tau2 == 100


def test_what_hardly_matters_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """A gain of less than 0.1 % is no reason to leave the paper's values."""
    bowl(monkeypatch)
    result = fit([one_pair()])
    assert result.ended == "converged"
    assert result.best is result.start


def test_callback(pairs: FolderDataset) -> None:
    steps: list[FitStep] = []
    result = fit(pairs, **{**QUICK, "budget": 3}, callback=steps.append)
    assert [(step.points, step.pairs) for step in steps] == list(
        itertools.product(range(3), range(2))
    )
    assert steps[0].best is None
    assert steps[2].best is result.start


# --- scale and truth -----------------------------------------------------------------------------


def test_scale() -> None:
    """Errors are in pixels of full resolution; incomplete boxes do not count."""
    rng = np.random.default_rng(0)
    small = rng.integers(0, 256, (30, 40, 3), np.uint8)
    image0, image1 = (
        np.repeat(np.repeat(image, 3, axis=0), 3, axis=1)
        for image in (small, np.roll(small, 2, axis=1))
    )
    flow = np.full((92, 121, 2), (6.0, 0.0), np.float32)
    flow[:, 114:] = np.nan  # leaves the frame
    flow[90:], flow[:, 120:] = 1e3, 1e3
    flow[0, 0] = 6, 4
    pad = ((0, 2), (0, 1), (0, 0))
    pair = one_pair(image0=np.pad(image0, pad), image1=np.pad(image1, pad), flow=flow)
    case = FitCase.of(pair, 3)
    assert (case.image == small).all()
    assert (case.bits0 == pair_bits(small)).all()
    right = np.full((30, 40, 2), (2.0, 0.0), np.float32)
    pixels = 90 * 114
    assert case.errors(right, 20) == pytest.approx((4 / pixels, 4 / pixels))
    assert case.errors(right, 1) == pytest.approx((4 / pixels, 1 / pixels))
    off = right + np.float32([0, -1])
    assert case.errors(off, 1e9)[0] == pytest.approx(3 + 4 / pixels)
    assert fit([pair], window=8, scale=3, budget=1).best.epe[0] < 0.5


@pytest.mark.parametrize("kind", ["gray", "uint16", "float"])
def test_other_images(kind: str) -> None:
    scene = demo_scene(40, 48)
    images = [scene.image0, scene.image1]
    if kind == "gray":
        images = [image[..., 0] for image in images]
    elif kind == "uint16":
        images = [image.astype(np.uint16) * 257 for image in images]  # type: ignore[misc]
    else:
        images = [image.astype(np.float32) / 255 for image in images]  # type: ignore[misc]
    case = FitCase.of(one_pair(image0=images[0], image1=images[1]), 2)
    assert case.image.dtype == images[0].dtype
    assert case.image.shape == (20, 24, *images[0].shape[2:])
    assert case.bits0.shape == (20, 24)


# --- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"budget": 0}, "budget must be at least 1"),
        ({"budget": 2.5}, "budget must be a whole number"),
        ({"scale": 0}, "scale must be at least 1"),
        ({"scale": 73}, "scale = 73 is too large for the pair 'group/one', which has 96×72"),
        ({"cap": 0.0}, "cap must be a positive"),
        ({"cap": math.inf}, "cap must be finite"),
        ({"window": 3}, "even"),
        ({"objective": "best"}, "objective must be one of"),
        ({"parameters": ()}, "parameters must be some of"),
        ({"parameters": ("tau3",)}, "not 'tau3'"),
        ({"resume": True}, "resume needs a log"),
    ],
)
def test_bad_arguments(changes: dict[str, Any], message: str, pairs: FolderDataset) -> None:
    with pytest.raises(InputError, match=message) as error:
        fit(pairs, **{**QUICK, **changes})
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"flow": np.full((40, 48, 2), np.nan)}, "no pixel of known flow"),
        ({"flow": np.zeros((40, 47, 2))}, "must have the same size"),
        ({"flow": np.zeros((40, 48))}, "shape"),
        ({"image1": np.zeros((40, 49, 3), np.uint8)}, "must have the same size"),
    ],
)
def test_bad_pairs(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        fit([one_pair(**changes)], **QUICK)


def test_no_pairs() -> None:
    with pytest.raises(InputError, match="at least one"):
        fit([], **QUICK)

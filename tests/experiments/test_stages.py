"""The errors of the stages, each started from the truth."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tyro

from _route import SMALL
from _trees import save_pair
from experiments import stages
from hamflow import Estimator, write_image
from hamflow.datasets.synthetic import SyntheticConfig, SyntheticScene, load_textures, render_scene

CONFIG = SyntheticConfig(height=96, width=128, max_displacement=12.0, clean=True)


@pytest.fixture(scope="module")
def scene() -> SyntheticScene:
    return render_scene(CONFIG, 3, load_textures())


def test_errors(scene: SyntheticScene) -> None:
    errors = stages.stage_errors(Estimator(replace(SMALL, scale=2)), scene)
    assert tuple(errors) == stages.COLUMNS
    assert all(np.isfinite(list(errors.values())))
    # The more is known, the smaller the error.
    assert errors["upsampled"] < errors["visible"] <= errors["now"]
    assert errors["matches"] <= errors["now"] + 0.1
    assert errors["truth"] < errors["now"]


def test_at_full_scale_the_upsampled_truth_is_the_truth(scene: SyntheticScene) -> None:
    errors = stages.stage_errors(Estimator(replace(SMALL, scale=1)), scene)
    assert errors["upsampled"] == 0


def test_sparse_truth(scene: SyntheticScene) -> None:
    flow = scene.flow.copy()
    flow[::2], flow[:, 1::3] = np.nan, np.nan
    errors = stages.stage_errors(
        Estimator(replace(SMALL, scale=2)), replace(scene, flow=flow, occluded=None)
    )
    assert errors["completed"] < 1.5
    assert all(np.isfinite(list(errors.values())))


def test_command(
    scene: SyntheticScene,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    save_pair(tmp_path / "group" / "one", scene)
    file = tmp_path / "errors.json"
    words = ["stages", str(tmp_path), "--preset", "fast", "--json", str(file)]
    monkeypatch.setattr(sys, "argv", words)
    tyro.cli(stages.main)
    assert "| group/one | " in capsys.readouterr().out
    assert "group/one" in file.read_text()


def test_command_on_rendered_scenes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    write_image(
        tmp_path / "photograph.png",
        np.random.default_rng(0).integers(0, 256, (64, 64, 3), np.uint8),
    )
    monkeypatch.setattr(stages, "CONFIG", CONFIG)
    monkeypatch.setattr(
        sys, "argv", ["stages", str(tmp_path), "--rendered", "2", "--preset", "realtime"]
    )
    tyro.cli(stages.main)
    rows = [line.split(" | ") for line in capsys.readouterr().out.splitlines()[2:]]
    assert [row[0] for row in rows] == ["| scene 0", "| scene 1", "| mean"]
    errors = np.array([[float(cell.strip(" |")) for cell in row[1:]] for row in rows])
    np.testing.assert_allclose(errors[2], errors[:2].mean(axis=0), atol=0.011)

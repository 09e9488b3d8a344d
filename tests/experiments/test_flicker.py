"""The script that measures the flicker of videos."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tyro

from experiments.scripts import flicker
from hamflow import write_image


def test_change_along_tracks() -> None:
    """A flow that stays the same along its tracks does not flicker, whatever it is elsewhere."""
    first, second = np.zeros((2, 20, 30, 2), np.float32)
    first[:, :15], second[:, 4:19] = [4, 0], [4, 0]
    assert np.nanmax(flicker.change(first, second)[:, :15]) == 0
    second[10, 12] = [4, 3]
    assert flicker.change(first, second)[10, 8] == 3
    first[0, 0] = [-5, 0]
    assert np.isnan(flicker.change(first, second)[0, 0])


def test_a_shaking_camera() -> None:
    rng = np.random.default_rng(0)
    scene = rng.integers(0, 256, (14, 18, 3), np.uint8)
    still, hidden = np.zeros((14, 18, 2), np.float32), np.zeros((14, 18), np.bool_)
    pair = flicker.SyntheticScene(scene, scene, still, hidden, still, hidden)
    for found in flicker.shaken([pair] * 5, seed=1):
        assert found.image0.shape == (12, 16, 3)
        u, v = found.flow[6, 8].astype(int)
        assert (found.flow == [u, v]).all()
        assert (found.image1[6 + v, 8 + u] == found.image0[6, 8]).all()
        assert found.occluded.sum() == 12 * 16 - (12 - abs(v)) * (16 - abs(u))
    for found in flicker.shaken([pair] * 2, seed=2):
        assert not found.flow.any()


def test_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    small = replace(flicker.CONFIG, height=66, width=98, max_displacement=4, clean=True)
    monkeypatch.setattr(flicker, "CONFIG", small)
    monkeypatch.setattr(flicker, "FRAMES", 3)
    rng = np.random.default_rng(0)
    (tmp_path / "photographs").mkdir()
    (tmp_path / "frames").mkdir()
    picture = rng.integers(0, 256, (80, 120, 3), np.uint8)
    write_image(tmp_path / "photographs" / "a.png", picture)
    for k in range(4):
        write_image(tmp_path / "frames" / f"{k}.png", picture[:64, k : 96 + k])
    options = ["--count", "1", "--presets", "fast", "--videos", str(tmp_path / "frames")]
    monkeypatch.setattr("sys.argv", ["flicker", str(tmp_path / "photographs"), *options])
    tyro.cli(flicker.main)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(": ")[0] for line in lines] == ["fast, off"] * 2 + ["fast, tracks"] * 2
    assert all(0 <= float(line.split("flicker ")[1].split()[0]) < 4 for line in lines)

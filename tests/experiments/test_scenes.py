"""The scripts that time the rendering of scenes, and measure presets on them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tyro

from experiments.scripts import rendered, scenes
from hamflow import write_image


def test_command(capsys: pytest.CaptureFixture[str]) -> None:
    scenes.main(count=1)
    lines = capsys.readouterr().out.splitlines()
    names = ["in the plane", "in space", "in the plane, blurred", "in space, blurred"]
    assert [line.split(": ")[0] for line in lines] == names
    assert all(float(line.split(": ")[1].split()[0]) > 0 for line in lines)


def test_errors_of_presets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    small = replace(rendered.CONFIG, height=64, width=96, max_displacement=8, clean=True)
    monkeypatch.setattr(rendered, "CONFIG", small)
    photographs = tmp_path / "photographs"
    photographs.mkdir()
    rng = np.random.default_rng(0)
    write_image(photographs / "a.png", rng.integers(0, 256, (80, 120, 3), np.uint8))
    arguments = ["rendered", str(photographs), "--count", "2", "--presets", "fast"]
    monkeypatch.setattr("sys.argv", arguments)
    tyro.cli(rendered.main)
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("fast: ")
    everywhere = float(line.split()[1])
    assert 0 < everywhere < 8

"""The script that counts cuts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tyro

from experiments.scripts import cuts
from hamflow import write_image


def test_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    small = replace(cuts.CONFIG, height=64, width=96, max_displacement=8, clean=True)
    monkeypatch.setattr(cuts, "CONFIG", small)
    rng = np.random.default_rng(0)
    write_image(tmp_path / "a.png", rng.integers(0, 256, (80, 120, 3), np.uint8))
    monkeypatch.setattr("sys.argv", ["cuts", str(tmp_path), "--count", "2", "--presets", "fast"])
    tyro.cli(cuts.main)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 11
    assert "fast: scene: 0 of 2 called a cut" in lines[0]
    assert "fast: cut: 2 of 2 called a cut" in lines[8]

"""The script that compares regions with whole images."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tyro

from experiments.scripts import regions
from hamflow import write_image


def test_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    small = replace(regions.CONFIG, height=64, width=96, max_displacement=4, clean=True)
    monkeypatch.setattr(regions, "CONFIG", small)
    monkeypatch.setattr(regions, "REGIONS", ((10, 10, 20, 20),))
    rng = np.random.default_rng(0)
    write_image(tmp_path / "a.png", rng.integers(0, 256, (80, 120, 3), np.uint8))
    monkeypatch.setattr("sys.argv", ["regions", str(tmp_path), "--count", "1", "--presets", "fast"])
    tyro.cli(regions.main)
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("fast: (10, 10, 20, 20): median ")
    assert float(line.split("median ")[1].split(",")[0]) < 4

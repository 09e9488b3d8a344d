"""Scripts that compare versions, and videos with single pairs, on tiny images."""

from __future__ import annotations

import os
import sys

import numpy as np
import pytest
import tyro

import hamflow
from experiments.scripts import versions, videos
from hamflow.datasets.synthetic import SyntheticConfig, load_textures, render_sequence


def test_two_versions_in_turns(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--width", "96", "--height", "64", "--rounds", "1", "--threads", "1"]
    monkeypatch.setattr(versions, "PEERS", ("opencv-dis",))
    python = os.path.relpath(sys.executable)
    monkeypatch.setattr(sys, "argv", ["versions", python, *options, "--presets", "fast", "absent"])
    tyro.cli(versions.main)
    printed = capsys.readouterr().out
    assert "96×64, 1 threads" in printed
    for words in ("fast", "matching", "opencv-dis", "peak memory"):
        assert words in printed
    (row,) = (line for line in printed.splitlines() if line.startswith("│ fast"))
    before, after, ratio = (float(cell) for cell in row.split("│")[2:5])
    assert before > 0
    assert ratio == pytest.approx(before / after, rel=0.2)
    (row,) = (line for line in printed.splitlines() if line.startswith("│ absent"))
    assert not row.replace("absent", "").strip("│ ").replace("│", "").strip()  # no time, no error


def test_pairs_of_a_video_and_by_themselves() -> None:
    config = SyntheticConfig(height=128, width=160, max_displacement=12)
    pairs = render_sequence(config, 1, load_textures(), 4)
    images = [pairs[0].image0, *(pair.image1 for pair in pairs)]
    rows = np.array(
        videos.measured(hamflow.Estimator("fast"), images, [pair.flow for pair in pairs])
    )
    assert rows.shape == (2, 6)  # all pairs but the first; an error and two times, twice
    assert (rows > 0).all()
    lengths = [np.hypot(*np.moveaxis(pair.flow, 2, 0)).mean() for pair in pairs[1:]]
    assert (rows[:, ::3] < np.array(lengths)[:, None]).all()  # better than no motion

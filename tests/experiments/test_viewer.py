"""The script that measures how long one waits for the local page."""

from __future__ import annotations

import re

import pytest
import tyro

from experiments.scripts import viewer


def test_lines(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    words = "viewer --height 100 --width 150 --preset realtime --starts 1 --pixels 3"
    monkeypatch.setattr("sys.argv", words.split())
    tyro.cli(viewer.main)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == [
        "first byte of the page",
        "first byte of the interface",
        "pixel",
        "cancellation",
    ]
    assert all(float(number) > 0 for line in lines for number in re.findall(r"[0-9.]*[0-9]", line))

"""The script that times the rendering of scenes."""

from __future__ import annotations

import pytest

from experiments.scripts import scenes


def test_command(capsys: pytest.CaptureFixture[str]) -> None:
    scenes.main(count=1)
    lines = capsys.readouterr().out.splitlines()
    names = ["in the plane", "in space", "in the plane, blurred", "in space, blurred"]
    assert [line.split(": ")[0] for line in lines] == names
    assert all(float(line.split(": ")[1].split()[0]) > 0 for line in lines)

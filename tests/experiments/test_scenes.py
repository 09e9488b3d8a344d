"""The script that times the rendering of scenes."""

from __future__ import annotations

import pytest

from experiments.scripts import scenes


def test_command(capsys: pytest.CaptureFixture[str]) -> None:
    scenes.main(count=1)
    plane, space = capsys.readouterr().out.splitlines()
    assert plane.startswith("in the plane: ")
    assert space.startswith("in space: ")
    assert all(float(line.split(": ")[1].split()[0]) > 0 for line in (plane, space))

"""The log: silent, unless somebody asks for it."""

from __future__ import annotations

import logging

import pytest

from _problems import run_python
from _route import STAGES, estimate, shifted


def test_a_line_for_each_pair(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "hamflow")
    result = estimate(*shifted(5, -3))
    (record,) = caplog.records
    assert (record.name, record.levelname) == ("hamflow", "INFO")
    line = record.getMessage()
    assert line.startswith("80×60 pixels, window of ")
    assert f"{result.window.du}×{result.window.dv} pixels, matched at scale 1/1" in line
    assert f"gap {result.gap:.2%}, {sum(result.timings.values()):.2f} s" in line


def test_details(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "hamflow")
    estimate(*shifted(5, -3))
    lines = [record.getMessage() for record in caplog.records if record.levelname == "DEBUG"]
    for stage in (*STAGES, "assessment"):
        assert any(line.startswith(f"{stage}: ") and line.endswith(" s") for line in lines), stage
    assert any(line.startswith("search at scale 1/1 in Window(") for line in lines)


def test_silence(caplog: pytest.LogCaptureFixture) -> None:
    estimate(*shifted(5, -3))
    assert caplog.records == []
    code = (
        "import hamflow, logging, numpy as np\n"
        "hamflow.estimate(*np.zeros((2, 20, 30), np.uint8), 'fast', model='pairs')\n"
        "assert logging.getLogger('hamflow').handlers\n"
        "assert not logging.getLogger().handlers"
    )
    run = run_python("-c", code)
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")

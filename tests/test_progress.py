"""How far the work is."""

from __future__ import annotations

import io
from typing import Any

import pytest
import rich.console
from rich.console import Console

import hamflow
from _problems import run_python
from _route import SMALL, shifted
from hamflow import InputError
from hamflow._progress import stage_progress


def test_nobody_wants_to_know() -> None:
    for nothing in (None, False):
        with stage_progress(nothing) as told:
            assert told is None


def test_a_function_is_told_itself() -> None:
    def function(stage: str, share: float) -> None: ...

    with stage_progress(function) as told:
        assert told is function


def test_what_is_neither() -> None:
    wrong: Any = "bar"
    with pytest.raises(InputError, match="progress must be True for a bar, or a function"):
        hamflow.estimate(*shifted(1, 0, 20, 30), SMALL, progress=wrong)


def test_a_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    text = io.StringIO()
    terminal = Console(file=text, force_terminal=True, width=80, color_system=None)
    monkeypatch.setattr(rich.console, "Console", lambda **_: terminal)
    hamflow.estimate(*shifted(1, 0, 20, 30), SMALL, progress=True)
    assert "done" in text.getvalue()
    assert "100%" in text.getvalue()


def test_a_bar_goes_to_standard_error() -> None:
    """And nothing is printed without it."""
    code = (
        "import hamflow, numpy as np\n"
        "image = np.random.default_rng(0).integers(0, 256, (30, 40), np.uint8)\n"
        "hamflow.estimate(image, image, 'fast', model='pairs', progress={})"
    )
    bar, silence = (run_python("-c", code.format(value)) for value in (True, False))
    assert (bar.returncode, bar.stdout) == (0, "")
    assert "100%" in bar.stderr
    assert (silence.returncode, silence.stdout, silence.stderr) == (0, "", "")


def test_a_bar_of_tqdm() -> None:
    """As docs/pictures.md shows it."""
    tqdm = pytest.importorskip("tqdm")
    with tqdm.tqdm(total=1, file=io.StringIO(), bar_format="{desc} {bar}") as bar:

        def progress(stage: str, share: float) -> None:
            bar.set_description(stage)
            bar.update(share - bar.n)

        hamflow.estimate(*shifted(1, 0, 20, 30), SMALL, progress=progress)
        assert bar.n == 1
        assert bar.desc.startswith("done")

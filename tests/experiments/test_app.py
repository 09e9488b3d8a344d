"""The command line of the experiments."""

from __future__ import annotations

import os

import pytest

from _paths import ROOT
from _problems import run_python
from experiments.cli.app import COMMANDS, main

PATHS = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])


def test_part_of_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_info:
        main(["paper", "--help"])
    assert exit_info.value.code == 0
    printed = capsys.readouterr().out
    assert "paper table1" in printed
    assert "bench" not in printed


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "Choose one of bench, paper, fit-crf"),
        (["bench"], "Choose one of kernels, crf, models, pair, training"),
        (["bench", "kernel"], "did you mean 'kernels'?"),
        (["paper", "table4"], "There is no command 'table4'"),
    ],
)
def test_wrong_words(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_info:
        main(words)
    assert exit_info.value.code == 2
    assert said in capsys.readouterr().err


def test_module() -> None:
    code = "import runpy; runpy.run_module('experiments', run_name='__main__')"
    run = run_python("-c", f"import sys; sys.argv[1:] = ['--help']; {code}", PYTHONPATH=PATHS)
    assert run.returncode == 0
    for command in COMMANDS:
        assert command.name in run.stdout

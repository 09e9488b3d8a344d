"""The help pages of all commands, on a screen of 80 columns."""

from __future__ import annotations

import re

import pytest

import hamflow
from experiments.cli.app import COMMANDS as EXPERIMENTS
from experiments.cli.app import main as experiments
from hamflow.cli import _help
from hamflow.cli.app import COMMANDS, Command
from hamflow.cli.main import main

COLUMNS = 80
# A row of a table: what the user types, and if there is room, two spaces and the description.
ROW = re.compile(r"  (?P<typed>(?:--?[a-z]|[A-Z[]{2})\S*(?: \S+)*)(?:  +(?P<text>\S.*))?")


@pytest.fixture(autouse=True)
def screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(COLUMNS))


def page(command: Command, capsys: pytest.CaptureFixture[str]) -> str:
    """What a command prints for --help."""
    with pytest.raises(SystemExit) as exit_info:
        (main if command in COMMANDS else experiments)([*command.name.split(), "--help"])
    assert exit_info.value.code == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    return printed.out


def rows(printed: str) -> dict[str, str]:
    """The arguments and options of a page, with the beginnings of their descriptions."""
    found: dict[str, str] = {}
    typed = None
    for line in printed.splitlines():
        row = ROW.fullmatch(line)
        if row is not None:
            typed = row["typed"]
            found[typed] = row["text"] or ""
        elif typed is not None and not found[typed] and re.match(r" {4,}\S", line):
            found[typed] = line.strip()
        else:
            typed = typed if line.startswith("  ") else None
    return found


@pytest.mark.parametrize("command", [*COMMANDS, *EXPERIMENTS], ids=lambda command: command.name)
def test_page(command: Command, capsys: pytest.CaptureFixture[str]) -> None:
    printed = page(command, capsys)
    assert re.match(rf"usage: (hamflow|python -m experiments) {command.name} ", printed)
    assert max(map(len, printed.splitlines())) <= COLUMNS
    if command in COMMANDS:
        assert "IMAGE0" not in printed  # pictures are counted from 1
        top = printed.split(" options\n")[0].split(" positional arguments\n")[0]
        assert len(top.splitlines()) <= 7  # the usage and one sentence
        # A sentence, and not the types of Python.
        assert re.search(r"\n\n[A-Z][^.]+\.\n", top.replace("\n\n\n", "\n\n") + "\n")
    assert "{None}" not in printed
    assert "default: None" not in printed
    assert "default: True" not in printed  # of a switch --no-...
    shown = rows(printed)
    assert "-h, --help" in shown
    for typed, text in shown.items():
        # More than the default, which stands in parentheses behind the description.
        assert re.match(r"[^(\s]", text), f"{typed} has no description"
        # What the switch does, and not what there is without it.
        if re.match(r"--(\w+\.)?no-", typed):
            assert re.match(r"Leave out |Do not |Only |Whether ", text), typed


def test_rows() -> None:
    page = (
        "  ----",
        "  -a A  First.",
        "     more",
        "  --long X",
        "     Second.",
        "  --no",
        "     (d)",
    )
    assert rows("\n".join(page)) == {"-a A": "First.", "--long X": "Second.", "--no": "(d)"}


def test_examples_stay_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    (pair,) = (command for command in COMMANDS if command.name == "pair")
    printed = page(pair, capsys)
    assert "\nFor example:\n\n    hamflow pair frame1.png frame2.png -o flow.flo" in printed


def test_defaults() -> None:
    assert _help.default_hint("5") == "(default: 5)"
    assert {_help.default_hint(text) for text in ("None", "False", "True", "")} == {""}


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"hamflow {hamflow.__version__}\n"

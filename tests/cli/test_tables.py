"""The tables that commands print fit a screen of 80 columns, and nothing in them is cut."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console
from rich.table import Table

from _evaluations import evaluation, write_log
from hamflow.cli import doctor, train
from hamflow.cli._console import table_of
from hamflow.cli.evaluate import summary_table
from hamflow.cli.main import main

COLUMNS = 80
LONG = "a-method-with-a-very-long-name-of-its-own"


@pytest.fixture(autouse=True)
def screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(COLUMNS))


def shown(table: Table) -> str:
    console = Console(width=COLUMNS)
    with console.capture() as capture:
        console.print(table)
    return capture.get()


def check(printed: str) -> None:
    assert max(map(len, printed.splitlines())) <= COLUMNS
    assert "…" not in printed


def joined(printed: str) -> str:
    """The text without the breaks of lines and the other columns' cells."""
    return re.sub(r"\s+", "", printed)


def test_a_narrow_table() -> None:
    table = table_of("name", *("a long heading of a column",) * 6)
    table.add_row(LONG, *("-123.456",) * 6)
    printed = shown(table)
    check(printed)
    assert printed.count("-123.456") == 6


def test_evaluate() -> None:
    found = evaluation(LONG, {f"pair{number}": 1234.5 for number in range(3)})
    printed = shown(summary_table(found))
    check(printed)
    assert "1234.500 px" in printed


def test_compare(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folders = []
    for number in range(7):
        errors = {f"pair{k}": 100.0 * k + number + 1 for k in range(6)}
        folders.append(tmp_path / f"{LONG}-{number}")
        write_log(folders[-1] / "run.jsonl", evaluation(LONG, errors))
    assert main(["compare", *map(str, folders)]) == 0
    # The sentences below the tables are not broken.
    tables = capsys.readouterr().out.split(" against ")[0].rsplit("\n", 1)[0]
    check(tables)
    assert "251.000" in tables
    assert LONG in joined(tables.split("compared with")[1])


def test_doctor(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(doctor.EXTRAS, "other", ("no_such_module_with_a_long_name",) * 4)
    assert main(["doctor"]) == 0
    check(capsys.readouterr().out)


def test_train() -> None:
    shows: Any = train._Shown(Console(quiet=True), lambda *_: None, 1_000_000)
    validation = SimpleNamespace(
        loss=123.456,
        epe_qq=123.45,
        outlier_3px_qq=1.0,
        epe_trained=123.45,
        outlier_3px_trained=1.0,
        constant_bits=1.0,
    )
    step = SimpleNamespace(
        number=1_000_000, loss=1.0, constant_bits=0.0, seconds=1.0, validation=validation
    )
    shows(step)
    printed = shown(shows.table)
    check(printed)
    assert "1000000" in printed

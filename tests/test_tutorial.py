"""docs/tutorial.ipynb runs, and was committed with its outputs."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

from _paths import ROOT

FILE = ROOT / "docs" / "tutorial.ipynb"
NOTEBOOK: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
CELLS = [cell for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"]


def test_the_cells_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "__main__"}
    for cell in CELLS:
        *statements, last = ast.parse("".join(cell["source"])).body
        exec(compile(ast.Module(statements, []), "cell", "exec"), names)
        if not isinstance(last, ast.Expr):
            exec(compile(ast.Module([last], []), "cell", "exec"), names)
            continue
        # What a notebook shows below the cell.
        shown = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
        if hasattr(shown, "_repr_jpeg_"):
            assert shown._repr_jpeg_()
    assert "mean error" in capsys.readouterr().out


def test_the_outputs_are_committed() -> None:
    assert [cell["execution_count"] for cell in CELLS] == list(range(1, len(CELLS) + 1))
    kinds = [output["output_type"] for cell in CELLS for output in cell["outputs"]]
    assert "error" not in kinds
    assert kinds.count("execute_result") >= 6
    assert FILE.stat().st_size < 500_000
    assert " at 0x" not in FILE.read_text(encoding="utf-8"), "an address differs in each run"

"""What tools say about the code: types, style, and that the stub is the compiled module's."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

import hamflow
from _paths import ROOT
from _problems import run_python

PACKAGE = ROOT / "src" / "hamflow"


def needs(module: str) -> pytest.MarkDecorator:
    missing = importlib.util.find_spec(module) is None
    return pytest.mark.skipif(missing, reason=f"{module} is not installed")


def run_tool(*args: str) -> None:
    # From the root, where the settings are.
    code = f"import os, runpy, sys; os.chdir({str(ROOT)!r}); sys.argv = {list(args)!r}; "
    run = run_python(
        "-c", code + f"runpy.run_module({args[0]!r}, run_name='__main__')", timeout=300
    )
    assert run.returncode == 0, run.stdout + run.stderr


def test_typed() -> None:
    assert (PACKAGE / "py.typed").is_file()
    assert (Path(hamflow.__file__).parent / "py.typed").is_file()


@needs("nanobind")
def test_stub_is_up_to_date(tmp_path: Path) -> None:
    stub = tmp_path / "_native.pyi"
    run_tool("nanobind.stubgen", "-q", "-m", "hamflow._native", "-o", str(stub))
    made, committed = stub.read_text(), (PACKAGE / "_native.pyi").read_text()
    assert made == committed, (
        "run: python -m nanobind.stubgen -m hamflow._native -o src/hamflow/_native.pyi"
    )


@needs("mypy")
def test_mypy() -> None:
    run_tool("mypy", "--strict")


@needs("ruff")
@pytest.mark.parametrize("command", [["check"], ["format", "--check"]])
def test_ruff(command: list[str]) -> None:
    run_tool("ruff", *command, "src", "tests")

"""The examples in the docstrings, as they are installed."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

import hamflow

ROOT = Path(hamflow.__file__).parents[1]
MODULES = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for path in sorted(Path(hamflow.__file__).parent.rglob("*.py"))
    if ">>> " in path.read_text(encoding="utf-8")
]
EXTRAS = ("torch", "onnx", "tensorboard", "matplotlib")


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name not in EXTRAS:
            raise
        pytest.skip(f"needs {error.name}")
    result = doctest.testmod(module)
    assert result.attempted > 0
    assert result.failed == 0


def test_there_are_examples() -> None:
    assert len(MODULES) > 10

"""The examples in the docstrings, as they are installed."""

import doctest
import importlib
import pkgutil
from types import ModuleType

import pytest

import hamflow

MODULES = [
    module.name
    for module in pkgutil.walk_packages(hamflow.__path__, "hamflow.")
    if not module.name.endswith(("__main__", "_native"))
]


EXTRAS = ("torch", "onnx", "tensorboard", "matplotlib")


def imported(name: str) -> ModuleType | None:
    """The module, or None if it needs an extra that is not installed."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name in EXTRAS:
            return None
        raise


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    module = imported(name)
    if module is None:
        pytest.skip("needs an extra")
    assert doctest.testmod(module).failed == 0


def test_there_are_examples() -> None:
    finder = doctest.DocTestFinder()
    examples = [
        example
        for module in map(imported, MODULES)
        if module is not None
        for test in finder.find(module)
        for example in test.examples
    ]
    assert len(examples) > 10

"""The examples in the docstrings, as they are installed."""

import doctest
import importlib
import pkgutil

import pytest

import hamflow

MODULES = [
    module.name
    for module in pkgutil.walk_packages(hamflow.__path__, "hamflow.")
    if not module.name.endswith(("__main__", "_native"))
]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_there_are_examples() -> None:
    finder = doctest.DocTestFinder()
    examples = [
        example
        for name in MODULES
        for test in finder.find(importlib.import_module(name))
        for example in test.examples
    ]
    assert len(examples) > 10

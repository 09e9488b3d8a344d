"""Users' type checkers see the types: the package says that it has them."""

from __future__ import annotations

from importlib.resources import files


def test_py_typed_is_installed() -> None:
    assert files("hamflow").joinpath("py.typed").is_file()

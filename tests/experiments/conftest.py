from __future__ import annotations

from collections.abc import Callable

import pytest

from experiments.cli.app import main


@pytest.fixture
def fails(request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Run a command of the laboratory that must fail with one sentence, and return that.

    The words of a module's COMMAND come before those given.
    """
    before: tuple[str, ...] = getattr(request.module, "COMMAND", ())

    def run(*args: object) -> str:
        capsys.readouterr()
        assert main([*before, *map(str, args)]) == 1
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.startswith("python -m experiments: ")
        assert captured.err.count("\n") == 1
        return captured.err

    return run

"""Commands that must fail with one sentence, and a disk that is full."""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence

import pytest


def failing_command(
    main: Callable[[Sequence[str]], int],
    program: str,
    request: pytest.FixtureRequest,
    capsys: pytest.CaptureFixture[str],
) -> Callable[..., str]:
    """Return what runs a command, checks how it fails, and returns the sentence.

    The words of a module's COMMAND come before those given.
    """
    before: tuple[str, ...] = getattr(request.module, "COMMAND", ())

    def run(*args: object) -> str:
        capsys.readouterr()
        assert main([*before, *map(str, args)]) == 1
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.startswith(f"{program}: ")
        assert captured.err.count("\n") == 1
        return captured.err

    return run


def full_disk(*_: object) -> None:
    """Stands in for a call of the operating system."""
    raise OSError(errno.ENOSPC, "No space left on device")

"""The command ``hamflow``: how it starts, and how errors reach the user."""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import TextIOWrapper

from hamflow import __version__
from hamflow.cli.app import COMMANDS, Command, run
from hamflow.errors import HamflowError, InputError

DESCRIPTION = (
    "Hamflow: dense, large-displacement optical flow with binary descriptors, on a plain CPU. "
    "Flow is (u, v) in pixels, u to the right, v down: pixel (x, y) of the first image is found "
    "at (x + u, y + v) in the second. hamflow --version prints the version."
)


def main(args: Sequence[str] | None = None) -> int:
    """Run the command line; errors become one sentence and a non-zero exit code."""
    words = sys.argv[1:] if args is None else list(args)
    if words == ["--version"]:
        print(f"hamflow {__version__}")
        return 0
    return run_main(COMMANDS, words, "hamflow", DESCRIPTION)


def run_main(
    commands: Sequence[Command], args: Sequence[str] | None, prog: str, description: str
) -> int:
    """Run one of the given commands as `main` does; see `hamflow.cli.app.run`."""
    _print_anything()
    words = sys.argv[1:] if args is None else list(args)
    try:
        with _sigterm_interrupts(), _flushed_output():
            run(commands, words, prog, description)
    except _ReaderGone:
        return 128 + signal.SIGPIPE
    except InputError as error:
        return _fail(prog, _as_typed(str(error), words))
    except (HamflowError, OSError) as error:
        return _fail(prog, str(error))
    except (MemoryError, ImportError, RuntimeError) as error:
        if not _lacks_memory(error):
            raise
        return _fail(prog, f"Not enough memory ({error}); use a smaller window or image.")
    except KeyboardInterrupt:
        return _fail(prog, "Interrupted.", code=130)
    return 0


def _as_typed(message: str, words: Sequence[str]) -> str:
    """Return a message with the option that was typed, if it begins with the API's name of it."""
    name = message.partition(" ")[0]
    option = f"--{name.replace('_', '-')}"
    typed = {word.partition("=")[0].replace("_", "-") for word in words}
    return option + message.removeprefix(name) if option in typed else message


def _lacks_memory(error: Exception) -> bool:
    """Return whether the system had no more memory, as an array, a library or torch says it."""
    said = ("failed to map segment", "allocate memory", "not enough memory")
    return isinstance(error, MemoryError) or any(words in str(error) for words in said)


class _ReaderGone(Exception):  # noqa: N818  (no error: the user has seen enough)
    """Nobody reads the standard output any more."""


def _print_anything() -> None:
    """Print a question mark for what the encoding of the terminal does not have, such as ×."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")


@contextmanager
def _flushed_output() -> Iterator[None]:
    """Write all output when the block ends; raise `_ReaderGone` if nobody reads it any more.

    This is no error: ``hamflow --help | head`` closes the pipe when it has its lines.
    """
    try:
        try:
            yield
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()
    except BrokenPipeError:
        if not _reader_is_gone():
            raise
        raise _ReaderGone from None


def _reader_is_gone() -> bool:
    """Return whether nobody reads the output any more; what is left of it is forgotten then."""
    try:
        number = sys.stdout.fileno()
        watch = select.poll()  # not on Windows
    except (AttributeError, OSError, ValueError):
        return False
    watch.register(number, 0)
    gone = any(events & select.POLLERR for _, events in watch.poll(0))
    if gone:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, number)
        os.close(nowhere)
    return gone


@contextmanager
def _sigterm_interrupts() -> Iterator[None]:
    """Let SIGTERM end a command as Ctrl-C does, so that files are closed and work is kept.

    Ctrl-C itself is left as it is: a shell makes the background commands of a script ignore it.
    """

    def interrupt(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        # It is None if the handler was not set by Python.
        signal.signal(signal.SIGTERM, signal.SIG_DFL if before is None else before)


def _fail(prog: str, message: str, code: int = 1) -> int:
    print(f"{prog}: {message}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())

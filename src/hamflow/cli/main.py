"""The command ``hamflow``: how it starts, and how errors reach the user."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import tyro
from rich.console import Console

from hamflow.errors import HamflowError

DESCRIPTION = (
    "Hamflow: dense, large-displacement optical flow with binary descriptors, on a plain CPU. "
    "Flow is (u, v) in pixels, u to the right, v down: pixel (x, y) of the first image is found "
    "at (x + u, y + v) in the second. Every command has its own --help."
)


def main(args: Sequence[str] | None = None) -> int:
    """Run the command line; errors become one sentence and a non-zero exit code."""
    try:
        # Here, because a bad HAMFLOW_ISA or HAMFLOW_NUM_THREADS shows as soon as it is imported.
        from hamflow.cli.app import build_app  # noqa: PLC0415

        words = sys.argv[1:] if args is None else list(args)
        build_app(words).cli(
            args=words,
            prog="hamflow",
            description=DESCRIPTION,
            config=(tyro.conf.FlagCreatePairsOff,),
        )
    except (HamflowError, OSError) as error:
        return _fail(str(error))
    except MemoryError as error:
        return _fail(f"Not enough memory ({error}); use a smaller window or image.")
    except KeyboardInterrupt:
        return _fail("Interrupted.", code=130)
    return 0


def _fail(message: str, code: int = 1) -> int:
    console = Console(stderr=True, soft_wrap=True)
    console.print(f"hamflow: {message}", markup=False, highlight=False)
    return code


if __name__ == "__main__":
    sys.exit(main())

"""The command ``hamflow``: how it starts, and how errors reach the user."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from hamflow.cli.app import COMMANDS, Command, run
from hamflow.errors import HamflowError

DESCRIPTION = (
    "Hamflow: dense, large-displacement optical flow with binary descriptors, on a plain CPU. "
    "Flow is (u, v) in pixels, u to the right, v down: pixel (x, y) of the first image is found "
    "at (x + u, y + v) in the second."
)


def main(args: Sequence[str] | None = None) -> int:
    """Run the command line; errors become one sentence and a non-zero exit code."""
    return run_main(COMMANDS, args, "hamflow", DESCRIPTION)


def run_main(
    commands: Sequence[Command], args: Sequence[str] | None, prog: str, description: str
) -> int:
    """Run one of some commands as `main` does those of Hamflow; see `hamflow.cli.app.run`."""
    try:
        run(commands, sys.argv[1:] if args is None else list(args), prog, description)
    except (HamflowError, OSError) as error:
        return _fail(prog, str(error))
    except MemoryError as error:
        return _fail(prog, f"Not enough memory ({error}); use a smaller window or image.")
    except KeyboardInterrupt:
        return _fail(prog, "Interrupted.", code=130)
    return 0


def _fail(prog: str, message: str, code: int = 1) -> int:
    print(f"{prog}: {message}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())

"""The only global state: the number of threads and the instruction-set level.

``HAMFLOW_NUM_THREADS`` and ``HAMFLOW_ISA`` are read once, when the compiled module is first used.
"""

from __future__ import annotations

import operator
import os
import platform
from typing import Any

import numpy as np

import hamflow
from hamflow import _native
from hamflow.errors import InputError


def set_num_threads(n: int) -> None:
    """Set how many threads the kernels use from now on.

    Results do not depend on it, to the byte.

    Parameters
    ----------
    n : int
        At least 1.
    """
    try:
        count = 0 if isinstance(n, bool) else operator.index(n)
    except TypeError:
        count = 0
    if not 1 <= count <= 1024:
        raise InputError(f"The number of threads must be a whole number from 1 to 1024, not {n!r}.")
    _native.set_num_threads(count)


def get_num_threads() -> int:
    """Return how many threads the kernels use."""
    return _native.get_num_threads()


def set_isa(level: str | None) -> None:
    """Force an instruction-set level, as the environment variable ``HAMFLOW_ISA`` does.

    Parameters
    ----------
    level : str or None
        One of :func:`isa_levels`, or ``"reference"`` for the slow, obvious code that the tests
        compare with; None chooses the best level of this machine again. With a level, the networks
        use only what goes with it: AVX-VNNI with ``"avx2"``, VNNI and AMX with ``"avx512"``.
    """
    if not isinstance(level, str | None) or not _native.force_level(level):
        raise InputError(
            f"This machine has no instruction-set level {level!r}; "
            f"choose one of {', '.join(isa_levels())}."
        )


def get_isa() -> str:
    """Return the instruction-set level in use."""
    return _native.level()


def isa_levels() -> list[str]:
    """Return the levels that this machine can run, worst first."""
    return _native.levels()


def machine() -> dict[str, Any]:
    """Return what a measurement means nothing without: versions, level and threads, for JSON."""
    return {
        "hamflow": hamflow.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "machine": platform.machine(),
        "levels": isa_levels(),
        "level": get_isa(),
        "networks": _native.convolution(),
        "threads": get_num_threads(),
    }


def _read_environment() -> None:
    isa = os.environ.get("HAMFLOW_ISA", "").strip()
    if isa and not _native.force_level(isa):
        raise InputError(
            f"The environment variable HAMFLOW_ISA is {isa!r}, which this machine does not have; "
            f"set it to one of {', '.join(isa_levels())} or leave it out."
        )
    threads = os.environ.get("HAMFLOW_NUM_THREADS", "").strip()
    if threads:
        if not threads.isdecimal() or not 1 <= int(threads) <= 1024:
            raise InputError(
                f"The environment variable HAMFLOW_NUM_THREADS is {threads!r}; "
                "set it to a whole number from 1 to 1024 or leave it out."
            )
        _native.set_num_threads(int(threads))


_read_environment()

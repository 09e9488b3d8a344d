"""Faster allocation of the memory of a training step."""

from __future__ import annotations

import ctypes
import sys

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # as glibc's malloc.h has them
_NEVER = 2**31 - 1


def keep_freed_memory() -> bool:
    """Let the C library keep freed memory for the next allocation; return whether this worked.

    Every step allocates the same large blocks again. If they are returned to the operating system
    in between, page faults take a fifth of the time of a step. The setting holds for the rest of
    the process, and only glibc has it.
    """
    if sys.platform != "linux":
        return False
    try:
        set_option = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return False
    # Smaller blocks than the first threshold come from the heap, which never shrinks then.
    return bool(set_option(_MMAP_THRESHOLD, 2**30) and set_option(_TRIM_THRESHOLD, _NEVER))

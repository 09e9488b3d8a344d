"""How the C library handles the memory that a training step takes and gives back."""

from __future__ import annotations

import ctypes
import sys

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # as glibc's malloc.h has them
_NEVER = 2**31 - 1


def keep_freed_memory() -> bool:
    """Keep large blocks that are freed instead of giving them back; return whether it worked.

    Every step allocates the same large blocks again. Given back in between, each of their pages
    costs a page fault, and these took a fifth of a step. For the rest of the process; only glibc
    can.
    """
    if sys.platform != "linux":
        return False
    try:
        set_option = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return False
    # A block below the first threshold comes from the heap; one above the second goes back.
    return bool(set_option(_MMAP_THRESHOLD, 2**30) and set_option(_TRIM_THRESHOLD, _NEVER))

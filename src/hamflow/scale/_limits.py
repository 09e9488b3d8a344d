"""How much of a machine one worker may use."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

_SPARE = 0.1  # of the memory, for the operating system and the process that leads
_CGROUPS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def usable_cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def usable_memory() -> int | None:
    """Return the bytes of memory that this machine or container has; None if that is not known."""
    found = []
    with suppress(ValueError, OSError, AttributeError):
        found.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for file in _CGROUPS:
        with suppress(ValueError, OSError):  # "max" stands for no limit
            found.append(int(Path(file).read_text(encoding="ascii")))
    return min(found, default=None)


def limit_memory(share: float) -> None:
    """Let this process allocate only a share of the memory; more is a MemoryError.

    Otherwise the operating system would end some process, perhaps another one. Where it has no
    such limit, or has a lower one already, nothing is changed.
    """
    memory = usable_memory()
    if resource is None or memory is None:
        return
    allowed = int(memory * (1 - _SPARE) * share)
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if soft == resource.RLIM_INFINITY or soft > allowed:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_DATA, (allowed, hard))

"""Worker processes: what they may take, and that they end with their parent, which has Ctrl-C."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import wait
from pathlib import Path

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

_SPARE = 0.1  # of the memory, for the operating system and the process that leads
_CGROUPS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


@contextmanager
def interrupts_held_back() -> Iterator[None]:
    """Start processes that never get Ctrl-C, because their parent ends them."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def follow_parent() -> None:
    """Ignore Ctrl-C in this worker process, and end it when its parent ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End with the parent: if it is killed, it cannot end its workers."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


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

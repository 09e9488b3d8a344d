"""How much memory the process has."""

from __future__ import annotations

from pathlib import Path


def peak_memory() -> int | None:
    """Return the most memory that the process has had so far; None where the system does not tell.

    Not by getrusage, whose figure begins with the memory of the process that started this one.
    """
    try:
        return memory_status("VmHWM")
    except (OSError, KeyError):
        return None


def reset_peak_memory() -> None:
    """Let `peak_memory` begin anew with what the process has now; an OSError except on Linux."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def memory_status(key: str) -> int:
    """Return an entry of Linux's status of this process, in bytes."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1]) * 1024
    raise KeyError(key)

"""How much memory the process uses."""

from __future__ import annotations

from pathlib import Path


def peak_memory() -> int | None:
    """Return the peak memory of the process in bytes; None except on Linux.

    getrusage would not do: its peak includes the memory of the process that started this one.
    """
    try:
        return memory_status("VmHWM")
    except (OSError, KeyError):
        return None


def reset_peak_memory() -> None:
    """Reset `peak_memory` to the current memory; raises an OSError except on Linux."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def memory_status(key: str) -> int:
    """Return an entry of /proc/self/status in bytes."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1]) * 1024
    raise KeyError(key)

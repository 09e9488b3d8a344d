"""How much memory the process uses."""

from __future__ import annotations

from pathlib import Path

from hamflow.errors import InputError


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


_UNITS = {"": 1, "b": 1, "kb": 1e3, "mb": 1e6, "gb": 1e9, "kib": 2**10, "mib": 2**20, "gib": 2**30}


def parse_memory(amount: int | float | str) -> int:
    """Return an amount of memory in bytes; it may be a number of bytes, or a text such as "4GB".

    >>> parse_memory("1.5 GB"), parse_memory("512MiB")
    (1500000000, 536870912)
    """
    text = str(amount).strip().lower()
    number = text.rstrip("abcdefghijklmnopqrstuvwxyz ")
    try:
        size = float(number) * _UNITS[text[len(number) :].strip()]
    except (ValueError, KeyError):
        size = 0.0
    if isinstance(amount, bool) or not 1 <= size < 2**60:
        raise InputError(
            f"max_memory must be an amount of memory such as 600MB, 4GB or 2GiB, not {amount!r}."
        )
    return int(size)


def show_memory(size: float) -> str:
    """Return an amount of memory as people write it.

    >>> show_memory(612_345_678), show_memory(2_040_000_000)
    ('612 MB', '2.04 GB')
    """
    return f"{size / 1e6:.0f} MB" if size < 1e9 else f"{size / 1e9:.3g} GB"

"""Folders of a data set, listed once: which files are there, and what to say if one is not."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from hamflow.errors import FileError, InputError, file_access, missing_file


class Listing:
    """The names in a folder.

    Parameters
    ----------
    path : Path
        The folder.
    expected : str
        The end of every error message: which files are expected where.

    Raises
    ------
    FileError
        If it is no folder, or may not be listed.
    """

    def __init__(self, path: Path, expected: str) -> None:
        _check_folder(path, expected)
        self.path = path
        self._expected = expected
        self._names = frozenset(_names_in(path))

    def file(self, name: str) -> Path:
        """Return the path of a file, or raise a FileError that says that it is missing."""
        if name not in self._names:
            raise missing_file(self.path / name, self._expected)
        return self.path / name

    def find(self, name: str) -> Path | None:
        """Return the path of a file or folder if it is there."""
        return self.path / name if name in self._names else None

    def folder(self, *names: str) -> Listing:
        """List a folder below this one."""
        return Listing(self.path.joinpath(*names), self._expected)

    def find_folder(self, *names: str) -> Listing | None:
        """List a folder below this one if it is there."""
        return self.folder(*names) if os.path.isdir(self.path.joinpath(*names)) else None

    def folders(self) -> list[str]:
        """Return the names of the folders in this one, sorted; hidden ones do not count."""
        names = (name for name in self._names if not name.startswith("."))
        return sorted(name for name in names if os.path.isdir(self.path / name))

    def matches(self, pattern: str) -> list[re.Match[str]]:
        """Return the names of this pattern, sorted, as what `re.fullmatch` gives."""
        found = (re.fullmatch(pattern, name) for name in sorted(self._names))
        return [match for match in found if match is not None]

    def sequence(self, prefix: str, suffix: str) -> list[int]:
        """Return the numbers of the files ``prefix`` + four digits + ``suffix``, without gaps.

        Raises
        ------
        FileError
            If a number between the first and the last is missing.
        """
        matches = self.matches(rf"{re.escape(prefix)}(\d{{4}}){re.escape(suffix)}")
        numbers = [int(match[1]) for match in matches]
        for before, after in pairwise(numbers):
            # Without this check, a lost frame would silently cost two pairs.
            if after != before + 1:
                self.file(f"{prefix}{before + 1:04}{suffix}")
        return numbers


class Found(NamedTuple):
    """A folder below a root, what it is called there, and the names in it."""

    path: Path
    name: str
    entries: frozenset[str]


def search(top: Path, expected: str, markers: Collection[str]) -> Iterator[Found]:
    """Yield the folders below a root, or the root itself, that hold any of the markers.

    Folders within them are not looked at.

    Raises
    ------
    FileError
        If the root is no folder, or one may not be listed.
    """
    _check_folder(top, expected)
    yield from _search(top, "", frozenset(markers), frozenset())


def _search(
    folder: Path, name: str, markers: frozenset[str], above: frozenset[str]
) -> Iterator[Found]:
    entries = frozenset(_names_in(folder))
    if not entries.isdisjoint(markers):
        yield Found(folder, name or folder.resolve().name, entries)
        return
    # Links are followed, but not round in circles.
    here = os.path.realpath(folder)
    if here in above:
        return
    for entry in entries:
        below = folder / entry
        if os.path.isdir(below):
            yield from _search(below, f"{name}/{entry}" if name else entry, markers, above | {here})


def _names_in(folder: Path) -> list[str]:
    with file_access(folder, "cannot be searched for image pairs"):
        return os.listdir(folder)


def _check_folder(path: Path, expected: str) -> None:
    if not os.path.exists(path):
        raise missing_file(path, expected)
    if not os.path.isdir(path):
        raise FileError(f"{path}: is not a folder; {expected}")


def check_choice(name: str, value: object, possible: Collection[object]) -> None:
    """Raise an InputError if an option has another value than those that are possible."""
    values = tuple(possible)
    if value not in values:
        *others, last = map(str, values)
        raise InputError(f"{name} must be {', '.join(others)} or {last}, not {value!r}.")


CAMERAS = ("left", "right")
DIRECTIONS = ("forward", "backward")


def chosen(name: str, value: str, possible: tuple[str, ...]) -> tuple[str, ...]:
    """Return one of two values, or for ``"both"`` the two."""
    check_choice(name, value, (*possible, "both"))
    return possible if value == "both" else (value,)

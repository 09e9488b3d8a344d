"""The files of a data set, found in its folders, and the choices that its options permit."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Literal

from hamflow.errors import FileError, InputError, file_access, missing_file

Root = str | os.PathLike[str]
Split = Literal["training", "test"]
RenderPass = Literal["clean", "final"]
Camera = Literal["left", "right", "both"]
Direction = Literal["forward", "backward", "both"]


class Listing:
    """The names in a folder.

    Parameters
    ----------
    path : str or os.PathLike
        The folder.
    expected : str
        How every error message ends: which files the data set should have, and where.
    optional : bool
        Whether the folder may be missing; it then counts as empty.
    """

    def __init__(self, path: Root, expected: str, *, optional: bool = False) -> None:
        self.path = Path(path)
        self.expected = expected
        self._names: frozenset[str] = frozenset()
        if os.path.isdir(self.path):
            with file_access(self.path, "cannot be searched for image pairs"):
                self._names = frozenset(os.listdir(self.path))
        elif not optional and os.path.exists(self.path):
            raise FileError(f"{self.path}: is not a folder; {expected}")
        elif not optional:
            raise missing_file(self.path, expected)

    def file(self, name: str) -> Path:
        """Return the path of a file; raise a FileError if it is missing."""
        if name not in self._names:
            raise missing_file(self.path / name, self.expected)
        return self.path / name

    def find(self, *names: str) -> Path | None:
        """Return the path of the first of these names that exists, or None."""
        return next((self.path / name for name in names if name in self._names), None)

    def folder(self, *names: str, optional: bool = False) -> Listing:
        """List a folder below this one."""
        return Listing(self.path.joinpath(*names), self.expected, optional=optional)

    def folders(self) -> list[str]:
        """Return the names of the folders in this one, sorted, without hidden ones."""
        names = (name for name in self._names if not name.startswith("."))
        return sorted(name for name in names if os.path.isdir(self.path / name))

    def matches(self, pattern: str) -> list[re.Match[str]]:
        """Return a match for each name that has this pattern, sorted by name."""
        found = (re.fullmatch(pattern, name) for name in sorted(self._names))
        return [match for match in found if match is not None]

    def consecutive(
        self, prefix: str, suffix: str, *, backward: bool = False
    ) -> Iterator[tuple[str, Path, Path]]:
        """Yield each pair of consecutive frames: the number of the first one, and both paths.

        The files are called `prefix`, number, `suffix`. A missing number is a FileError, because
        two pairs would be lost silently otherwise.
        """
        matches = self.matches(rf"{re.escape(prefix)}(\d+){re.escape(suffix)}")
        for number in sorted((match[1] for match in matches), key=int)[:-1]:
            numbers = number, f"{int(number) + 1:0{len(number)}}"
            first, second = numbers[::-1] if backward else numbers
            frames = (self.file(f"{prefix}{frame}{suffix}") for frame in (first, second))
            yield (first, *frames)  # type: ignore[misc]

    def search(
        self, markers: Collection[str], name: str = "", above: frozenset[str] = frozenset()
    ) -> Iterator[tuple[str, Listing]]:
        """Yield this folder, or those below it, that hold any of the markers, with their names.

        Folders inside of a folder that was found are not searched.
        """
        if not self._names.isdisjoint(markers):
            yield name or self.path.resolve().name, self
            return
        here = os.path.realpath(self.path)
        if here in above:  # a link that leads back
            return
        for entry in self._names:
            if os.path.isdir(self.path / entry):
                below = f"{name}/{entry}" if name else entry
                yield from self.folder(entry).search(markers, below, above | {here})


def check_choice(name: str, value: object, possible: Collection[object]) -> None:
    """Raise an InputError if an option has none of the possible values."""
    if value not in possible:
        *others, last = map(str, possible)
        choices = f"{', '.join(others)} or {last}" if others else last
        raise InputError(f"{name} must be {choices}, not {value!r}.")


def chosen(name: str, value: str, possible: tuple[str, ...]) -> tuple[str, ...]:
    """Return the value of an option as a tuple, or for ``"both"`` all possible values."""
    check_choice(name, value, (*possible, "both"))
    return possible if value == "both" else (value,)

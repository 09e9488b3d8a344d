"""Image pairs with known flow in a tree of folders, one folder for each pair.

::

    ROOT/<group>/<pair>/frame1.png
                        frame2.png
                        flow.flo        or flow.png in KITTI's encoding
                        flow_noc.png    optional: the flow of only the visible pixels, as in KITTI
                        occ.png         optional, white: occluded
                        invalid.png     optional, white: not to be evaluated
"""

from __future__ import annotations

import copy
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import overload

from hamflow.datasets.flow_pair import FlowPair
from hamflow.errors import FileError, InputError

_FRAMES = ("frame1.png", "frame2.png")
# In this order: next to a flow.flo, a flow.png may well be its picture.
_FLOWS = ("flow.flo", "flow.png")
_NEEDED = "frame1.png, frame2.png, and flow.flo or (in KITTI's encoding) flow.png"


class FolderDataset(Sequence[FlowPair]):
    """The pairs in all folders below a root that hold ``frame1.png`` and ``frame2.png``.

    Only names are looked at until a pair's images or flow are asked for, and the dataset keeps
    nothing of what its pairs read. A slice is a `FolderDataset`, too.

    Parameters
    ----------
    root : str or os.PathLike
        One pair's folder, or a folder of such folders, to any depth. It holds ``frame1.png``,
        ``frame2.png`` and ``flow.flo`` (or else ``flow.png``), and may hold ``flow_noc.png``,
        ``occ.png`` and ``invalid.png``. Folders within a pair's folder are not looked at.

    Raises
    ------
    FileError
        If there is no pair, or a frame or the flow of one is missing.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from hamflow import write_flow, write_image
    >>> from hamflow.datasets import FolderDataset, demo_scene
    >>> scene = demo_scene(32, 48)
    >>> with tempfile.TemporaryDirectory() as root:
    ...     folder = Path(root, "demo", "first")
    ...     folder.mkdir(parents=True)
    ...     write_image(folder / "frame1.png", scene.image0)
    ...     write_image(folder / "frame2.png", scene.image1)
    ...     write_flow(folder / "flow.flo", scene.flow)
    ...     for pair in FolderDataset(root):
    ...         print(pair.name, pair.image0.shape, pair.flow.shape, pair.occluded)
    demo/first (32, 48, 3) (32, 48, 2) None
    """

    def __init__(self, root: str | os.PathLike[str]) -> None:
        top = Path(root)
        if not os.path.isdir(top):
            raise FileError(f"{top}: is not a folder; {_expected()}")
        self._root = top
        self._pairs = tuple(sorted(_search(top, "", frozenset()), key=lambda pair: pair.name))
        if not self._pairs:
            raise FileError(f"{top}: holds no image pairs; {_expected()}")

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the pairs, sorted: their paths below the root, with ``/``."""
        return tuple(pair.name for pair in self._pairs)

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups that the pairs are in, sorted; ``""`` for pairs directly below the root."""
        return tuple(sorted({pair.group for pair in self._pairs}))

    def subset(self, names: str | Iterable[str]) -> FolderDataset:
        """Return a dataset of some of the pairs, in the same order.

        Parameters
        ----------
        names : str or iterable of str
            Names of pairs, or of groups for all pairs in them.

        Raises
        ------
        InputError
            If one of the names is neither a pair nor a group, or there is none.
        """
        wanted = {names} if isinstance(names, str) else set(names)
        if not wanted:
            raise InputError("names must hold at least one pair or group.")
        # What each pair may be called by: "a/b/c" by itself, "a/b" and "a".
        handles = [_handles(pair.name) for pair in self._pairs]
        unknown = sorted(wanted.difference(*handles))
        if unknown:
            raise InputError(
                f"names holds {unknown[0]!r}, which is neither a pair nor a group below "
                f"{self._root}; look at the dataset's names and groups."
            )
        return self._with(
            tuple(pair for pair, own in zip(self._pairs, handles, strict=True) if wanted & set(own))
        )

    def _with(self, pairs: tuple[FlowPair, ...]) -> FolderDataset:
        other = copy.copy(self)
        other._pairs = pairs
        return other

    def __len__(self) -> int:
        return len(self._pairs)

    @overload
    def __getitem__(self, index: int) -> FlowPair: ...
    @overload
    def __getitem__(self, index: slice) -> FolderDataset: ...
    def __getitem__(self, index: int | slice) -> FlowPair | FolderDataset:
        if isinstance(index, slice):
            return self._with(self._pairs[index])
        # A copy: what it reads is freed with it.
        return replace(self._pairs[index])

    def __repr__(self) -> str:
        return f"<FolderDataset {str(self._root)!r}: {len(self)} pairs>"


def _expected() -> str:
    return f"expected is a tree <group>/<pair>/ with these files for each pair: {_NEEDED}."


def _handles(name: str) -> list[str]:
    parts = name.split("/")
    return ["/".join(parts[:length]) for length in range(1, len(parts) + 1)]


def _search(folder: Path, name: str, above: frozenset[str]) -> Iterator[FlowPair]:
    """Yield the pairs in `folder`, which is called `name` below the root, and below it."""
    try:
        entries = set(os.listdir(folder))
    except OSError as error:
        raise FileError(
            f"{folder}: cannot be searched for image pairs ({error.strerror}); "
            f"check its permissions."
        ) from error
    if not entries.isdisjoint(_FRAMES):
        yield _pair(folder, name or folder.resolve().name, entries)
        return
    # Links are followed, but not round in circles.
    here = os.path.realpath(folder)
    if here in above:
        return
    for entry in entries:
        below = folder / entry
        if os.path.isdir(below):
            yield from _search(below, f"{name}/{entry}" if name else entry, above | {here})


def _pair(folder: Path, name: str, entries: set[str]) -> FlowPair:
    for frame in _FRAMES:
        if frame not in entries:
            raise FileError(f"{folder / frame}: does not exist; a pair needs {_NEEDED}.")
    flow = next((flow for flow in _FLOWS if flow in entries), None)
    if flow is None:
        raise FileError(f"{folder}: holds no flow; a pair needs {_NEEDED}.")

    def optional(file: str) -> Path | None:
        return folder / file if file in entries else None

    return FlowPair(
        name=name,
        image0_path=folder / _FRAMES[0],
        image1_path=folder / _FRAMES[1],
        flow_path=folder / flow,
        noc_path=optional("flow_noc.png"),
        occluded_path=optional("occ.png"),
        invalid_path=optional("invalid.png"),
    )

"""The base of all data sets on the disk: a sequence of image pairs that are read on demand."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, overload

from hamflow.datasets._listing import Listing
from hamflow.datasets.flow_pair import FlowPair
from hamflow.errors import FileError, InputError

if TYPE_CHECKING:
    from typing_extensions import Self


class PairDataset(Sequence[FlowPair]):
    """Image pairs on the disk, sorted by name.

    Files are read only when the images or the flow of a pair are used, and the data set itself
    keeps nothing of them. A slice is a data set of the same kind. The classes of all data sets
    raise a FileError if a frame or a flow is missing, and an InputError if an option has a wrong
    value.

    Parameters
    ----------
    top : Listing
        The folder that error messages name.
    pairs : iterable of FlowPair
        In any order, all with different names.
    """

    def __init__(self, top: Listing, pairs: Iterable[FlowPair]) -> None:
        self._root = top.path
        self._pairs = tuple(sorted(pairs, key=lambda pair: pair.name))
        if not self._pairs:
            raise FileError(f"{top.path}: holds no image pairs; {top.expected}")

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the pairs, after the groups that they are in: ``"alley_1/frame_0001"``."""
        return tuple(pair.name for pair in self._pairs)

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups that the pairs are in, sorted; ``""`` for pairs that are in none."""
        return tuple(sorted({pair.group for pair in self._pairs}))

    def subset(self, names: str | Iterable[str]) -> Self:
        """Return a data set of some of the pairs, in the same order.

        Parameters
        ----------
        names : str or iterable of str
            Names of pairs, or of groups for all pairs in them.
        """
        wanted = {names} if isinstance(names, str) else set(names)
        if not wanted:
            raise InputError("names must contain at least one pair or group.")
        # The names that select a pair: "a/b/c" by itself, "a/b" and "a".
        handles = [_handles(pair.name) for pair in self._pairs]
        unknown = sorted(wanted.difference(*handles))
        if unknown:
            raise InputError(
                f"names contains {unknown[0]!r}, which is neither a pair nor a group below "
                f"{self._root}; see the attributes names and groups of the data set."
            )
        return self._with(
            pair for pair, own in zip(self._pairs, handles, strict=True) if wanted & set(own)
        )

    def evenly(self, share: float, *, disjoint_from: Iterable[FlowPair] = ()) -> Self:
        """Return a data set of a share of the pairs, evenly sampled.

        Of n pairs, w = max(1, round(n · share)) are taken: those with the numbers
        ⌊(2i + 1) n / (2w)⌋ for i = 0, ..., w - 1, the centers of w equal parts. As pairs are sorted
        by scene and frame, every scene contributes about the same share.

        Parameters
        ----------
        share : float
            Above 0 and at most 1, of all pairs of this data set.
        disjoint_from : iterable of FlowPair
            Pairs to leave out, such as another data set: the w pairs are then sampled from those
            with other names. So ``data.evenly(0.2)`` to learn from and ``data.evenly(0.4,
            disjoint_from=...)`` to evaluate on have 20 % and 40 % of all pairs, and none in common.
            Only names are compared, so a pair of the clean pass excludes the same pair of the
            final pass. Consecutive pairs still share a frame.
        """
        if not 0 < share <= 1:
            raise InputError(f"share must be above 0 and at most 1, but is {share}.")
        taken = {pair.name for pair in disjoint_from}
        left = [pair for pair in self._pairs if pair.name not in taken]
        wanted = _portion(len(self), share)
        if wanted > len(left):
            raise InputError(
                f"share asks for {wanted} of {len(self)} pairs, but only {len(left)} are not in "
                "disjoint_from; take a smaller share."
            )
        return self._with(left[number] for number in _centers(len(left), wanted))

    def _with(self, pairs: Iterable[FlowPair]) -> Self:
        other = copy.copy(self)
        other._pairs = tuple(pairs)
        return other

    def __len__(self) -> int:
        return len(self._pairs)

    @overload
    def __getitem__(self, index: int) -> FlowPair: ...
    @overload
    def __getitem__(self, index: slice) -> Self: ...
    def __getitem__(self, index: int | slice) -> FlowPair | Self:
        if isinstance(index, slice):
            return self._with(self._pairs[index])
        # A copy: what it reads is freed with it.
        return replace(self._pairs[index])

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {str(self._root)!r}: {len(self)} pairs>"


def evenly(count: int, share: float) -> list[int]:
    """Return evenly spaced numbers below `count`: a share of them, at least one.

    Examples
    --------
    >>> evenly(10, 0.2)
    [2, 7]
    """
    return _centers(count, _portion(count, share))


def _portion(count: int, share: float) -> int:
    return min(count, max(1, round(count * share)))


def _centers(count: int, wanted: int) -> list[int]:
    return [(2 * i + 1) * count // (2 * wanted) for i in range(wanted)]


def _handles(name: str) -> list[str]:
    parts = name.split("/")
    return ["/".join(parts[:length]) for length in range(1, len(parts) + 1)]

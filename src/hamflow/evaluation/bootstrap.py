"""The difference between two methods on the same pairs, with a confidence interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hamflow.errors import InputError

RESAMPLES = 10_000
FEW = 10
"""With fewer pairs or groups than this, an interval is not reliable."""
_LEVEL = 0.95
_CHUNK = 2**20  # random numbers at a time, to limit the memory


@dataclass(frozen=True)
class PairedDifference:
    """The difference between two methods on the same pairs; lower values are better.

    Attributes
    ----------
    pairs, units : int
        The number of pairs, and of what was resampled: pairs or groups of pairs.
    mean, low, high : float
        Mean over the pairs of the second method's value minus the first's, and the ends of its
        95 % interval, which are NaN if there is only one unit.
    ratio, ratio_low, ratio_high : float
        The same for the geometric mean of the second method's value divided by the first's; NaN if
        a value is zero or the result is too large for a float.
    wins, losses, ties : int
        On how many pairs the second method's value is smaller, larger, and equal.
    """

    pairs: int
    units: int
    mean: float
    low: float
    high: float
    ratio: float
    ratio_low: float
    ratio_high: float
    wins: int
    losses: int
    ties: int

    @property
    def verdict(self) -> str:
        """Whether the second method is better, worse, or not distinguishable from the first.

        There is no verdict with fewer than `FEW` pairs or groups: with 5 pairs, an interval would
        distinguish two equal methods in one case of six.
        """
        if self.units < FEW:
            return "too few to tell"
        if self.high < 0:
            return "better"
        return "worse" if self.low > 0 else "not distinguishable"

    def as_row(self) -> dict[str, Any]:
        """Return everything for JSON, with None instead of NaN."""
        row = asdict(self) | {"verdict": self.verdict}
        return {k: None if isinstance(v, float) and math.isnan(v) else v for k, v in row.items()}


def paired_bootstrap(
    a: ArrayLike,
    b: ArrayLike,
    *,
    groups: Sequence[str] | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> PairedDifference:
    """Compare the values of two methods on the same pairs.

    Parameters
    ----------
    a, b : (N,) array_like of float
        The values of the first and of the second method for each pair.
    groups : sequence of str, optional
        The group of each pair. If given, whole groups are resampled, because the pairs of a scene
        resemble each other and are not independent.
    resamples : int
        The number of resamples.
    seed : int
        The same seed gives the same interval.

    Raises
    ------
    InputError
        If there is no pair, the lengths differ, or a value is not finite.

    Notes
    -----
    The interval is that of the percentile bootstrap [1]_: N pairs (or groups) are drawn from the N
    with replacement, and the interval contains the middle 95 % of the means of all draws. With few
    pairs it is too narrow: for normally distributed values it contains the true mean in 83 % of
    the cases with 5 pairs, in 91 % with 10, and in 93 % with 30. It holds for a single comparison:
    among twenty equal methods, one is expected to differ.

    References
    ----------
    .. [1] B. Efron, R. J. Tibshirani: An Introduction to the Bootstrap. Chapman & Hall, 1993.

    Examples
    --------
    >>> from hamflow.evaluation import paired_bootstrap
    >>> found = paired_bootstrap([4, 6, 5, 9, 7], [2, 3, 2, 6, 3])
    >>> found.mean, found.wins, found.verdict
    (-3.0, 5, 'too few to tell')
    """
    first, second = _values(a, "a"), _values(b, "b")
    if len(first) != len(second):
        raise InputError(f"a and b must have equal lengths, not {len(first)} and {len(second)}.")
    if not len(first):
        raise InputError("a and b must contain at least one pair.")
    if groups is not None and len(groups) != len(first):
        raise InputError(f"groups must name a group for each of the {len(first)} pairs.")
    if resamples < 1:
        raise InputError(f"resamples must be at least 1, not {resamples}.")

    difference = second - first
    logs = np.full(len(first), np.nan)
    if (first > 0).all() and (second > 0).all():
        logs = np.log(second) - np.log(first)
    values = np.column_stack([difference, logs])
    ends = _ends(values, groups, resamples, seed)
    mean, log_mean = values.mean(axis=0)
    return PairedDifference(
        pairs=len(first),
        units=len(first) if groups is None else len(set(groups)),
        mean=float(mean),
        low=float(ends[0, 0]),
        high=float(ends[1, 0]),
        ratio=_ratio(log_mean),
        ratio_low=_ratio(ends[0, 1]),
        ratio_high=_ratio(ends[1, 1]),
        wins=int((difference < 0).sum()),
        losses=int((difference > 0).sum()),
        ties=int((difference == 0).sum()),
    )


def _values(values: ArrayLike, name: str) -> NDArray[np.float64]:
    array = np.asarray(values, np.float64)
    if array.ndim != 1 or not np.isfinite(array).all():
        raise InputError(f"{name} must be a list of finite numbers.")
    return array


def _ends(
    values: NDArray[np.float64], groups: Sequence[str] | None, resamples: int, seed: int
) -> NDArray[np.float64]:
    """Return the ends of the intervals of the column means: (2, columns)."""
    number = (
        np.arange(len(values))
        if groups is None
        else np.unique(np.asarray(groups), return_inverse=True)[1]
    )
    counts = np.bincount(number)
    if len(counts) < 2:
        return np.full((2, values.shape[1]), np.nan)  # all draws would be equal
    sums = np.zeros((len(counts), values.shape[1]))
    np.add.at(sums, number, values)
    generator = np.random.default_rng(seed)
    rows = max(1, _CHUNK // len(counts))
    means = []
    for start in range(0, resamples, rows):
        size = (min(rows, resamples - start), len(counts))
        drawn = generator.integers(len(counts), size=size)
        means.append(sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1)[:, None])
    tail = (1 - _LEVEL) / 2
    return np.asarray(np.quantile(np.concatenate(means), [tail, 1 - tail], axis=0))


def _ratio(log: float) -> float:
    try:
        return math.exp(log)
    except OverflowError:
        return math.nan

"""The paired bootstrap, by hand and by simulation."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from hamflow.errors import InputError
from hamflow.evaluation import paired_bootstrap


def test_two_pairs_by_hand() -> None:
    """Of two pairs, a draw has the first twice, the second twice, or (half the time) both."""
    found = paired_bootstrap([1, 2], [3, 8])
    assert (found.pairs, found.units) == (2, 2)
    assert (found.mean, found.low, found.high) == (4, 2, 6)
    assert found.ratio == pytest.approx(math.sqrt(12))
    assert (found.ratio_low, found.ratio_high) == pytest.approx((3, 4))
    assert (found.wins, found.losses, found.ties) == (0, 2, 0)
    assert found.verdict == "too few to tell"


def test_three_pairs_against_all_draws() -> None:
    """All 27 draws are equally likely: the interval is that of their means."""
    difference = np.array([-1.0, 0.5, 4.0])
    means = np.array([difference[list(d)].mean() for d in itertools.product(range(3), repeat=3)])
    found = paired_bootstrap(np.zeros(3), difference, resamples=200_000)
    # Draws with probability 1/27 each at both ends are more than 2.5 %.
    assert (found.low, found.high) == (means.min(), means.max()) == (-1, 4)
    assert (found.wins, found.losses, found.ties) == (1, 2, 0)


def test_verdicts() -> None:
    """From ten pairs on; below, intervals are too narrow."""
    first = np.linspace(1, 2, 10)
    noise = np.tile([1.0, -1.0], 5)
    for size, better, worse, same in (
        (10, "better", "worse", "not distinguishable"),
        (9, *["too few to tell"] * 3),
    ):
        a = first[:size]
        assert paired_bootstrap(a, a - 0.5).verdict == better
        assert paired_bootstrap(a, a + 0.5).verdict == worse
        assert paired_bootstrap(a, a + noise[:size] / 2).verdict == same


def test_groups_by_hand() -> None:
    """Both groups, or one of them twice: the means are 2, 1 and 5."""
    found = paired_bootstrap(np.zeros(4), [1, 1, 1, 5], groups=["a", "a", "a", "b"])
    assert (found.pairs, found.units, found.mean) == (4, 2, 2)
    assert (found.low, found.high) == (1, 5)
    # One pair to a group is the same as none.
    names = [f"g{number}" for number in range(9)]
    values = np.random.default_rng(0).normal(1, 1, 9)
    alone = paired_bootstrap(np.zeros(9), values)
    assert paired_bootstrap(np.zeros(9), values, groups=names).as_row() == alone.as_row()


def test_equal_values() -> None:
    found = paired_bootstrap([1, 2, 3], [1, 2, 3])
    assert (found.mean, found.low, found.high) == (0, 0, 0)
    assert (found.ratio, found.ratio_low, found.ratio_high) == (1, 1, 1)
    assert (found.wins, found.losses, found.ties) == (0, 0, 3)


@pytest.mark.parametrize("groups", [None, ["a"], ["a", "a", "a"]])
def test_one_unit_has_no_interval(groups: list[str] | None) -> None:
    size = 1 if groups is None else len(groups)
    found = paired_bootstrap(np.ones(size), np.full(size, 3.0), groups=groups)
    assert (found.units, found.mean) == (1, 2)
    assert found.ratio == pytest.approx(3)
    assert np.isnan([found.low, found.high, found.ratio_low, found.ratio_high]).all()
    assert found.verdict == "too few to tell"
    row = found.as_row()
    assert (row["mean"], row["low"], row["high"]) == (2, None, None)
    json.dumps(row, allow_nan=False)


def test_no_ratio_with_zeros() -> None:
    found = paired_bootstrap([0, 1, 2], [1, 1, 1])
    assert np.isnan([found.ratio, found.ratio_low, found.ratio_high]).all()
    assert (found.mean, found.wins, found.losses, found.ties) == (0, 1, 1, 1)
    json.dumps(found.as_row(), allow_nan=False)
    huge = paired_bootstrap([1, 1e-308], [1, 1e300])
    assert math.isnan(huge.ratio_high)
    assert huge.ratio_low == 1
    json.dumps(huge.as_row(), allow_nan=False)


def test_seeds() -> None:
    a, b = np.random.default_rng(1).exponential(1, (2, 40))
    first = paired_bootstrap(a, b, seed=3)
    assert paired_bootstrap(a, b, seed=3) == first
    other = paired_bootstrap(a, b, seed=4)
    assert other != first
    assert (other.low, other.high) == pytest.approx((first.low, first.high), abs=0.03)


def test_large_samples_are_drawn_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    b = np.random.default_rng(1).normal(0.1, 1, 500)
    whole = paired_bootstrap(np.zeros(500), b, resamples=2000)
    monkeypatch.setattr("hamflow.evaluation.bootstrap._CHUNK", 7000)
    # The numbers drawn are the same, in other portions.
    assert paired_bootstrap(np.zeros(500), b, resamples=2000).as_row() == whole.as_row()


def test_near_the_t_interval() -> None:
    """For a mean of many normal numbers, both are known to agree."""
    for seed in range(5):
        values = np.random.default_rng(seed).normal(0.3, 2, 60)
        found = paired_bootstrap(np.zeros(60), values)
        low, high = stats.t.interval(0.95, 59, values.mean(), stats.sem(values))
        assert (found.low, found.high) == pytest.approx((low, high), abs=0.08 * (high - low))


def test_coverage() -> None:
    """How often the interval holds the truth: nearly as often as the t interval's 95 %."""
    generator = np.random.default_rng(0)
    held = trusted = 0
    reach = stats.t.ppf(0.975, 29) / math.sqrt(30)
    for seed in range(400):
        values = generator.normal(1, 1, 30)
        found = paired_bootstrap(np.zeros(30), values, resamples=400, seed=seed)
        held += found.low <= 1 <= found.high
        trusted += bool(abs(values.mean() - 1) <= reach * values.std(ddof=1))
    # Four standard deviations of such a share are 5 %.
    assert held / 400 == pytest.approx(0.93, abs=0.05)
    assert held / 400 == pytest.approx(trusted / 400, abs=0.04)


def test_groups_make_correlated_pairs_wider() -> None:
    generator = np.random.default_rng(2)
    groups = [f"scene_{number // 10}" for number in range(200)]
    held = {"pairs": 0, "groups": 0}
    for seed in range(60):
        # What the pairs of a scene have in common is as large as what they do not.
        values = np.repeat(generator.normal(0, 1, 20), 10) + generator.normal(0, 1, 200)
        pairs = paired_bootstrap(np.zeros(200), values, resamples=300, seed=seed)
        wide = paired_bootstrap(np.zeros(200), values, groups=groups, resamples=300, seed=seed)
        assert wide.units == 20
        assert wide.high - wide.low > 1.2 * (pairs.high - pairs.low)
        for name, one in (("pairs", pairs), ("groups", wide)):
            held[name] += one.low <= 0 <= one.high
    assert held["groups"] / 60 > 0.8
    assert held["pairs"] / 60 < 0.75


Numbers = st.lists(st.tuples(*2 * [st.just(0.0) | st.floats(1e-3, 1e3)]), min_size=2, max_size=30)


@given(Numbers, st.integers(0, 2**32))
def test_antisymmetry(numbers: list[tuple[float, float]], seed: int) -> None:
    a, b = np.array(numbers).T
    there = paired_bootstrap(a, b, resamples=200, seed=seed)
    back = paired_bootstrap(b, a, resamples=200, seed=seed)
    near = {"rel": 1e-9, "abs": 1e-9}
    assert (back.mean, back.low, back.high) == pytest.approx(
        (-there.mean, -there.high, -there.low), **near
    )
    assert (back.wins, back.losses, back.ties) == (there.losses, there.wins, there.ties)
    if not math.isnan(there.ratio):
        product = there.ratio * back.ratio, there.ratio_low * back.ratio_high
        assert product == pytest.approx((1, 1), rel=1e-9)


@given(Numbers, st.integers(0, 5))
def test_bounds(numbers: list[tuple[float, float]], count: int) -> None:
    a, b = np.array(numbers).T
    groups = [str(number % (count + 2)) for number in range(len(a))]
    found = paired_bootstrap(a, b, groups=groups, resamples=200)
    margin = 1e-9 * (1 + np.abs(b - a).max())
    assert (b - a).min() - margin <= found.low <= found.high <= (b - a).max() + margin
    assert found.mean == pytest.approx((b - a).mean(), abs=margin)
    assert found.wins + found.losses + found.ties == found.pairs == len(a)


def test_wrong_values() -> None:
    for a, b, words in (
        ([], [], "at least one pair"),
        ([1], [1, 2], "equal lengths, not 1 and 2"),
        ([1, math.nan], [1, 2], "a must be a list of finite numbers"),
        ([1, 2], [1, math.inf], "b must be a list of finite numbers"),
        ([[1]], [[1]], "a must be a list"),
    ):
        with pytest.raises(InputError, match=words):
            paired_bootstrap(a, b)
    with pytest.raises(InputError, match="for each of the 2 pairs"):
        paired_bootstrap([1, 2], [1, 2], groups=["a"])
    with pytest.raises(InputError, match="resamples must be at least 1"):
        paired_bootstrap([1, 2], [1, 2], resamples=0)

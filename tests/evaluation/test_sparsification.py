"""Sparsification curves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hamflow.errors import InputError
from hamflow.evaluation import sparsification


def test_by_hand() -> None:
    """Four pixels: without the least confident one the mean falls from 2.5 to 2, and so on."""
    curve = sparsification([4.0, 3.0, 2.0, 1.0], [0.1, 0.2, 0.3, 0.4])
    assert curve.error[0] == curve.oracle[0] == 1.0
    assert curve.error[25] == pytest.approx(2.0 / 2.5)
    assert curve.error[50] == pytest.approx(1.5 / 2.5)
    assert curve.error[75] == pytest.approx(1.0 / 2.5)
    assert curve.ause == 0.0


def test_the_worst_order() -> None:
    curve = sparsification([1.0, 2.0, 3.0, 4.0], [0.1, 0.2, 0.3, 0.4])
    assert curve.error[75] == pytest.approx(4.0 / 2.5)
    assert curve.ause > 0.5


def test_a_random_order_is_about_flat() -> None:
    rng = np.random.default_rng(0)
    errors = rng.exponential(size=20000)
    curve = sparsification(errors, rng.random(20000))
    assert np.abs(curve.error[:80] - 1).max() < 0.05
    assert curve.ause == pytest.approx(float((1 - curve.oracle).mean()), abs=0.03)


@given(st.lists(st.floats(0, 100), min_size=1, max_size=60), st.integers(0, 1000))
def test_no_order_beats_the_oracle(errors: list[float], seed: int) -> None:
    certain = np.random.default_rng(seed).random(len(errors))
    curve = sparsification(errors, certain)
    assert (curve.error >= curve.oracle - 1e-9).all()
    assert curve.ause >= -1e-9


def test_unknown_errors_do_not_count() -> None:
    with_nan = sparsification([4.0, np.nan, 2.0], [0.1, 0.9, 0.3])
    without = sparsification([4.0, 2.0], [0.1, 0.3])
    assert with_nan.ause == without.ause
    assert (with_nan.error == without.error).all()


def test_no_error_at_all() -> None:
    assert sparsification(np.zeros((3, 4)), np.ones((3, 4))).ause == 0


def test_bad_arguments() -> None:
    with pytest.raises(InputError, match="same shape"):
        sparsification(np.zeros((3, 4)), np.ones(3))
    with pytest.raises(InputError, match="NaN everywhere"):
        sparsification([np.nan], [1.0])

"""What the pair before lets expect."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hamflow.pipeline.prediction import continued


@given(u=st.integers(-5, 5), v=st.integers(-4, 4))
def test_uniform_motion_goes_on(u: int, v: int) -> None:
    backward = np.broadcast_to(np.float32([-u, -v]), (12, 16, 2)).copy()
    forward, after = continued(backward, np.ones((12, 16), np.bool_))
    np.testing.assert_array_equal(forward[0], np.broadcast_to(np.float32([u, v]), (12, 16, 2)))
    assert forward[1].all()
    np.testing.assert_array_equal(after[0], backward)
    # What enters the image has no partner in the frame before.
    y, x = np.indices((12, 16))
    came = (x - u >= 0) & (x - u < 16) & (y - v >= 0) & (y - v < 12)
    np.testing.assert_array_equal(after[1], came.astype(np.float32))


def test_an_object_is_expected_where_it_goes() -> None:
    backward = np.zeros((9, 20, 2), np.float32)
    backward[3:6, 4:7] = (-5, 0)
    (flow, _), (after, known) = continued(backward, np.ones((9, 20), np.bool_))
    assert (flow[3:6, 4:7] == (5, 0)).all()
    assert not flow[:3].any()
    assert (after[3:6, 7:9] == 0).all()
    assert (known[3:6, 4:7] == 0).all()  # nothing ends where it was: unknown
    assert (after[3:6, 4:7, 0] == -5).all()


def test_trusted_pixels_take_precedence() -> None:
    backward = np.zeros((1, 8, 2), np.float32)
    backward[0, 2] = (-3, 0)  # ends at 5, where pixel 5 rests
    for first_trusted in (True, False):
        trusted = np.ones((1, 8), np.bool_)
        trusted[0, 5 if first_trusted else 2] = False
        (_, sure), (after, known) = continued(backward, trusted)
        assert after[0, 5, 0] == (-3 if first_trusted else 0)
        assert known[0, 5] == 1
        np.testing.assert_array_equal(sure, trusted.astype(np.float32))


def test_nothing_ends_outside() -> None:
    backward = np.full((4, 5, 2), 1e6, np.float32)
    (_, _), (after, known) = continued(backward, np.ones((4, 5), np.bool_))
    np.testing.assert_array_equal(after, backward)
    assert not known.any()

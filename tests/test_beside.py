"""Two things at a time: the same values and errors, and all threads afterwards."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import hamflow
from hamflow import _native
from hamflow._beside import for_each, is_concurrent, side_by_side
from hamflow.crf.joint_model import JointModel
from hamflow.refinement import LabelingCompletion


def cleared() -> int:
    """Run a kernel that many threads can share."""
    array = np.ones(5 << 20, np.uint8)
    _native.clear(array)
    return int(array.sum())


@pytest.mark.parametrize("threads", [1, 2, 3, 4])
def test_returns_both(threads: int) -> None:
    hamflow.set_num_threads(threads)
    for _ in range(20):
        assert side_by_side(cleared, lambda: cleared() + 1) == (0, 1)


def test_runs_at_the_same_time() -> None:
    """Each waits for the other."""
    hamflow.set_num_threads(2)
    meeting = threading.Barrier(2, timeout=60)
    side_by_side(meeting.wait, meeting.wait)


@pytest.mark.parametrize("at_once", [False, True])
def test_one_after_the_other(at_once: bool) -> None:
    hamflow.set_num_threads(1 if at_once else 2)
    me = threading.get_ident()
    assert side_by_side(threading.get_ident, threading.get_ident, at_once=at_once) == (me, me)


@pytest.mark.parametrize("first_fails", [False, True])
def test_errors_of_either_are_raised(first_fails: bool) -> None:
    hamflow.set_num_threads(2)

    def failing() -> int:
        raise KeyError("this one")

    both = (failing, cleared) if first_fails else (cleared, failing)
    with pytest.raises(KeyError, match="this one"):
        side_by_side(*both)
    assert side_by_side(cleared, cleared) == (0, 0)


def test_each_item_has_its_place() -> None:
    hamflow.set_num_threads(2)
    for items in ([], [3], [3, 4], [3, 4, 5]):
        for at_once in (False, True):
            assert for_each(lambda k: 2 * k, items, at_once=at_once) == [2 * k for k in items]


def test_only_stages_that_say_so_are_called_by_two_threads() -> None:
    assert is_concurrent(JointModel())
    assert is_concurrent(LabelingCompletion())
    assert not is_concurrent(lambda matches: matches)

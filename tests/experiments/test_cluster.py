"""The simulation of batches on a cluster."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from experiments.scripts.cluster import START, Cluster, simulate

CALM = Cluster(
    machines=3,
    slots=4,
    seconds=2.0,
    spread=0.0,
    slow=0.0,
    slowdown=2.0,
    lifetime=math.inf,
    repair=5.0,
    deadly=0.0,
    leader=0.0,
)


def test_without_trouble() -> None:
    hours, used, losses, repeated, failed = simulate(CALM, 1200)
    assert hours * 3600 == pytest.approx(START + 100 * 2.0)
    assert used == pytest.approx(200 / (200 + START))
    assert (losses, repeated, failed) == (0, 0, 0)


def test_a_leader_that_is_too_slow() -> None:
    hours, *_ = simulate(replace(CALM, leader=1.0), 1200)
    assert 1200 < hours * 3600 < 1500


def test_stragglers() -> None:
    hours, *_ = simulate(replace(CALM, slow=1 / 3, slowdown=4.0), 1200)
    # Two machines at full speed and one at a quarter of it share the work by their speeds.
    assert hours * 3600 == pytest.approx(START + 2400 / (8 + 4 / 4), rel=0.05)


def test_losses_and_deadly_pairs() -> None:
    cluster = replace(CALM, lifetime=0.05, repair=1.0, deadly=0.01)
    hours, used, losses, repeated, failed = simulate(cluster, 3000)
    assert hours > simulate(CALM, 3000)[0]
    assert losses > 3
    assert repeated > losses
    assert 10 < failed < 70
    assert used < 0.9

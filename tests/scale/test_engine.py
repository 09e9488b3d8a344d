"""How pairs get to workers, with workers that die whenever a test likes."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from itertools import pairwise

import hypothesis.strategies as st
import pytest
from hypothesis import given

from hamflow.errors import HamflowError
from hamflow.scale.engine import LOSSES, TRIES, Died, Event, Finished, Ready, run
from hamflow.scale.pairs import ImagePair
from hamflow.scale.worker import Record

PAIRS = [ImagePair(f"p{number:03}", "a", "b") for number in range(40)]


class Scripted:
    """Workers whose fate a function decides by the name of the pair, or None at the start."""

    def __init__(self, slots: int, fate: Callable[[str | None], str]) -> None:
        self.slots = slots
        self._fate = fate
        self._events: list[Event] = []
        self.busy: dict[int, str] = {}
        self.alive: set[int] = set()
        self.sent: Counter[str] = Counter()
        self.order: list[tuple[int, str]] = []
        self.stopped: list[str] = []

    def _end(self, slot: int, fate: str) -> None:
        self.alive.discard(slot)
        self._events.append(Died(slot, "bad luck", blameless=fate == "node"))

    def start(self, slot: int) -> None:
        assert slot not in self.alive
        self.alive.add(slot)
        fate = self._fate(None)
        if fate == "good":
            self._events.append(Ready(slot))
        else:
            self._end(slot, fate)

    def send(self, slot: int, pair: ImagePair) -> None:
        assert slot in self.alive
        assert slot not in self.busy
        self.busy[slot] = pair.name
        self.sent[pair.name] += 1
        self.order.append((slot, pair.name))

    def wait(self, seconds: float | None) -> list[Event]:
        events, self._events = self._events, []
        for slot, name in [*self.busy.items()][: 1 if events else None]:
            fate = self._fate(name)
            if fate == "hangs":
                continue
            del self.busy[slot]
            if fate == "good":
                events.append(Finished(slot, {"status": "done"}))
            else:
                self._end(slot, fate)
                events.append(self._events.pop())
        assert events or seconds is not None, "it would wait forever"
        if not events and seconds is not None:
            time.sleep(seconds)
        return events

    def stop(self, slot: int) -> None:
        self.alive.remove(slot)
        self.stopped.append(self.busy.pop(slot))

    def close(self) -> None:
        pass


def run_all(
    engine: Scripted, pairs: list[ImagePair] = PAIRS, timeout: float | None = None
) -> dict[str, Record]:
    found = [item for items in run(engine, pairs, timeout) for item in items]
    assert sorted(pair.name for pair, _ in found) == sorted(pair.name for pair in pairs)
    return {pair.name: record for pair, record in found}


@given(slots=st.integers(1, 50), count=st.integers(0, 40))
def test_each_pair_once(slots: int, count: int) -> None:
    engine = Scripted(slots, lambda name: "good")
    records = run_all(engine, PAIRS[:count])
    assert all(record == {"status": "done", "attempts": 1} for record in records.values())
    assert set(engine.sent.values()) <= {1}


def test_runs_of_neighbors() -> None:
    """A worker mostly gets the pair after its last, with which it shares a frame."""
    pairs = [ImagePair(f"{number:04}", "a", "b") for number in range(400)]
    engine = Scripted(2, lambda name: "good")
    run_all(engine, pairs)
    own = [[int(name) for slot, name in engine.order if slot == k] for k in range(2)]
    steps = [b - a for numbers in own for a, b in pairwise(numbers)]
    assert steps.count(1) > 0.8 * len(steps)
    assert min(map(len, own)) > 150


def test_a_deadly_pair_fails_alone() -> None:
    engine = Scripted(3, lambda name: "dies" if name in ("p005", "p030") else "good")
    records = run_all(engine)
    failed = {name: record for name, record in records.items() if record["status"] != "done"}
    assert set(failed) == {"p005", "p030"}
    for record in failed.values():
        assert record["error"] == f"The worker process died of this pair {TRIES} times: bad luck."
        assert record["attempts"] == TRIES
    assert max(engine.sent.values()) == TRIES


def test_a_pair_that_hangs_fails_alone() -> None:
    hanging = {"p000", "p007", "p008", "p039"}
    engine = Scripted(3, lambda name: "hangs" if name in hanging else "good")
    records = run_all(engine, timeout=0.02)
    assert {name for name, record in records.items() if record["status"] != "done"} == hanging
    assert set(engine.stopped) == hanging
    for name in hanging:
        assert (
            records[name]["error"] == "It took longer than the 0.02 seconds that a pair may take."
        )
        assert engine.sent[name] == 1  # it would only hang again


def test_lost_nodes_are_nobody_s_fault() -> None:
    lost = Counter[str]()

    def fate(name: str | None) -> str:
        if name in ("p003", "p017") and lost[name] < 5:
            lost[name] += 1
            return "node"
        return "good"

    records = run_all(Scripted(4, fate))
    assert {record["status"] for record in records.values()} == {"done"}
    assert lost == {"p003": 5, "p017": 5}


def test_a_pair_is_not_tried_without_end() -> None:
    engine = Scripted(2, lambda name: "node" if name == "p001" else "good")
    records = run_all(engine)
    assert records.pop("p001")["attempts"] == engine.sent["p001"] == LOSSES
    assert {record["status"] for record in records.values()} == {"done"}


def test_workers_that_never_start() -> None:
    engine = Scripted(2, lambda name: "dies")
    with pytest.raises(HamflowError, match="end before they begin to work: bad luck"):
        run_all(engine)


@given(st.data(), st.integers(1, 5))
def test_whatever_dies(data: st.DataObject, slots: int) -> None:
    """Deaths at random never lose a pair, nor let it be tried without end."""
    starts = 0

    def fate(name: str | None) -> str:
        nonlocal starts
        if name is None:
            starts += 1
            return "dies" if starts % 3 == 0 else "good"
        return data.draw(st.sampled_from(["good", "good", "dies", "node"]))

    records = run_all(Scripted(slots, fate), PAIRS[:8])
    for record in records.values():
        assert record["status"] == "done" or TRIES <= record["attempts"] <= LOSSES

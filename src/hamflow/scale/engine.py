"""How the pairs of a batch get to the workers, whatever the workers are: the same for all engines.

An engine has slots. In each of them is one worker at a time, which has at most one pair at a time:
so it is known which pair a worker died of, and no more than one pair per slot is under way.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from hamflow.errors import HamflowError
from hamflow.scale.pairs import ImagePair
from hamflow.scale.worker import FAILED, Record

TRIES = 2
"""How often a pair may take its worker with it before it counts as failed."""
LOSSES = 10
"""How often a pair may be lost for any reason, so that no pair is tried without end."""
_RUN = 16  # consecutive pairs that a worker gets if there are many, because they share frames
_FALSE_STARTS = 3  # in a row, for each slot, until a batch gives up


@dataclass(frozen=True)
class Ready:
    """A worker is ready for its first pair."""

    slot: int


@dataclass(frozen=True)
class Finished:
    """A worker has finished its pair, well or not."""

    slot: int
    record: Record


@dataclass(frozen=True)
class Died:
    """A worker has died; `blameless` if that cannot have been because of its pair."""

    slot: int
    reason: str
    blameless: bool = False


Event = Ready | Finished | Died


class Engine(Protocol):
    """Where the workers are."""

    slots: int

    def start(self, slot: int) -> None:
        """Start a worker, in the place of one that has died."""

    def send(self, slot: int, pair: ImagePair) -> None:
        """Give a pair to a worker that has none."""

    def wait(self, seconds: float | None) -> list[Event]:
        """Wait until something has happened, or until so many seconds have passed."""

    def stop(self, slot: int) -> None:
        """End a worker at once; no event tells of it."""

    def close(self) -> None:
        """End all workers, also those that have a pair."""


def run(
    engine: Engine, pairs: Sequence[ImagePair], timeout: float | None = None
) -> Iterator[list[tuple[ImagePair, Record]]]:
    """Have an engine work on all pairs; yield pairs and records as they are finished.

    Parameters
    ----------
    engine : Engine
        Where the workers are.
    pairs : sequence of ImagePair
        What to do.
    timeout : float, optional
        Seconds that a pair may take; one that takes longer fails, and its worker is replaced.

    Raises
    ------
    HamflowError
        If workers die again and again before they have begun to work.
    """
    leader = _Leader(engine, pairs, timeout)
    for slot in range(min(engine.slots, len(pairs))):
        engine.start(slot)
    left = len(pairs)
    while left:
        for event in engine.wait(leader.patience()):
            leader.handle(event)
        leader.stop_late()
        leader.assign()
        # After the workers have got their next pairs: recording takes time, too.
        finished, leader.finished = leader.finished, []
        left -= len(finished)
        if finished:
            yield finished


class _Leader:
    """Knows what each worker is doing, and what is to be done about those that died."""

    def __init__(self, engine: Engine, pairs: Sequence[ImagePair], timeout: float | None) -> None:
        self.finished: list[tuple[ImagePair, Record]] = []
        self._engine = engine
        self._timeout = timeout
        self._deadlines: dict[int, float] = {}
        self._schedule = _Schedule(pairs, engine.slots)
        self._busy: dict[int, ImagePair] = {}
        self._idle: set[int] = set()
        self._deaths: Counter[str] = Counter()
        self._losses: Counter[str] = Counter()
        self._false_starts = 0

    def handle(self, event: Event) -> None:
        pair = self._busy.pop(event.slot, None)
        self._deadlines.pop(event.slot, None)
        if isinstance(event, Died):
            self._schedule.release(event.slot)
            self._idle.discard(event.slot)
            if pair is not None:
                self._lost(pair, event)
            elif not event.blameless:
                self._false_start(event.reason)
            self._engine.start(event.slot)
            return
        self._false_starts = 0
        self._idle.add(event.slot)
        if isinstance(event, Finished):
            assert pair is not None
            attempts = self._losses[pair.name] + 1
            self.finished.append((pair, event.record | {"attempts": attempts}))

    def assign(self) -> None:
        """Give pairs to the workers that have none."""
        for slot in sorted(self._idle):
            pair = self._schedule.next(slot)
            if pair is not None:
                self._idle.discard(slot)
                self._busy[slot] = pair
                if self._timeout is not None:
                    self._deadlines[slot] = time.monotonic() + self._timeout
                self._engine.send(slot, pair)

    def patience(self) -> float | None:
        """Return how many seconds there are until a pair takes too long."""
        if not self._deadlines:
            return None
        return max(0.0, min(self._deadlines.values()) - time.monotonic())

    def stop_late(self) -> None:
        """Let pairs fail that take too long, and replace their workers."""
        now = time.monotonic()
        for slot in [slot for slot, deadline in self._deadlines.items() if deadline <= now]:
            pair = self._busy.pop(slot)
            del self._deadlines[slot]
            self._engine.stop(slot)
            self._schedule.release(slot)
            self._engine.start(slot)
            error = f"It took longer than the {self._timeout:g} seconds that a pair may take."
            attempts = self._losses[pair.name] + 1
            record = {"status": FAILED, "error": error, "attempts": attempts}
            self.finished.append((pair, record))

    def _lost(self, pair: ImagePair, event: Died) -> None:
        self._deaths[pair.name] += not event.blameless
        self._losses[pair.name] += 1
        losses = self._losses[pair.name]
        if self._deaths[pair.name] < TRIES and losses < LOSSES:
            self._schedule.again(pair)
            return
        times = losses if losses == LOSSES else self._deaths[pair.name]
        error = f"The worker process died of this pair {times} times: {event.reason}."
        self.finished.append((pair, {"status": FAILED, "error": error, "attempts": losses}))

    def _false_start(self, reason: str) -> None:
        self._false_starts += 1
        if self._false_starts >= _FALSE_STARTS * self._engine.slots:
            raise HamflowError(f"The workers end before they begin to work: {reason}.")


class _Schedule:
    """Which pair a worker gets next: mostly the one after its last, with which it shares a frame.

    The runs of pairs become shorter towards the end, so that all workers end at about one time.
    """

    def __init__(self, pairs: Sequence[ImagePair], slots: int) -> None:
        self._left = deque(pairs)
        self._again: deque[ImagePair] = deque()
        self._runs: dict[int, deque[ImagePair]] = {slot: deque() for slot in range(slots)}

    def next(self, slot: int) -> ImagePair | None:
        run = self._runs[slot]
        if not run:
            if self._again:
                return self._again.popleft()
            length = min(_RUN, len(self._left) // (4 * len(self._runs)))
            run.extend(self._left.popleft() for _ in range(min(max(1, length), len(self._left))))
        return run.popleft() if run else None

    def again(self, pair: ImagePair) -> None:
        """Have a pair tried again, by whoever is free next."""
        self._again.append(pair)

    def release(self, slot: int) -> None:
        """Let others have the pairs of a worker that died: the next one may not come soon."""
        self._left.extendleft(reversed(self._runs[slot]))
        self._runs[slot].clear()

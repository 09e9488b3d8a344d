"""How long a batch takes on a cluster, simulated with stragglers and failures.

    python -m experiments.scripts.cluster [--pairs 1000000] [--machines 16] [--slots 16]
        [--seconds 2.0] [--spread 0.2] [--slow 0.05] [--slowdown 2.0] [--lifetime 24]
        [--repair 5] [--deadly 0.00001] [--leader 0.0006]

The leader is the real one of ``hamflow batch`` (`hamflow.scale.engine.run`); the workers are
simulated. A pair takes `--seconds` on one core of an ordinary machine, with a lognormal spread; a
share `--slow` of the machines is slower by the factor `--slowdown`. A machine is lost after
`--lifetime` hours on average (exponentially distributed) with the pairs that it has under way, and
another one takes its place after `--repair` minutes. A share `--deadly` of the pairs kills its
worker. The leader needs `--leader` seconds for each pair that it records and hands out, one after
the other.
"""

from __future__ import annotations

import heapq
import math
import random
from collections import Counter
from dataclasses import dataclass

import tyro

from hamflow.scale.engine import Died, Event, Finished, Ready, run
from hamflow.scale.pairs import ImagePair

START = 10.0  # seconds until a new worker has started and loaded its model


@dataclass(frozen=True)
class Cluster:
    """What is simulated; see above."""

    machines: int = 16
    slots: int = 16
    seconds: float = 2.0
    spread: float = 0.2
    slow: float = 0.05
    slowdown: float = 2.0
    lifetime: float = 24.0
    repair: float = 5.0
    deadly: float = 1e-5
    leader: float = 0.0006


class SimulatedEngine:
    """Workers whose work consists of waiting, in a time of their own."""

    def __init__(self, cluster: Cluster, seed: int) -> None:
        self.slots = cluster.machines * cluster.slots
        self._cluster = cluster
        self._random = random.Random(seed)
        self._clock = 0.0
        self._number = 0  # so that events of the same time are not compared
        self._queue: list[tuple[float, int, int, int, str]] = []
        self._life = Counter[int]()  # which worker it is that is in a slot
        self._back = [0.0] * cluster.machines  # when a machine is there again
        count = round(cluster.slow * cluster.machines)
        slow = set(self._random.sample(range(cluster.machines), count))
        self._factor = [cluster.slowdown if m in slow else 1.0 for m in range(cluster.machines)]
        self.busy = 0.0
        self.losses = 0
        self._begun: dict[int, tuple[float, ImagePair]] = {}
        for machine in range(cluster.machines):
            self._plan_loss(machine, 0.0)

    @property
    def hours(self) -> float:
        """How much time has passed."""
        return self._clock / 3600

    def _push(self, time: float, slot: int, kind: str) -> None:
        self._number += 1
        heapq.heappush(self._queue, (time, self._number, slot, self._life[slot], kind))

    def _plan_loss(self, machine: int, after: float) -> None:
        if math.isfinite(self._cluster.lifetime):
            wait = self._random.expovariate(1 / (3600 * self._cluster.lifetime))
            self._push(after + wait, -1 - machine, "lost")

    def start(self, slot: int) -> None:
        """Start a worker as soon as its machine is there."""
        self._life[slot] += 1
        there = max(self._clock, self._back[slot // self._cluster.slots])
        self._push(there + START, slot, "ready")

    def send(self, slot: int, pair: ImagePair) -> None:
        """Let a worker begin with a pair."""
        cluster = self._cluster
        factor = self._factor[slot // cluster.slots]
        spread = self._random.lognormvariate(-(cluster.spread**2) / 2, cluster.spread)
        self._begun[slot] = self._clock, pair
        deadly = pair.image0 == "deadly"
        share = self._random.random() if deadly else 1.0
        ends = self._clock + share * cluster.seconds * factor * spread
        self._push(ends, slot, "dies" if deadly else "done")

    def wait(self, seconds: float | None) -> list[Event]:
        """Go on in time until something happens; pairs of the simulation have no time limit."""
        assert seconds is None
        events: list[Event] = []
        while not events or (self._queue and self._queue[0][0] <= self._clock):
            time, _, slot, life, kind = heapq.heappop(self._queue)
            if slot >= 0 and life != self._life[slot]:
                continue  # of a worker that is gone
            self._clock = max(self._clock, time)
            if kind == "lost":
                events += self._lose(-1 - slot)
                continue
            if kind == "ready":
                events.append(Ready(slot))
                continue
            self._clock += self._cluster.leader
            began, _ = self._begun.pop(slot)
            if kind == "done":
                self.busy += time - began
                events.append(Finished(slot, {"status": "done"}))
            else:
                self._life[slot] += 1
                events.append(Died(slot, "deadly"))
        return events

    def _lose(self, machine: int) -> list[Event]:
        """Lose a machine with all workers on it; some of them may have been lost already."""
        self.losses += 1
        self._back[machine] = self._clock + 60 * self._cluster.repair
        self._plan_loss(machine, self._back[machine])
        first = machine * self._cluster.slots
        slots = [s for s in range(first, first + self._cluster.slots) if self._life[s]]
        for slot in slots:
            self._life[slot] += 1
            self._begun.pop(slot, None)
        return [Died(slot, "machine lost", blameless=True) for slot in slots]

    def stop(self, slot: int) -> None:
        """End a worker at once."""
        self._life[slot] += 1
        self._begun.pop(slot, None)

    def close(self) -> None:
        """Nothing is open."""


def simulate(cluster: Cluster, pairs: int, seed: int = 0) -> tuple[float, float, int, int, int]:
    """Return hours, the share of the time in finished pairs, losses, repeated pairs, failures."""
    rng = random.Random(seed + 1)
    work = [
        ImagePair(str(n), "deadly" if rng.random() < cluster.deadly else "", "")
        for n in range(pairs)
    ]
    engine = SimulatedEngine(cluster, seed)
    repeated = failed = 0
    for finished in run(engine, work):
        for _, record in finished:
            repeated += record["attempts"] - 1
            failed += record["status"] != "done"
    used = engine.busy / (3600 * engine.hours * engine.slots)
    return engine.hours, used, engine.losses, repeated, failed


def main(cluster: tyro.conf.OmitArgPrefixes[Cluster], pairs: int = 1_000_000) -> None:
    """Simulate and print."""
    ideal = pairs * cluster.seconds / cluster.machines / cluster.slots / 3600
    hours, used, losses, repeated, failed = simulate(cluster, pairs)
    print(
        f"{pairs} pairs on {cluster.machines} machines with {cluster.slots} slots: {hours:.2f} h, "
        f"{hours / ideal:.3f} times the ideal {ideal:.2f} h; {used:.1%} of the time in finished "
        f"pairs, {losses} machines lost, {repeated} pairs repeated, {failed} failed"
    )


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)

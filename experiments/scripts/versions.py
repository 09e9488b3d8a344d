"""How fast one version of Hamflow is compared with another one, and with OpenCV.

    python -m experiments.scripts.versions BEFORE [AFTER] [--images FIRST SECOND]
        [--width 1024 --height 436] [--presets balanced fast] [--rounds 5] [--threads 2]

BEFORE and AFTER are the Python interpreters of two virtual environments in each of which one
version is installed; AFTER is this one by default. Both versions and OpenCV's methods run in turns,
each version in a process of its own, and the best time of each counts: both directions, occlusions
and confidence. The peak of the memory is that of the process of a version, after all presets.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import tyro
from rich.console import Console
from rich.table import Table

from experiments.bench._measure import timed
from experiments.bench.sequence import rendered_sequence
from hamflow._runtime import machine
from hamflow.evaluation import Method
from hamflow.io import read_image

# What stages of version 0.1.0 are called now.
RENAMED = {"joint model": "matching", "filling": "completion", "confidence": "assessment"}
PEERS = ("opencv-dis", "opencv-deepflow")

# Runs in the interpreter of either version: one line with a preset in, one line with times out.
WORKER = """
import json, resource, sys, time
import numpy as np, hamflow
images = [np.load(path) for path in sys.argv[1:3]]
estimators = {}
for line in sys.stdin:
    preset = line.strip()
    try:
        if preset not in estimators:
            estimators[preset] = hamflow.Estimator(preset)
            estimators[preset].estimate(*images)
        start = time.perf_counter()
        result = estimators[preset].estimate(*images)
        times = {"all": time.perf_counter() - start, **result.timings}
    except Exception:
        times = {}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({"times": times, "peak": peak}), flush=True)
"""


class Version:
    """One version of Hamflow, in a process of its own."""

    def __init__(self, python: str, images: tuple[str, str], threads: int) -> None:
        python = os.path.abspath(python)  # the process starts in another folder
        environment = os.environ | {"HAMFLOW_NUM_THREADS": str(threads)}
        # This version may be a checkout that is not installed; the other one must not see it.
        environment["PYTHONPATH"] = os.pathsep.join(sys.path) if python == sys.executable else ""
        self._process = subprocess.Popen(
            [python, "-c", WORKER, *images],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
            cwd=Path(images[0]).parent,  # where no other version can be imported from
        )
        self.best: dict[str, dict[str, float]] = {}
        self.peak = 0.0

    def run(self, preset: str) -> None:
        """Estimate once, and keep the times if they are the best."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(preset + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        self.peak = answer["peak"] / 1e6
        times = {RENAMED.get(stage, stage): s for stage, s in answer["times"].items()}
        if times and times["all"] < self.best.get(preset, {}).get("all", np.inf):
            self.best[preset] = times

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def main(
    before: tyro.conf.Positional[str],
    after: tyro.conf.Positional[str] = sys.executable,
    *,
    images: tuple[Path, Path] | None = None,
    width: int = 1024,
    height: int = 436,
    presets: tuple[str, ...] = ("balanced", "fast", "realtime"),
    rounds: int = 5,
    threads: int = len(os.sched_getaffinity(0)),
) -> None:
    """Measure and print."""
    pair = (
        rendered_sequence(height, width, 2)
        if images is None
        else [read_image(path) for path in images]
    )
    with TemporaryDirectory() as folder:
        names = (str(Path(folder) / "first.npy"), str(Path(folder) / "second.npy"))
        for name, image in zip(names, pair, strict=True):
            np.save(name, image)
        versions = {
            side: Version(python, names, threads)
            for side, python in (("before", before), ("after", after))
        }
        peers = {name: Method(name) for name in PEERS}
        seconds: dict[str, float] = {}
        for _ in range(rounds):
            for preset in presets:
                for version in versions.values():
                    version.run(preset)
            for name, method in peers.items():
                spent = timed(lambda method=method: method(*pair))[1]
                seconds[name] = min(spent, seconds.get(name, np.inf))
        for version in versions.values():
            version.close()
    _print(versions, seconds, presets, pair[0].shape, threads)


def _print(
    versions: dict[str, Version],
    seconds: dict[str, float],
    presets: tuple[str, ...],
    shape: tuple[int, ...],
    threads: int,
) -> None:
    console = Console(markup=False)
    console.print(json.dumps(machine()))
    table = Table(
        *("seconds", "before", "after", "before / after", "after / DIS"),
        title=f"{shape[1]}×{shape[0]}, {threads} threads",
    )
    before, after = (versions[side].best for side in ("before", "after"))
    for preset in presets:
        old, new = before.get(preset, {}), after.get(preset, {})
        for stage in ("all", *(key for key in (new or old) if key != "all")):
            name = preset if stage == "all" else f"  {stage}"
            times = [found.get(stage) for found in (old, new)]
            cells = ["" if time is None else f"{time:.3f}" for time in times]
            ratio = f"{times[0] / times[1]:.2f}" if times[0] and times[1] else ""
            peer = f"{times[1] / seconds[PEERS[0]]:.1f}" if times[1] and stage == "all" else ""
            table.add_row(name, *cells, ratio, peer)
    for name, spent in seconds.items():
        table.add_row(name, "", f"{spent:.3f}", "", "")
    table.add_row("peak memory, GB", *(f"{versions[s].peak:.2f}" for s in ("before", "after")))
    console.print(table)


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)

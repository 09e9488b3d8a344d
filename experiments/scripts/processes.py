"""How long a pair takes in one process with all threads, and in many processes with one each.

    python -m experiments.scripts.processes [--images FIRST SECOND] [--pairs 16]
        [--presets balanced fast realtime]

estimates the same pair again and again, and prints the seconds per pair of both ways: that is what
a whole data set takes, divided by its pairs.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import tyro

from experiments.bench.sequence import rendered_sequence
from hamflow.io import read_image

WORKER = """
import sys
import numpy as np, hamflow
estimator, images = hamflow.Estimator(sys.argv[1]), [np.load(path) for path in sys.argv[2:4]]
estimator.estimate(*images)
print("ready", flush=True)
sys.stdin.readline()
for _ in range(int(sys.argv[4])):
    estimator.estimate(*images)
"""


def seconds(
    preset: str, images: tuple[str, str], processes: int, threads: int, pairs: int
) -> float:
    """Return the seconds per pair; the start of the processes does not count."""
    each = -(-pairs // processes)
    environment = os.environ | {
        "HAMFLOW_NUM_THREADS": str(threads),
        "PYTHONPATH": os.pathsep.join(sys.path),  # this version may not be installed
    }
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, preset, *images, str(each)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for _ in range(processes)
    ]
    for worker in workers:
        assert worker.stdout is not None
        if worker.stdout.readline() != "ready\n":
            raise RuntimeError(f"A process with the preset {preset!r} has failed.")
    start = time.perf_counter()
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("\n")
        worker.stdin.flush()
    for worker in workers:
        worker.wait()
    spent = time.perf_counter() - start
    for worker in workers:
        worker.communicate()
    return spent / (each * processes)


def main(
    *,
    images: tuple[Path, Path] | None = None,
    pairs: int = 16,
    presets: tuple[str, ...] = ("balanced", "fast", "realtime"),
) -> None:
    """Measure and print."""
    pair = [read_image(path) for path in images or ()] or rendered_sequence(436, 1024, 2)
    cores = len(os.sched_getaffinity(0))
    with TemporaryDirectory() as folder:
        names = (str(Path(folder) / "first.npy"), str(Path(folder) / "second.npy"))
        for name, image in zip(names, pair, strict=True):
            np.save(name, image)
        for preset in presets:
            one = seconds(preset, names, processes=1, threads=cores, pairs=pairs)
            many = seconds(preset, names, processes=cores, threads=1, pairs=pairs)
            print(
                f"{preset}: {one:.3f} s per pair in one process with {cores} threads, "
                f"{many:.3f} s in {cores} processes with one thread each",
                flush=True,
            )


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)

"""How many pairs per second ``hamflow batch`` does, by workers and engines.

    python -m experiments.scripts.batches [--width 1024] [--height 436] [--preset fast]
        [--pairs 24] [--rounds 2] [--ways local-1 local-2 ray-2]

estimates the same rendered pair under many names with each of the ways in turns; `local-2` are two
local processes and `ray-2` two actors of Ray, with one thread each. It prints the pairs per second
(of each worker from its first finished pair to its last one, added up), the best of all rounds, and
the seconds of the whole call, in which processes start and the model is loaded.
"""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import TemporaryDirectory

import tyro

import hamflow
from experiments.bench.sequence import rendered_sequence


def measure(folder: Path, way: str, preset: str, out: Path) -> tuple[float, float]:
    """Return the pairs per second of the steady state, and the seconds of all."""
    engine, _, workers = way.partition("-")
    times: dict[str, list[float]] = {}
    started = time.perf_counter()
    report = hamflow.batch(
        folder / "pairs.csv",
        out,
        preset,
        engine=engine,  # type: ignore[arg-type]
        workers=int(workers),
        threads=1,
        progress=lambda p: times.setdefault(p.record["worker"], []).append(time.perf_counter()),
    )
    if report.failed:
        raise RuntimeError(f"{way}: {report.failed}")
    steady = sum((len(own) - 1) / (own[-1] - own[0]) for own in times.values())
    return steady, time.perf_counter() - started


def main(
    *,
    width: int = 1024,
    height: int = 436,
    preset: str = "fast",
    pairs: int = 24,
    rounds: int = 2,
    ways: tuple[str, ...] = ("local-1", "local-2", "ray-2"),
) -> None:
    """Measure and print."""
    best = dict.fromkeys(ways, (0.0, 0.0))
    with TemporaryDirectory() as name:
        folder = Path(name)
        images = rendered_sequence(height, width, 2)
        for number, image in enumerate(images):
            hamflow.write_image(folder / f"{number}.png", image)
        rows = ["0.png,1.png"] * pairs
        (folder / "pairs.csv").write_text("\n".join(["image0,image1", *rows]) + "\n")
        for turn in range(rounds):
            for way in ways:
                found = measure(folder, way, preset, folder / f"{way}-{turn}")
                best[way] = max(best[way], found)
                print(f"{way}: {found[0]:.3f} pairs/s, {found[1]:.1f} s in all", flush=True)
    first = best[ways[0]][0]
    print(f"{preset}, {width}×{height}, {pairs} pairs, best of {rounds}")
    for way, (rate, seconds) in best.items():
        print(f"{way}: {rate:.3f} pairs/s ({rate / first:.2f}×), {seconds:.1f} s in all")


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)

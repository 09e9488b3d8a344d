"""How many pairs per second ``hamflow batch`` does, by workers and engines.

    python -m experiments.scripts.batches [--width 1024] [--height 436] [--preset fast]
        [--pairs 24] [--rounds 2] [--ways local-1 local-2 ray-2]

estimates the same rendered pair under many names with each of the ways in turns; `local-2` are two
local processes and `ray-2` two actors of Ray, with one thread each. It prints the pairs per second
(of each worker from its first finished pair to its last one, added up), the best of all rounds, and
the seconds of the whole call, in which processes start and the model is loaded.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from tempfile import TemporaryDirectory

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


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--height", type=int, default=436)
    parser.add_argument("--preset", default="fast")
    parser.add_argument("--pairs", type=int, default=24)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--ways", nargs="+", default=["local-1", "local-2", "ray-2"])
    args = parser.parse_args()
    best = dict.fromkeys(args.ways, (0.0, 0.0))
    with TemporaryDirectory() as name:
        folder = Path(name)
        images = rendered_sequence(args.height, args.width, 2)
        for number, image in enumerate(images):
            hamflow.write_image(folder / f"{number}.png", image)
        rows = ["0.png,1.png"] * args.pairs
        (folder / "pairs.csv").write_text("\n".join(["image0,image1", *rows]) + "\n")
        for turn in range(args.rounds):
            for way in args.ways:
                found = measure(folder, way, args.preset, folder / f"{way}-{turn}")
                best[way] = max(best[way], found)
                print(f"{way}: {found[0]:.3f} pairs/s, {found[1]:.1f} s in all", flush=True)
    first = best[args.ways[0]][0]
    print(f"{args.preset}, {args.width}×{args.height}, {args.pairs} pairs, best of {args.rounds}")
    for way, (rate, seconds) in best.items():
        print(f"{way}: {rate:.3f} pairs/s ({rate / first:.2f}×), {seconds:.1f} s in all")


if __name__ == "__main__":
    main()

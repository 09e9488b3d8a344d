"""Render pairs."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

import experiments.blender
from experiments.blender.pairs import write
from experiments.blender.places import PLACES
from experiments.blender.rendering import rendered


def main() -> None:
    """Render all pairs that are not there yet."""
    parser = argparse.ArgumentParser(
        description=experiments.blender.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("photographs", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    photographs = sorted(args.photographs.glob("*.jpg"))
    if not photographs:
        parser.error(f"{args.photographs}: no photographs (*.jpg) in this folder.")
    for number in range(args.count):
        path = args.folder / "blender" / f"{number:05d}"
        if not path.exists():
            place = PLACES[number % len(PLACES)]
            scene = place(np.random.default_rng([args.seed, number]), photographs)
            write(path, *rendered(scene))
            print(f"{number + 1} of {args.count}: {place.__name__}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()

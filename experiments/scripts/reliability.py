"""Judge whether the confidence and the occlusions are true.

    python -m experiments.scripts.reliability PHOTOGRAPHS [ROOT] [--scenes N] [--presets NAME ...]
        [--blender FOLDER] [--picture docs/pictures/reliability.png]

Renders scenes of photographs that nothing was fitted to, and reads the pairs of ROOT and those
that `python -m experiments.blender` made of such photographs, if given. Prints for each preset,
for the scenes, the pairs and all of them (but those that are taken for cuts in a video): the mean
error in ten bins of the error that the confidence promises, the AUSE by kind of scene or folder,
and the F1 score of the occlusions by pair, beside that of the plain forward-backward rule
(`hamflow.refinement.occluded`).
"""

from __future__ import annotations

import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import tyro
from numpy.typing import NDArray

import hamflow
from experiments.confidence import PRESETS, Judged, judged, rendered
from hamflow.datasets.folder import FolderDataset
from hamflow.evaluation import sparsification
from hamflow.refinement import occluded

BINS = 10


@dataclass
class Tally:
    """What was found on many pairs, for one preset."""

    expected: list[NDArray[np.float32]] = field(default_factory=list)
    error: list[NDArray[np.float32]] = field(default_factory=list)
    ause: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    f1: list[tuple[str, float, float]] = field(default_factory=list)
    counts: NDArray[np.int64] = field(default_factory=lambda: np.zeros((2, 3), np.int64))

    def add(self, name: str, one: Judged) -> None:
        """Take one pair into account; each pair counts by its pixels."""
        result = one.result
        assert result.confidence is not None
        assert result.occlusion is not None
        assert result.backward is not None
        known = np.isfinite(one.error)
        self.expected.append((1 / result.confidence - 1)[known])
        self.error.append(one.error[known])
        self.ause[one.kind].append(sparsification(one.error, result.confidence).ause)
        if one.hidden is not None:
            masks = result.occlusion, occluded(result.flow, result.backward)
            counts = [_counts(mask[known], one.hidden[known]) for mask in masks]
            self.counts += np.array(counts)
            self.f1.append((name, _f1(counts[0]), _f1(counts[1])))

    def bins(self) -> list[tuple[float, float]]:
        """Return expected and true mean error, from the most certain tenth of the pixels on."""
        expected, error = np.concatenate(self.expected), np.concatenate(self.error)
        parts = np.array_split(np.argsort(expected, kind="stable"), BINS)
        return [(float(expected[p].mean()), float(error[p].mean())) for p in parts]


def main(
    photographs: tyro.conf.Positional[Path],
    root: tyro.conf.Positional[Path | None] = None,
    *,
    scenes: int = 48,
    presets: tuple[str, ...] = PRESETS,
    blender: Path | None = None,
    picture: Path | None = None,
) -> None:
    """Estimate, tally, print, draw."""
    estimators = {preset: hamflow.Estimator(preset) for preset in presets}
    tallies: dict[tuple[str, str], Tally] = defaultdict(Tally)

    def add(data: str, name: str, kind: str, pair: Any) -> None:
        for one in judged(estimators, kind, pair):
            if one.result.cut:  # then nothing is said about errors
                print(f"{name}, {one.preset}: taken for a cut, left out", file=sys.stderr)
                continue
            for group in (data, "all of them"):
                tallies[group, one.preset].add(name, one)

    with tempfile.TemporaryDirectory() as scratch:
        for k, (kind, scene) in enumerate(rendered(photographs, Path(scratch), scenes, 92_000)):
            print(f"scene {k + 1} of {scenes}", file=sys.stderr)
            add("held-out scenes", f"{kind} {k}", kind, scene)
    for data, folder in (("scenes of Blender", blender), ("real pairs", root)):
        for kind, pair in _pairs(folder):
            print(pair.name, file=sys.stderr)
            add(data, pair.name, kind, pair)
    ordered = dict(sorted(tallies.items(), key=lambda item: item[0][0] == "all of them"))
    if blender is None and root is None:  # all of them are the scenes alone
        ordered = {key: tally for key, tally in ordered.items() if key[0] != "all of them"}
    for (data, preset), tally in ordered.items():
        _print(data, preset, tally)
    if picture is not None:
        draw(ordered, picture)


def _pairs(root: Path | None) -> Iterator[tuple[str, Any]]:
    for folder in sorted(root.iterdir()) if root is not None else ():
        if folder.is_dir():
            yield from ((folder.name, pair) for pair in FolderDataset(folder))


def _counts(found: NDArray[np.bool_], truth: NDArray[np.bool_]) -> tuple[int, int, int]:
    return int((found & truth).sum()), int(found.sum()), int(truth.sum())


def _f1(counts: Any) -> float:
    return float(2 * counts[0] / max(1, counts[1] + counts[2]))


def _print(data: str, preset: str, tally: Tally) -> None:
    print(f"\n{data}, {preset}")
    print("  expected  mean error  ratio")
    for expected, error in tally.bins():
        print(f"  {expected:8.3f}  {error:10.3f}  {error / expected:5.2f}")
    every = [value for values in tally.ause.values() for value in values]
    print(f"  AUSE {np.mean(every):.3f}; mean by group: ", end="")
    print(", ".join(f"{kind} {np.mean(values):.3f}" for kind, values in tally.ause.items()))
    if tally.f1:
        learned, rule = (_f1(counts) for counts in tally.counts)
        print(f"  F1 over all pixels {learned:.3f} (forward-backward rule {rule:.3f}); ", end="")
        means = np.mean([scores[1:] for scores in tally.f1], axis=0)
        print(f"mean over pairs {means[0]:.3f} ({means[1]:.3f})")
        if data == "real pairs":
            for name, score, before in tally.f1:
                print(f"    {name}: {score:.2f} ({before:.2f})")


def draw(tallies: dict[tuple[str, str], Tally], path: Path) -> None:
    """Draw what is said against what is true, for each preset and kind of data."""
    mpl.use("agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415  (after the choice of the backend)

    groups = list(dict.fromkeys(data for data, _ in tallies))
    columns = min(2, len(groups))
    rows = -(-len(groups) // columns)
    size = (4.4 * columns, 4.2 * rows)
    figure, axes = plt.subplots(rows, columns, figsize=size, squeeze=False)
    for axis in axes.flat[len(groups) :]:
        axis.remove()
    for axis, group in zip(axes.flat, groups, strict=False):
        line = np.array([0.01, 100.0])
        axis.fill_between(line, line / 1.5, line * 1.5, color="0.9", label="within a factor of 1.5")
        axis.plot(line, line, color="0.5", linewidth=1)
        for (data, preset), tally in tallies.items():
            if data == group:
                axis.plot(*zip(*tally.bins(), strict=True), marker="o", markersize=4, label=preset)
        axis.set(xscale="log", yscale="log", xlim=line, ylim=line, title=group)
        axis.set(xlabel="expected error, 1 / confidence − 1 (px)", ylabel="mean true error (px)")
        axis.set_aspect("equal")
        axis.legend(loc="upper left", frameon=False, fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    tyro.cli(main)

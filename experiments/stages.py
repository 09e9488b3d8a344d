"""Where the error arises: each stage of the estimator, started from the truth.

    python -m experiments.stages ROOT [PAIR ...]
    python -m experiments.stages PHOTOGRAPHS --rendered 60

prints, for pairs of a folder as `FolderDataset` reads it, or for scenes in space as
`experiments.scripts.rendered` makes them of photographs, the mean endpoint error over all valid
pixels of

- now: the preset as it is;
- matches: only right matches are trusted (those within `RIGHT` pixels of the matching scale);
- visible: the true flow, rounded to whole pixels, as the match of every visible pixel;
- completed: the true flow at the matching scale everywhere, then the refinement;
- upsampled: the true flow at the matching scale, upsampled, without a refinement;
- truth: the refinement, started from the true flow at full size with the true visibility.

The difference between neighboring columns is what a stage costs.
"""

from __future__ import annotations

from collections.abc import Iterator
from json import dumps
from pathlib import Path
from typing import Any

import numpy as np
import tyro

from experiments.scripts.rendered import CONFIG
from hamflow import Estimator
from hamflow._scale import upsample_linear
from hamflow._types import Flow, Mask
from hamflow.datasets.folder import FolderDataset
from hamflow.datasets.synthetic import SyntheticDataset
from hamflow.flow import endpoint_error
from hamflow.refinement import AffineCompletion, complete
from hamflow.stages import MatchEvidence

RIGHT = 1.5
COLUMNS = ("now", "matches", "visible", "completed", "upsampled", "truth")


def stage_errors(estimator: Estimator, pair: Any) -> dict[str, float]:
    """Return the mean endpoint error of each column for one pair.

    Parameters
    ----------
    estimator : Estimator
        Whose stages to measure.
    pair : FlowPair or SyntheticScene
        With `image0`, `image1`, `flow` and `occluded`; None counts as all visible.
    """
    frames = estimator.frame(pair.image0), estimator.frame(pair.image1)
    result, matches = estimator.between(*frames)
    scale, found = matches.scale, matches.directions[0]
    image = frames[0].at(scale)
    full = _everywhere(frames[0].at(1), pair.flow)
    unknown = pair.occluded is None
    visible_full = np.ones(frames[0].shape, np.bool_) if unknown else ~pair.occluded
    small, known = reduced(pair.flow, scale)
    truth = np.where(known[..., None], small, reduced(full, scale)[0])
    visible = reduced(visible_full.astype(np.float32)[..., None], scale)[0][..., 0] > 0.5
    right = found.trusted & (np.nan_to_num(endpoint_error(found.flow, truth), nan=99.0) <= RIGHT)
    fill, refine = estimator.config.completion, estimator.config.refinement

    bits = frames[0].bits(scale), frames[1].bits(scale)
    both = matches.directions
    back = (both[1].flow, both[1].trusted) if len(both) == 2 else None

    def refined(flow: Flow, trusted: Mask, back: tuple[Flow, Mask] | None) -> Flow:
        known = MatchEvidence(image, bits, flow, trusted, back)
        return refine(frames, fill(known)[0], trusted, scale)

    flows = {
        "now": result.flow,
        "matches": refined(found.flow, right, back),
        "visible": refined(np.rint(truth), visible, way_back(truth, visible)),
        "completed": refine(frames, truth, visible, scale),
        "upsampled": upsample_linear(truth, scale, frames[0].shape) * np.float32(scale),
        "truth": refine(frames, full, visible_full, 1),
    }
    return {name: float(np.nanmean(endpoint_error(flows[name], pair.flow))) for name in COLUMNS}


def way_back(flow: Flow, visible: Mask) -> tuple[Flow, Mask]:
    """Return the flow of the other direction in whole pixels, and where a pixel is seen."""
    height, width = visible.shape
    y, x = np.nonzero(visible)
    step = np.rint(flow[y, x]).astype(np.intp)
    to_x, to_y = x + step[:, 0], y + step[:, 1]
    inside = (to_x >= 0) & (to_x < width) & (to_y >= 0) & (to_y < height)
    back, seen = np.zeros_like(flow), np.zeros_like(visible)
    back[to_y[inside], to_x[inside]] = -step[inside]
    seen[to_y[inside], to_x[inside]] = True
    return back, seen


def reduced(field: Flow, scale: int) -> tuple[Flow, Mask]:
    """Return the means of the known pixels of boxes, a flow in pixels of the scale, and where."""
    height, width = field.shape[:2]
    padded = np.pad(field, ((0, -height % scale), (0, -width % scale), (0, 0)), mode="edge")
    boxes = padded.reshape(padded.shape[0] // scale, scale, padded.shape[1] // scale, scale, -1)
    known = np.isfinite(boxes).all(axis=4, keepdims=True)
    count = known.sum(axis=(1, 3))
    mean = np.where(known, boxes, 0).sum(axis=(1, 3)) / np.maximum(count, 1)
    if field.shape[2] == 2:
        mean /= scale
    return mean.astype(np.float32), count[..., 0] > 0


def _everywhere(image: Any, flow: Flow) -> Flow:
    """Return a flow that is known everywhere: sparse truth (KITTI) is completed from around."""
    known = np.isfinite(flow).all(axis=2)
    if known.all():
        return flow
    filled = complete(image, flow, known, AffineCompletion(cell=1, smallest=0))[0]
    return np.where(known[..., None], flow, filled)


def measure(
    estimator: Estimator, data: FolderDataset | SyntheticDataset
) -> Iterator[tuple[str, dict[str, float]]]:
    """Yield the name of each pair, or the number of each scene, with its errors."""
    for number, pair in enumerate(data):
        yield getattr(pair, "name", f"scene {number}"), stage_errors(estimator, pair)


def _row(name: str, errors: dict[str, float]) -> str:
    return f"| {name} | " + " | ".join(f"{errors[c]:.2f}" for c in COLUMNS) + " |"


def main(
    root: tyro.conf.Positional[Path],
    pairs: tyro.conf.Positional[tuple[str, ...]] = (),
    *,
    preset: str = "balanced",
    rendered: int | None = None,
    json: Path | None = None,
) -> None:
    """Measure, print a table, write a file if it is named."""
    data: FolderDataset | SyntheticDataset
    if rendered is not None:
        data = SyntheticDataset(CONFIG, root, size=rendered)
    else:
        data = FolderDataset(root)
        if pairs:
            data = data.subset(pairs)
    print("| pair | " + " | ".join(COLUMNS) + " |\n|" + "---|" * (1 + len(COLUMNS)))
    rows = {}
    for name, errors in measure(Estimator(preset), data):
        rows[name] = errors
        print(_row(name, errors), flush=True)
    print(_row("mean", {c: float(np.mean([row[c] for row in rows.values()])) for c in COLUMNS}))
    if json is not None:
        json.write_text(dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)

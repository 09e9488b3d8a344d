"""How much a band of labels could save: a window of its own for each block of the image.

    python -m experiments.scripts.band PHOTOGRAPHS [--count 5] [--preset balanced]

renders pairs with motion up to 40 and up to 100 pixels. For blocks of several sizes and several
margins, it prints what remains of the labels at the matching scale: of pairs of labels (du · dv,
the work of a message) and of labels (du + dv, the work of a chain pass); which share of the whole
time that could save at most; and for how many pixels the true flow would be outside of the band,
though inside of the window of the whole image.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import numpy as np
import tyro
from numpy.typing import NDArray

from experiments.bench.profile import profile
from hamflow import Estimator, Window
from hamflow._scale import upsample_nearest
from hamflow._types import Flow
from hamflow.datasets.synthetic import (
    SyntheticConfig,
    SyntheticScene,
    load_textures,
    render_sequence,
)
from hamflow.pipeline.clock import Clock
from hamflow.pipeline.matches import Matches, match_evidence
from hamflow.pipeline.scales import SearchPlan, SearchStep
from hamflow.pipeline.search import search
from hamflow.refinement import check

BLOCKS, MARGINS = (32, 64, 128), (4, 8)
PAIRS_OF_LABELS = ("message16",)
LABELS = ("chain_pass", "relabel", "clear", "best_labels", "add_scaled", "expected_costs", "turn")


def coarse_search(estimator: Estimator, scene: SyntheticScene) -> tuple[Matches, SearchStep | None]:
    """Return what the coarse scale finds, and the step that would follow."""
    frames = estimator.frame(scene.image0), estimator.frame(scene.image1)
    plan = SearchPlan(frames[0].shape, estimator.config)
    step = plan.next_step(None)
    assert step is not None
    found = search(frames, step, estimator.config.matcher, Clock())
    trusted = check([match.flow for match in found])
    sure = [mask & (match.decided > 0) for mask, match in zip(trusted, found, strict=True)]
    known = match_evidence(frames, found, sure, step.scale)
    completed = [estimator.config.completion(direction) for direction in known]
    matches = Matches.of(found, trusted, completed, step.scale, 0.0)
    return matches, plan.next_step(matches)


def band(low: Flow, high: Flow, block: int, margin: int, window: Window) -> NDArray[np.float64]:
    """Return the window of each block as (rows, columns, 4): first and last u, first and last v.

    It holds the flows in the block and around it, with a margin, as far as they are in the window
    of the image.
    """
    around = min(16, block // 2)
    rows, columns = (range(0, side, block) for side in low.shape[:2])
    ends = np.empty((len(rows), len(columns), 4))
    first = np.array([window.u0, window.v0])
    last = np.array([window.u0 + window.du, window.v0 + window.dv]) - 1
    for j, y in enumerate(rows):
        for i, x in enumerate(columns):
            part = tuple(slice(max(0, k - around), k + block + around) for k in (y, x))
            begin = np.maximum(np.floor(low[part].min(axis=(0, 1))) - margin, first)
            end = np.minimum(np.ceil(high[part].max(axis=(0, 1))) + margin, last)
            ends[j, i, 0::2], ends[j, i, 1::2] = begin, np.maximum(begin, end)
    return ends


def measured(
    estimator: Estimator, scene: SyntheticScene
) -> dict[tuple[int, int], tuple[float, float, float, float]]:
    """Return du · dv, du + dv, the time saved and the pixels lost, by block and margin."""
    coarse, step = coarse_search(estimator, scene)
    if step is None:
        return {}
    functions, whole = profile(estimator, scene.image0, scene.image1)
    spent = [
        sum(functions["matching"].get(name, 0.0) for name in names) / whole
        for names in (PAIRS_OF_LABELS, LABELS)
    ]
    window, forward = step.windows[0], coarse.directions[0]
    times = coarse.scale // step.scale
    truth = scene.flow[:: step.scale, :: step.scale] / step.scale
    shape = truth.shape[:2]
    completed = upsample_nearest(forward.completed, times, shape) * times
    matched = upsample_nearest(forward.flow, times, shape) * times
    matched = np.where(
        upsample_nearest(forward.trusted, times, shape)[..., None], matched, completed
    )
    low, high = np.minimum(completed, matched), np.maximum(completed, matched)
    whole_window = [window.u0, window.u0 + window.du - 1, window.v0, window.v0 + window.dv - 1]
    result = {}
    for block in BLOCKS:
        for margin in MARGINS:
            ends = upsample_nearest(band(low, high, block, margin, window), block, shape)
            du, dv = ends[..., 1] - ends[..., 0] + 1, ends[..., 3] - ends[..., 2] + 1
            pairs = float((du * dv).mean() / (window.du * window.dv))
            labels = float((du + dv).mean() / (window.du + window.dv))
            lost = _within(truth, np.broadcast_to(whole_window, ends.shape)) & ~_within(truth, ends)
            saved = (1 - pairs) * spent[0] + (1 - labels) * spent[1]
            result[block, margin] = pairs, labels, saved, float(lost.mean())
    return result


def _within(flow: Flow, ends: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return where a flow, rounded, is in the windows."""
    whole = np.rint(flow)
    inside: NDArray[np.bool_] = (whole >= ends[..., 0::2]).all(axis=2) & (
        whole <= ends[..., 1::2]
    ).all(axis=2)
    return inside


def main(
    photographs: tyro.conf.Positional[Path], *, count: int = 5, preset: str = "balanced"
) -> None:
    """Measure and print."""
    textures = load_textures(photographs)
    estimator = Estimator(preset)
    rows = defaultdict(list)
    for most in (40, 100):
        config = SyntheticConfig(
            height=436, width=1024, max_displacement=most, perspective_share=0.5
        )
        for seed in range(count):
            scene = render_sequence(config, seed, textures, 2)[0]
            for key, row in measured(estimator, scene).items():
                rows[key].append(row)
    for (block, margin), found in rows.items():
        pairs, labels, saved, lost = np.mean(found, axis=0)
        print(
            f"blocks of {block}, margin {margin}: du · dv {pairs:.2f}, du + dv {labels:.2f}, "
            f"at most {saved:.1%} of the time, {lost:.2%} of the pixels lost",
            flush=True,
        )


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)

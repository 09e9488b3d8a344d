"""Fit the network of hamflow.refinement.labeling to rendered scenes.

    python -m experiments.scripts.candidates PHOTOGRAPHS OUT.npy [SCENES]

Renders scenes, matches them, gathers the candidates of pixels without a trusted match, and teaches
the network to prefer those with a small error. Each scene is used as it was matched, with holes
in what is trusted, and with all visible pixels trusted. Writes the numbers of
``hamflow/refinement/networks/candidates.npy``: the bounds of each feature, which are its 1 % and
99 % quantiles, all lower ones first, then bias and weights, input by input, of two layers, then
weights. Prints the mean error of the affine flow, of the network's choice and of the best
candidate, on every sixth scene, which is held out.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
import tyro
from numpy.typing import NDArray

import hamflow
from experiments.stages import reduced, way_back
from hamflow.config import preset_config
from hamflow.datasets.synthetic import SyntheticConfig, SyntheticDataset
from hamflow.io._atomic import atomic_write
from hamflow.pipeline.frame import Frame
from hamflow.pipeline.matches import Matches
from hamflow.refinement import Upsampling
from hamflow.refinement._edges import gaussian_weights, smooth
from hamflow.refinement.completion import interpolated
from hamflow.refinement.labeling import (
    FEATURES,
    LabelingCompletion,
    gather_candidates,
    score_candidates,
)
from hamflow.stages import MatchEvidence

HIDDEN = 16
MOST = 40.0  # errors above, in pixels, are all alike
SOFT = 2.0  # errors that differ by this many pixels differ by a factor of e in the target
STEPS, BATCH, RATE = 3000, 2048, 5e-3
Rows = tuple[NDArray[np.float32], NDArray[np.float32]]  # features and errors, padded by NaN


def main(
    photographs: tyro.conf.Positional[Path],
    out: tyro.conf.Positional[Path],
    count: tyro.conf.Positional[int] = 146,
) -> None:
    """Render, match, gather, fit, write."""
    config = SyntheticConfig(height=384, width=512, max_displacement=100, perspective_share=0.7)
    wild = replace(
        config, max_displacement=150, min_displacement=10.0, camera_share=0.4, motion_blur=0.3
    )
    data = [SyntheticDataset(c, photographs, seed=s) for c, s in ((config, 4242), (wild, 4343))]
    # The completion has no part in the matches, the refinement none in what is learned here.
    estimator = hamflow.Estimator(replace(preset_config("balanced"), refinement=Upsampling()))
    rng = np.random.default_rng(1)
    kept: list[Rows] = []
    held: list[Rows] = []
    for k in range(count):
        rows = list(_rows(estimator, data[k % 2][k], rng))
        (held if k % 6 == 0 else kept).extend(rows)
        print(f"{k + 1} of {count}", file=sys.stderr)
    with atomic_write(out) as file:
        np.save(file, fitted(_joined(kept), _joined(held)))


def _rows(estimator: hamflow.Estimator, scene: object, rng: np.random.Generator) -> Iterator[Rows]:
    frames = estimator.frame(scene.image0), estimator.frame(scene.image1)
    _, matches = estimator.between(*frames)
    truth = reduced(scene.flow, matches.scale)[0]
    hidden = reduced(scene.occluded.astype(np.float32)[..., None], matches.scale)[0][..., 0] > 0.5
    for known, share in _settings(frames, matches, truth, ~hidden, rng):
        row = _of_setting(known, truth, share, matches.scale, rng)
        if row is not None:
            yield row


def _settings(
    frames: tuple[Frame, Frame],
    matches: Matches,
    truth: NDArray[np.float32],
    visible: NDArray[np.bool_],
    rng: np.random.Generator,
) -> Iterator[tuple[MatchEvidence, float]]:
    """Yield what a completion might know of the scene, and the share of the pixels to use."""
    scale = matches.scale
    image, bits = frames[0].at(scale), (frames[0].bits(scale), frames[1].bits(scale))
    (flow, trusted), back = ((d.flow, d.trusted) for d in matches.directions)
    yield MatchEvidence(image, bits, flow, trusted, back), 0.12
    if trusted.mean() > 0.5:
        holed = back[0], back[1] & _holes(trusted.shape, rng)
        yield MatchEvidence(image, bits, flow, trusted & _holes(trusted.shape, rng), holed), 0.05
    yield MatchEvidence(image, bits, np.rint(truth), visible, way_back(truth, visible)), 0.05


def _holes(shape: tuple[int, int], rng: np.random.Generator) -> NDArray[np.bool_]:
    noise = rng.normal(size=(*shape, 1)).astype(np.float32)
    wavy = smooth(noise, gaussian_weights(float(rng.uniform(6, 20))))[..., 0]
    return np.asarray(wavy > np.quantile(wavy, rng.uniform(0.15, 0.6)))


def _of_setting(
    known: MatchEvidence,
    truth: NDArray[np.float32],
    share: float,
    scale: int,
    rng: np.random.Generator,
) -> Rows | None:
    config = LabelingCompletion()
    filled = interpolated(known.image, known.flow, known.trusted, config)
    pixel = np.flatnonzero(~filled.kept).astype(np.int32)
    candidates = gather_candidates(filled, config)
    labels = len(candidates.motion)
    if len(pixel) < 300 or labels < 2:
        return None
    pixel = rng.choice(pixel, min(3000, int(len(pixel) * share) + 50), replace=False)
    features = np.empty((labels, FEATURES, len(pixel)), np.float32)
    score_candidates(known, filled, candidates, pixel, features=features)
    error = np.linalg.norm(candidates.motion - truth, axis=3).reshape(labels, -1)[:, pixel].T
    missing = config.planes + 1 - labels
    padded = np.pad(error * scale, ((0, 0), (0, missing)), constant_values=np.nan)
    features = np.pad(features, ((0, missing), (0, 0), (0, 0))).transpose(2, 0, 1)
    return features, padded.astype(np.float32)


def _joined(rows: list[Rows]) -> tuple[torch.Tensor, torch.Tensor]:
    features, errors = zip(*rows, strict=True)
    return torch.from_numpy(np.concatenate(features)), torch.from_numpy(np.concatenate(errors))


def fitted(
    kept: tuple[torch.Tensor, torch.Tensor], held: tuple[torch.Tensor, torch.Tensor], seed: int = 0
) -> NDArray[np.float32]:
    """Return the weights of a network, as the kernel takes them, and print how good it is."""
    torch.manual_seed(seed)
    features, errors = kept
    known = features[~torch.isnan(errors)]
    some = known[:: max(1, len(known) // 200_000)]
    low, high = torch.quantile(some, 0.01, dim=0), torch.quantile(some, 0.99, dim=0)
    bounded = some.clamp(low, high)
    mean, spread = bounded.mean(0), bounded.std(0) + 1e-3
    net = torch.nn.Sequential(
        torch.nn.Linear(FEATURES, HIDDEN),
        torch.nn.ReLU(),
        torch.nn.Linear(HIDDEN, HIDDEN),
        torch.nn.ReLU(),
        torch.nn.Linear(HIDDEN, 1, bias=False),
    )
    optimizer = torch.optim.AdamW(net.parameters(), RATE, weight_decay=1e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, STEPS)

    def scores(part: torch.Tensor, errors: torch.Tensor) -> torch.Tensor:
        values = net((part.clamp(low, high) - mean) / spread)[..., 0]
        return values.masked_fill(torch.isnan(errors), 1e9)

    for _ in range(STEPS):
        batch = torch.randint(len(features), (BATCH,))
        error = errors[batch].clamp(max=MOST)
        wanted = torch.softmax((-error / SOFT).nan_to_num(nan=-1e9), 1)
        guess = torch.log_softmax(-scores(features[batch], error), 1)
        loss = -(wanted * guess).sum(1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    with torch.no_grad():
        chosen = scores(*held).argmin(1, keepdim=True)
    error = held[1].clamp(max=MOST)
    best = error.nan_to_num(nan=MOST).min(1).values.mean()
    print(
        f"affine {error[:, 0].mean():.3f}, chosen {error.gather(1, chosen).mean():.3f}, "
        f"best {best:.3f}"
    )
    return _flat(net, low, high, mean, spread)


def _flat(
    net: torch.nn.Sequential,
    low: torch.Tensor,
    high: torch.Tensor,
    mean: torch.Tensor,
    spread: torch.Tensor,
) -> NDArray[np.float32]:
    """Put the normalization of the features into the first layer."""
    with torch.no_grad():
        first = net[0].weight / spread
        bias = net[0].bias - first @ mean
        parts = [low, high, bias, first.T, net[2].bias, net[2].weight.T, net[4].weight]
        return torch.cat([part.reshape(-1) for part in parts]).numpy()


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)

"""Fit the networks of hamflow.refinement.confidence to rendered scenes.

    python -m experiments.scripts.confidence PHOTOGRAPHS OUT.npy [SCENES] [--presets fast realtime]
        [--pairs ROOT]

Renders scenes, estimates each (and the pairs of a folder) with the presets, and fits two networks
to the evidence: one to the mean error, one to the occlusions. Writes the numbers of
``hamflow/refinement/networks/confidence.npy``: the bounds of the evidence, all lower ones first;
then, for each network, the biases of its units, the weights input by input, the weights behind the
units, and a constant; last the logarithm of the largest error. Prints how good they are on every
sixth scene, which is held out: AUSE, the F1 score of the occlusions, and the mean error in ten
bins. ``python -m experiments.scripts.reliability`` judges the result.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from itertools import chain
from pathlib import Path

import numpy as np
import torch
import tyro
from numpy.typing import NDArray

import hamflow
from experiments.confidence import KINDS, PRESETS, Judged, judged, rendered
from hamflow.datasets.folder import FolderDataset
from hamflow.evaluation import sparsification
from hamflow.io._atomic import atomic_write
from hamflow.refinement.evidence import NAMES

UNITS = 16
PIXELS = 3000  # of each estimate
FEWER = {"blank": 0.2, "large blank": 0.1, "nothing": 0.3}  # of scenes that are rarer in life
MOST, LEAST = 150.0, 0.003  # errors beyond, in pixels, are all alike
_TURN = len(KINDS) + 1  # scenes until a kind comes again
LEAST_HIDDEN = 0.01  # of the pixels of a scene by which the threshold is chosen
STEPS, BATCH, RATE = 5000, 2048, 1e-2
# What speaks for an error: nothing else may make a larger one be expected; -1 against one.
SIGNS = {
    **dict.fromkeys(("disagreement", "outside", "length", "color", "gradient", "variation"), 1),
    **dict.fromkeys(("bits", "disagreement around", "variation around"), 1),
    **dict.fromkeys(("texture", "texture there", "texture around"), -1),
    **dict.fromkeys(("trusted", "trusted around"), -1),
    **dict.fromkeys(("decided", "trusted there"), -1),
}
Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
Rows = dict[str, NDArray[np.float32]]


class Network(torch.nn.Module):
    """One layer of units that grow with their input; half of them bend up, half of them down.

    If the weights behind them are positive, too, the sum is monotone in all inputs with a sign.
    """

    def __init__(self, signs: torch.Tensor | None) -> None:
        super().__init__()
        self.signs = signs
        self.first = torch.nn.Parameter(torch.randn(len(NAMES), UNITS) * 0.3)
        self.bias = torch.nn.Parameter(torch.randn(UNITS) * 0.5)
        self.last = torch.nn.Parameter(
            0.2 + torch.randn(UNITS) * (0.02 if signs is not None else 0.3)
        )
        self.constant = torch.nn.Parameter(torch.zeros(1))

    def weights(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the weights before and behind the units, with their signs."""
        if self.signs is None:
            return self.first, self.last
        signs = self.signs[:, None]
        return torch.where(signs == 0, self.first, self.first.abs() * signs), self.last.abs()

    def forward(self, known: torch.Tensor) -> torch.Tensor:
        """Return the sum of the units for each row."""
        first, last = self.weights()
        z = known @ first + self.bias
        up, down = z[:, : UNITS // 2].clamp(min=0), z[:, UNITS // 2 :].clamp(max=0)
        return torch.cat([up, down], 1) @ last + self.constant


def mean_error_loss(value: torch.Tensor, error: torch.Tensor) -> torch.Tensor:
    """Return the gamma deviance of exp(value): its minimum is the mean, on every scale alike."""
    return (value + error * torch.exp(-value)).mean()


def main(
    photographs: tyro.conf.Positional[Path],
    out: tyro.conf.Positional[Path],
    count: tyro.conf.Positional[int] = 253,
    *,
    presets: tuple[str, ...] = PRESETS,
    pairs: Path | None = None,
) -> None:
    """Render, estimate, fit, write, report."""
    estimators = {preset: hamflow.Estimator(preset) for preset in presets}
    rng = np.random.default_rng(0)
    rows: list[tuple[int, Rows]] = []
    more = () if pairs is None else FolderDataset(pairs)
    with tempfile.TemporaryDirectory() as scratch:
        scenes = rendered(photographs, Path(scratch), count, 91_000)
        for k, (kind, scene) in enumerate(chain(scenes, (("pair", pair) for pair in more))):
            rows.extend((k, _sampled(one, rng)) for one in judged(estimators, kind, scene))
            print(f"{k + 1} of {count + len(more)}", file=sys.stderr)
    write_fitted(rows, out)


def write_fitted(rows: list[tuple[int, Rows]], out: Path) -> None:
    """Fit to rows, which come with the numbers of their scenes."""
    kept = [row for k, row in rows if k // _TURN % 6]
    held = [row for k, row in rows if not k // _TURN % 6]
    torch.manual_seed(0)
    torch.set_num_threads(1)
    known, error, hidden = (
        torch.from_numpy(np.concatenate([row[name] for row in kept]))
        for name in ("evidence", "error", "hidden")
    )
    low, high = bounds(known)
    signs = torch.tensor([SIGNS.get(name, 0) for name in NAMES], dtype=torch.float32)
    bounded = known.clamp(low, high)
    networks = [
        fitted(bounded, error.clamp(LEAST, MOST), mean_error_loss, signs),
        fitted(bounded, hidden, torch.nn.functional.binary_cross_entropy_with_logits, None),
    ]
    flat = [flattened(network, bounded) for network in networks]
    said = [applied(row["evidence"], low.numpy(), high.numpy(), flat[0]) for row in held]
    cap = largest(np.concatenate(said), np.concatenate([row["error"] for row in held]))
    report(held, low.numpy(), high.numpy(), flat, cap)
    flat[1][-1] -= best_threshold([row for _, row in rows], low.numpy(), high.numpy(), flat[1])
    weights = np.concatenate([low.numpy(), high.numpy(), *flat, [cap]])
    with atomic_write(out) as file:
        np.save(file, weights.astype(np.float32))


def _sampled(one: Judged, rng: np.random.Generator) -> Rows:
    height, width = one.error.shape
    count = int(PIXELS * FEWER.get(one.kind, 1))
    pixel = rng.choice(height * width, count, replace=False)
    y, x = pixel // width, pixel % width
    assert one.hidden is not None
    return {
        "evidence": one.evidence[y // one.unit, x // one.unit],
        "error": one.error[y, x],
        "hidden": one.hidden[y, x].astype(np.float32),
    }


def bounds(known: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return what evidence is cut to: its half percent quantiles, or its extremes if it is rare."""
    some = known[:: max(1, len(known) // 100_000)]
    low, high = torch.quantile(some, 0.005, dim=0), torch.quantile(some, 0.995, dim=0)
    rare = high <= low
    return torch.where(rare, some.min(0).values, low), torch.where(rare, some.max(0).values, high)


def fitted(
    bounded: torch.Tensor, target: torch.Tensor, loss: Loss, signs: torch.Tensor | None
) -> Network:
    """Return a network of the normalized evidence."""
    mean, spread = normalization(bounded)
    inputs = (bounded - mean) / spread
    network = Network(signs)
    optimizer = torch.optim.AdamW(network.parameters(), RATE, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, STEPS)
    for _ in range(STEPS):
        batch = torch.randint(len(inputs), (BATCH,))
        value = loss(network(inputs[batch]), target[batch])
        optimizer.zero_grad()
        value.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    return network


def normalization(bounded: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return mean and standard deviation of each kind of evidence."""
    return bounded.mean(0), bounded.std(0) + 1e-3


def flattened(network: Network, bounded: torch.Tensor) -> NDArray[np.float32]:
    """Return the weights as the kernel takes them: the normalization is part of the first layer."""
    mean, spread = normalization(bounded)
    with torch.no_grad():
        first, last = network.weights()
        first = first / spread[:, None]
        bias = network.bias - mean @ first
        parts = [bias, first, last, network.constant]
        return torch.cat([part.reshape(-1) for part in parts]).numpy()


def applied(
    known: NDArray[np.float32],
    low: NDArray[np.float32],
    high: NDArray[np.float32],
    flat: NDArray[np.float32],
) -> NDArray[np.float32]:
    """Return what a network says, from its flat weights."""
    bias, rest = flat[:UNITS], flat[UNITS:]
    first, last = rest[: UNITS * len(NAMES)].reshape(-1, UNITS), rest[UNITS * len(NAMES) : -1]
    z = np.clip(known, low, high) @ first + bias
    half = UNITS // 2
    z = np.concatenate([np.maximum(z[:, :half], 0), np.minimum(z[:, half:], 0)], axis=1)
    return np.asarray(z @ last + flat[-1], np.float32)


def largest(value: NDArray[np.float32], error: NDArray[np.float32]) -> float:
    """Return the logarithm of the largest error to be expected.

    Where the network says more than e, the mean error is e: beyond, there is too little to learn
    from, and it says too much.
    """
    order = np.argsort(-value)
    means = np.cumsum(error[order], dtype=np.float64) / np.arange(1, len(order) + 1)
    # Of the values so far, the last and smallest one is compared with their mean.
    least = len(order) // 1000
    found = least + int(np.argmax(np.exp(value[order[least:]]) <= means[least:]))
    return float(value[order[found]])


def report(
    held: list[Rows],
    low: NDArray[np.float32],
    high: NDArray[np.float32],
    flat: list[NDArray[np.float32]],
    cap: float,
) -> None:
    """Print how good the networks are."""
    values = [np.minimum(applied(row["evidence"], low, high, flat[0]), cap) for row in held]
    ause = np.mean([sparsification(r["error"], -v).ause for r, v in zip(held, values, strict=True)])
    expected = np.exp(np.concatenate(values))
    error = np.concatenate([row["error"] for row in held])
    bins = np.array_split(np.argsort(expected), 10)
    shown = ", ".join(f"{expected[b].mean():.2f}: {error[b].mean():.2f}" for b in bins)
    print(f"AUSE {ause:.3f}, at most {np.exp(cap):.1f} px; expected and mean error {shown}")


def best_threshold(
    rows: list[Rows],
    low: NDArray[np.float32],
    high: NDArray[np.float32],
    flat: NDArray[np.float32],
) -> float:
    """Return the threshold of the occlusions with the best F1, as a mean over scenes with some."""
    some = [row for row in rows if row["hidden"].mean() > LEAST_HIDDEN]
    logits = [applied(row["evidence"], low, high, flat) for row in some]
    scores = {
        t: np.mean([f1(z > t, row["hidden"] > 0) for z, row in zip(logits, some, strict=True)])
        for t in np.arange(-3, 3, 0.1)
    }
    best = max(scores, key=lambda t: float(scores[t]))
    print(f"F1 {scores[best]:.3f} at a threshold of {best:.1f}")
    return float(best)


def f1(found: NDArray[np.bool_], truth: NDArray[np.bool_]) -> float:
    """Return the F1 score of a mask."""
    return 2 * float((found & truth).sum()) / max(1.0, float(found.sum() + truth.sum()))


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)

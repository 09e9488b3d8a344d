"""Fit the weights of hamflow.refinement.confidence to rendered scenes.

    python -m experiments.scripts.confidence PHOTOGRAPHS [SCENES]

Fits the logarithm of the error by linear regression, and prints the weights and the AUSE on
held-out scenes: with all quantities, and with each of them alone.
"""

from __future__ import annotations

import sys

import numpy as np

import hamflow
from hamflow.datasets.synthetic import SyntheticConfig, SyntheticDataset
from hamflow.evaluation import sparsification
from hamflow.refinement.confidence import NAMES, evidence, logarithms

FLOOR = 0.1


def main() -> None:
    """Render, estimate, fit, report."""
    root, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 24
    config = SyntheticConfig(height=288, width=384, max_displacement=100.0)
    scenes = SyntheticDataset(config, root, seed=77_000)
    estimator = hamflow.Estimator("balanced", scale=2)
    rows = []
    for k in range(count):
        rows.append(_quantities(estimator, scenes[k]))
        print(f"{k + 1} of {count}", file=sys.stderr)
    fitted, held = rows[: 2 * count // 3], rows[2 * count // 3 :]
    for names in (NAMES, *((name,) for name in NAMES)):
        weights = _fit(fitted, names)
        ause = np.mean([_ause(row, names, weights) for row in held])
        shown = ", ".join(
            f"{n} {w:.3f}" for n, w in zip(("constant", *names), weights, strict=True)
        )
        print(f"{shown}: AUSE {ause:.3f}")


def _quantities(estimator: hamflow.Estimator, scene: object) -> dict[str, np.ndarray]:
    frames = estimator.frame(scene.image0), estimator.frame(scene.image1)
    result, matches = estimator.between(*frames)
    flows = [result.flow, result.backward]
    distance = matches.directions[0].distance
    logs = logarithms(*evidence(frames, flows, distance, matches.scale))
    error = hamflow.endpoint_error(result.flow, scene.flow)
    return {**logs, "error": error}


def _fit(rows: list[dict[str, np.ndarray]], names: tuple[str, ...]) -> np.ndarray:
    error = np.concatenate([row["error"].ravel() for row in rows])
    columns = [np.concatenate([row[name].ravel() for row in rows]) for name in names]
    known = np.isfinite(error)
    design = np.stack([np.ones(known.sum()), *(c[known] for c in columns)], axis=1)
    return np.linalg.lstsq(design, np.log(error[known] + FLOOR), rcond=None)[0]


def _ause(row: dict[str, np.ndarray], names: tuple[str, ...], weights: np.ndarray) -> float:
    expected = sum(w * row[n] for n, w in zip(names, weights[1:], strict=True))
    return sparsification(row["error"], -expected).ause


if __name__ == "__main__":
    main()

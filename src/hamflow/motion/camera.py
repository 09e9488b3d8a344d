"""The motion of the camera between two frames, fitted robustly to their flow."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hamflow.motion._sampling import Points, expected_error
from hamflow.result import FlowResult

Matrix = NDArray[np.float64]
_Floats = NDArray[np.float64]

_SAMPLES = 3000  # pixels that a motion is fitted to
_DRAWS = {4: 500, 8: 1000}  # random subsets of so many samples
_BEST = 5  # subsets whose motion is fitted to all samples
_ROUNDS = 10
_OUTLIER = 3.0  # errors beyond this many standard deviations all count alike
_PRECISION = 0.3  # pixels: standard deviation of a flow that is sure of itself
_DOUBTFUL = 4.0  # pixels: what is expected to be wrong by more is left out


class Samples(NamedTuple):
    """Some pixels of a frame, where they are in the other, and how precisely that is known."""

    here: Points  # (N, 2)
    there: Points
    sigma: _Floats  # pixels


class Camera(NamedTuple):
    """What the camera does to a picture between two frames.

    Attributes
    ----------
    kind : str
        ``"homography"``: the scene is a plane, or far away, or the camera only turns. Or
        ``"fundamental"``: the camera moves through a scene with depth, so that the places of pixels
        are known up to a line.
    matrix : (3, 3) array
        The homography H with x' ~ H x, or the fundamental matrix F with x'ᵀ F x = 0, for
        homogeneous pixels x of the first frame and x' of the second.
    """

    kind: str
    matrix: Matrix

    @property
    def reversed(self) -> Camera:
        """The motion from the second frame back to the first."""
        if self.kind == "homography":
            return Camera(self.kind, np.asarray(np.linalg.inv(self.matrix)))
        return Camera(self.kind, self.matrix.T)

    def deviation(self, here: Points, there: Points) -> _Floats:
        """Return how many pixels some motions, (..., 2), are off that of the camera."""
        measure = transfer_error if self.kind == "homography" else sampson_error
        return measure(self.matrix, here, there)


def samples_of(result: FlowResult) -> Samples:
    """Take pixels on a grid, without those that are occluded or of which little is known."""
    flow, error = result.flow, expected_error(result.confidence)
    height, width = flow.shape[:2]
    step = max(1, int(np.sqrt(height * width / _SAMPLES)))
    rows, columns = np.arange(step // 2, height, step), np.arange(step // 2, width, step)
    part = np.ix_(rows, columns)
    here = np.stack(np.meshgrid(columns, rows), axis=-1).reshape(-1, 2).astype(np.float64)
    off = np.zeros(len(here)) if error is None else error[part].ravel().astype(np.float64)
    chosen = off < _DOUBTFUL
    if result.occlusion is not None:
        chosen &= ~result.occlusion[part].ravel()
    if chosen.sum() < 16:  # nothing is sure, so there is nothing better
        chosen[:] = True
    there = here + flow[part].reshape(-1, 2)
    return Samples(here[chosen], there[chosen], np.hypot(_PRECISION, off[chosen]))


def fit_camera(samples: Samples) -> Camera:
    """Return a homography, or a fundamental matrix if that explains the flow better.

    The criterion is Torr's GRIC: how far the samples are off, plus what the freedom of the model
    costs. But a homography that half of the samples agree with is taken in any case: a fundamental
    matrix also explains many a scene with a plane and one thing that moves before it.

    References
    ----------
    P. H. S. Torr: Geometric motion segmentation and model selection. Philosophical Transactions of
    the Royal Society A 356, 1998.
    """
    plane = fit_homography(samples)
    off = transfer_error(plane, samples.here, samples.there) / samples.sigma
    if len(samples.here) < 16 or (off < _OUTLIER).mean() >= 0.5:
        return Camera("homography", plane)
    space = fit_fundamental(samples)
    # A homography leaves a pixel no freedom, a fundamental matrix a line.
    costs = [
        _gric(off, 2, 8),
        _gric(sampson_error(space, samples.here, samples.there) / samples.sigma, 3, 7),
    ]
    if costs[0] <= costs[1]:
        return Camera("homography", plane)
    return Camera("fundamental", space)


def _gric(off: _Floats, dimension: int, parameters: int) -> float:
    """Return the cost of a model with errors in standard deviations."""
    data = 4  # the coordinates of a pair of points
    robust = np.minimum(np.square(off), 2.0 * (data - dimension))
    count = len(off)
    return float(
        robust.sum() + np.log(data) * dimension * count + np.log(data * count) * parameters
    )


def fit_homography(samples: Samples) -> Matrix:
    """Fit the homography that most samples agree on."""
    return _robust(samples, 4, _homographies, transfer_error)


def fit_fundamental(samples: Samples) -> Matrix:
    """Fit the fundamental matrix that most samples agree on."""
    return _robust(samples, 8, _fundamentals, sampson_error)


def fit_similarity(samples: Samples) -> Matrix:
    """Fit a translation, rotation and zoom, starting from the homography that most agree on."""
    matrix = fit_homography(samples)
    x, y = samples.here.T
    ones, zeros = np.ones_like(x), np.zeros_like(x)
    rows = np.concatenate(
        [np.stack([x, -y, ones, zeros], axis=1), np.stack([y, x, zeros, ones], axis=1)]
    )
    values = samples.there.T.ravel()
    for _ in range(_ROUNDS):
        off = transfer_error(matrix, samples.here, samples.there)
        weights = np.tile(np.sqrt(_weights(off, samples.sigma)), 2)
        (a, b, c, d), *_ = np.linalg.lstsq(rows * weights[:, None], values * weights, rcond=None)
        matrix = np.array([[a, -b, c], [b, a, d], [0, 0, 1.0]])
    return matrix


def apply(matrix: Matrix, points: Points) -> Points:
    """Apply a homography to points, (..., 2)."""
    moved = points @ matrix[..., :2].T + matrix[:, 2]
    bottom = moved[..., 2:]
    # What is at infinity shall be far away, not undefined.
    return np.asarray(moved[..., :2] / np.where(np.abs(bottom) < 1e-9, 1e-9, bottom))


def transfer_error(matrix: Matrix, here: Points, there: Points) -> _Floats:
    """Return how many pixels points are from where a homography takes them."""
    return np.asarray(np.linalg.norm(apply(matrix, here) - there, axis=-1))


def sampson_error(matrix: Matrix, here: Points, there: Points) -> _Floats:
    """Return how many pixels a pair of points is from fitting a fundamental matrix, nearly."""
    line = here @ matrix[:, :2].T + matrix[:, 2]
    back = there @ matrix[:2] + matrix[2]
    value = (there * line[..., :2]).sum(axis=-1) + line[..., 2]
    slope = np.square(line[..., :2]).sum(axis=-1) + np.square(back[..., :2]).sum(axis=-1)
    # Both points move in this measure; if only the second does, the distance is √2 times as large.
    return np.asarray(np.abs(value) * np.sqrt(2 / np.maximum(slope, 1e-30)))


_Solve = Callable[[Points, Points, _Floats], Matrix]
_Measure = Callable[[Matrix, Points, Points], _Floats]


def _robust(samples: Samples, size: int, solve: _Solve, measure: _Measure) -> Matrix:
    """Draw subsets, fit the best to all samples with weights, and return the best of those."""
    scale, center = _normalization(samples)
    here, there = (samples.here - center) / scale, (samples.there - center) / scale
    count = len(here)
    if count < size:
        return np.eye(3)
    sigma = samples.sigma / scale
    rng = np.random.default_rng(0)  # the same flow always gives the same camera
    # Drawn with repetition, which costs few subsets and saves much time.
    drawn = rng.integers(0, count, (_DRAWS[size], size))
    tried = solve(here[drawn], there[drawn], np.ones(drawn.shape))
    few = rng.permutation(count)[:500]
    costs = [_cost(measure(m, here[few], there[few]), sigma[few]) for m in tried]
    found: list[tuple[float, Matrix]] = []
    for number in np.argsort(costs)[:_BEST]:
        matrix = tried[number]
        for _ in range(_ROUNDS):
            weights = _weights(measure(matrix, here, there), sigma)
            matrix = solve(here[None], there[None], np.sqrt(weights)[None])[0]
        found.append((_cost(measure(matrix, here, there), sigma), matrix))
    best = min(found, key=lambda pair: pair[0])[1]
    normal = np.array(
        [[1 / scale, 0, -center[0] / scale], [0, 1 / scale, -center[1] / scale], [0, 0, 1]]
    )
    if size == 4:
        matrix = np.linalg.inv(normal) @ best @ normal
        return np.asarray(matrix / matrix[2, 2])
    matrix = normal.T @ best @ normal
    return np.asarray(matrix / np.linalg.norm(matrix))


def _cost(error: _Floats, sigma: _Floats) -> float:
    return float(np.minimum(np.square(error / sigma), _OUTLIER**2).sum())


def _weights(error: _Floats, sigma: _Floats) -> _Floats:
    """Return the weights of Geman and McClure, relative to the precision of each sample."""
    return np.asarray(1 / np.square(1 + np.square(error / (_OUTLIER * sigma))) / np.square(sigma))


def _normalization(samples: Samples) -> tuple[float, _Floats]:
    """Return scale and center, so that coordinates are about 1: large ones spoil the solution."""
    center = samples.here.mean(axis=0)
    scale = float(np.abs(samples.here - center).mean()) or 1.0
    return scale, center


def _smallest(rows: _Floats) -> Matrix:
    """Return the 3×3 matrices whose nine numbers make systems of equations, (B, E, 9), smallest."""
    _, vectors = np.linalg.eigh(rows.swapaxes(1, 2) @ rows)
    return np.asarray(vectors[:, :, 0].reshape(-1, 3, 3))


def _homographies(here: Points, there: Points, weights: _Floats) -> Matrix:
    """Solve for homographies from (B, N, 2) pairs of points with weights (direct linear)."""
    x, y = here[..., 0], here[..., 1]
    u, v = there[..., 0], there[..., 1]
    one, zero = np.ones_like(x), np.zeros_like(x)
    first = np.stack([x, y, one, zero, zero, zero, -u * x, -u * y, -u], axis=-1)
    second = np.stack([zero, zero, zero, x, y, one, -v * x, -v * y, -v], axis=-1)
    both = np.concatenate([first * weights[..., None], second * weights[..., None]], axis=1)
    return _smallest(both)


def _fundamentals(here: Points, there: Points, weights: _Floats) -> Matrix:
    """Solve for fundamental matrices from (B, N, 2) pairs of points with weights (eight points)."""
    x, y = here[..., 0], here[..., 1]
    u, v = there[..., 0], there[..., 1]
    rows = np.stack([u * x, u * y, u, v * x, v * y, v, x, y, np.ones_like(x)], axis=-1)
    matrix = _smallest(rows * weights[..., None])
    # A fundamental matrix has rank 2.
    left, values, right = np.linalg.svd(matrix)
    values[:, 2] = 0
    return np.asarray(left * values[:, None] @ right)

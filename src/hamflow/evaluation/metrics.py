"""The errors of a flow against the truth, as Sintel and KITTI count them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hamflow._check import as_flow
from hamflow.errors import InputError

# Which count a mean is over; all other means are over `pixels`.
_COUNT_OF = {
    "epe_noc": "pixels_noc",
    "fl_noc": "pixels_noc",
    "epe_occ": "pixels_occ",
    "s0_10": "pixels_s0_10",
    "s10_40": "pixels_s10_40",
    "s40plus": "pixels_s40plus",
}


@dataclass(frozen=True)
class FlowMetrics:
    """Means over pixels of known truth, and how many these are.

    The error of a pixel is the endpoint error (EPE): the distance from the flow to the truth. A
    mean over no pixels is NaN. Shares are in 0..1.

    Attributes
    ----------
    epe_all, epe_noc, epe_occ : float
        Mean error of all pixels, of those that are not occluded, and of those that are.
    s0_10, s10_40, s40plus : float
        Mean error where the length of the true flow is below 10 pixels, from 10 to below 40, and
        from 40 on.
    fl_all, fl_noc : float
        Share of all pixels, and of those that are not occluded, whose error is above 3 pixels and
        above 5 % of the length of the true flow.
    outlier_1px, outlier_3px, outlier_5px : float
        Share of the pixels whose error is above so many pixels.
    pixels, pixels_noc, pixels_occ, pixels_s0_10, pixels_s10_40, pixels_s40plus : int
        How many pixels there are of each kind.
    """

    epe_all: float
    epe_noc: float
    epe_occ: float
    s0_10: float
    s10_40: float
    s40plus: float
    fl_all: float
    fl_noc: float
    outlier_1px: float
    outlier_3px: float
    outlier_5px: float
    pixels: int
    pixels_noc: int
    pixels_occ: int
    pixels_s0_10: int
    pixels_s10_40: int
    pixels_s40plus: int


@dataclass(frozen=True)
class PooledMetrics:
    """The metrics of several images together. All counts are totals over the images.

    Attributes
    ----------
    pooled : FlowMetrics
        Over all pixels of all images: an image with more known pixels counts more.
    mean : FlowMetrics
        Means over the images that have such pixels, each of which counts alike.
    images : int
        How many images there are.
    """

    pooled: FlowMetrics
    mean: FlowMetrics
    images: int


def epe_metrics(
    flow: ArrayLike, truth: ArrayLike, occluded: ArrayLike | None = None
) -> FlowMetrics:
    """Measure a flow against the truth.

    Parameters
    ----------
    flow : (H, W, 2) array_like
        The flow to judge. It must be known wherever the truth is: leaving out what is difficult
        must not pay, so fill it before.
    truth : (H, W, 2) array_like
        The true flow. Pixels with NaN in either component are not evaluated.
    occluded : (H, W) array_like of bool, optional
        Which pixels are hidden in the second image. Without it, the figures for occluded and for
        visible pixels are NaN, because they are not known.

    Returns
    -------
    metrics : FlowMetrics
        The errors, summed up in float64.

    Raises
    ------
    InputError
        If shapes or types do not fit, the flow is unknown where the truth is known, or either is
        infinite.

    Examples
    --------
    >>> import numpy as np
    >>> from hamflow.evaluation import epe_metrics
    >>> truth = np.array([[[3, 4], [30, 40], [np.nan, np.nan]]])
    >>> metrics = epe_metrics(np.zeros((1, 3, 2)), truth)
    >>> metrics.epe_all, metrics.s0_10, metrics.s40plus, metrics.pixels
    (27.5, 5.0, 50.0, 2)
    """
    vectors, true = as_flow(flow), as_flow(truth, "truth")
    if vectors.shape != true.shape:
        raise InputError(
            f"flow and truth must have the same shape, not {vectors.shape} and {true.shape}."
        )
    hidden = None if occluded is None else _as_mask(occluded, true.shape[:2])
    valid = ~np.isnan(true).any(axis=2)
    # Both are taken to float64 before their difference is formed.
    there, here = true[valid].astype(np.float64), vectors[valid].astype(np.float64)
    _check_values(here, there)

    error = _length(here - there)
    length = _length(there)
    bad = (error > 3) & (error > length / 20)  # 5 %
    if hidden is None:
        noc = occ = np.zeros(error.shape, np.bool_)
    else:
        occ = hidden[valid]
        noc = ~occ
    slow, fast = length < 10, length >= 40
    medium = ~slow & ~fast
    return FlowMetrics(
        epe_all=_mean(error),
        epe_noc=_mean(error[noc]),
        epe_occ=_mean(error[occ]),
        s0_10=_mean(error[slow]),
        s10_40=_mean(error[medium]),
        s40plus=_mean(error[fast]),
        fl_all=_mean(bad),
        fl_noc=_mean(bad[noc]),
        outlier_1px=_mean(error > 1),
        outlier_3px=_mean(error > 3),
        outlier_5px=_mean(error > 5),
        pixels=error.size,
        pixels_noc=_count(noc),
        pixels_occ=_count(occ),
        pixels_s0_10=_count(slow),
        pixels_s10_40=_count(medium),
        pixels_s40plus=_count(fast),
    )


def _as_mask(occluded: ArrayLike, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    mask = np.asarray(occluded)
    if mask.shape != shape:
        raise InputError(f"occluded must have the shape {shape}, but has {mask.shape}.")
    if mask.dtype != np.bool_:
        raise InputError(f"occluded must be of type bool, but is {mask.dtype}.")
    return mask


def _check_values(flow: NDArray[np.float64], truth: NDArray[np.float64]) -> None:
    """Refuse what has no error, given the N×2 vectors at the pixels of known truth."""
    if np.isinf(truth).any():
        raise InputError("truth has infinite values; mark unknown pixels with NaN.")
    unknown = int(np.isnan(flow).any(axis=1).sum())
    if unknown:
        raise InputError(
            f"flow is unknown (NaN) at {unknown} of the {len(flow)} pixels where truth is known; "
            f"fill it before."
        )
    if np.isinf(flow).any():
        raise InputError("flow has infinite values; give a finite one wherever truth is known.")


def _length(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.hypot(vectors[:, 0], vectors[:, 1]))


def _count(mask: NDArray[np.bool_]) -> int:
    return int(np.count_nonzero(mask))


def _mean(values: NDArray[np.float64] | NDArray[np.bool_]) -> float:
    return float(values.mean(dtype=np.float64)) if values.size else math.nan


def pool(metrics: Iterable[FlowMetrics]) -> PooledMetrics:
    """Put the metrics of several images together, in both ways that are in use.

    Parameters
    ----------
    metrics : iterable of FlowMetrics
        Those of each image, from `epe_metrics`.

    Returns
    -------
    pooled : PooledMetrics
        Over all pixels (as Sintel has it), and as the mean over images.

    Raises
    ------
    InputError
        If there are none.
    """
    images = [vars(one) for one in metrics]
    if not images:
        raise InputError("metrics must hold those of at least one image.")
    totals: dict[str, Any] = {
        name: sum(one[name] for one in images) for name in images[0] if name.startswith("pixels")
    }
    pooled, mean = totals.copy(), totals.copy()
    for name in images[0]:
        if name not in totals:
            count = _COUNT_OF.get(name, "pixels")
            # An image without such pixels has NaN there.
            having = [one for one in images if one[count]]
            pooled[name] = _ratio([one[name] * one[count] for one in having], totals[count])
            mean[name] = _ratio([one[name] for one in having], len(having))
    return PooledMetrics(FlowMetrics(**pooled), FlowMetrics(**mean), len(images))


def _ratio(values: Sequence[float], count: int) -> float:
    # fsum rounds once, so that the order of the images does not matter.
    return math.fsum(values) / count if count else math.nan

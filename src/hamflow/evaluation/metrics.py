"""The errors of a flow against the truth, as Sintel and KITTI count them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hamflow._check import as_flow
from hamflow.errors import InputError
from hamflow.evaluation._distance import boundary_distance

# Each mean: of what, over which pixels. In the order of the columns.
_MEANS = {
    "epe_all": ("epe", "all"),
    "epe_noc": ("epe", "noc"),
    "epe_occ": ("epe", "occ"),
    "s0_10": ("epe", "s0_10"),
    "s10_40": ("epe", "s10_40"),
    "s40plus": ("epe", "s40plus"),
    "d0_10": ("epe", "d0_10"),
    "d10_60": ("epe", "d10_60"),
    "d60_140": ("epe", "d60_140"),
    "fl_all": ("fl", "all"),
    "fl_noc": ("fl", "noc"),
    "outlier_1px": ("1px", "all"),
    "outlier_3px": ("3px", "all"),
    "outlier_5px": ("5px", "all"),
    "outlier_1px_noc": ("1px", "noc"),
    "outlier_3px_noc": ("3px", "noc"),
    "outlier_5px_noc": ("5px", "noc"),
    "angular_all": ("angle", "all"),
    "angular_noc": ("angle", "noc"),
}
_COUNTS = {
    region: "pixels" if region == "all" else f"pixels_{region}"
    for region in dict.fromkeys(region for _, region in _MEANS.values())
}

Row = dict[str, float | int | None]


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
    d0_10, d10_60, d60_140 : float
        Mean error of the pixels that are not occluded and whose distance to the nearest occlusion
        boundary is below 10 pixels, from 10 to below 60, and from 60 to below 140. See the notes
        of `epe_metrics`.
    fl_all, fl_noc : float
        Share of all pixels, and of those that are not occluded, whose error is above 3 pixels and
        above 5 % of the length of the true flow.
    outlier_1px, outlier_3px, outlier_5px : float
        Share of the pixels whose error is above so many pixels.
    outlier_1px_noc, outlier_3px_noc, outlier_5px_noc : float
        The same of those that are not occluded.
    angular_all, angular_noc : float
        Mean angle in degrees between (u, v, 1) of the flow and of the truth, of all pixels and of
        those that are not occluded.
    pixels, pixels_noc, pixels_occ, pixels_s0_10, pixels_s10_40, pixels_s40plus : int
        How many pixels there are of each kind.
    pixels_d0_10, pixels_d10_60, pixels_d60_140 : int
        The same near occlusion boundaries.
    sums : mapping of str to float
        What the means are of, before the division, by their names: `pool` needs no more.
    """

    epe_all: float
    epe_noc: float
    epe_occ: float
    s0_10: float
    s10_40: float
    s40plus: float
    d0_10: float
    d10_60: float
    d60_140: float
    fl_all: float
    fl_noc: float
    outlier_1px: float
    outlier_3px: float
    outlier_5px: float
    outlier_1px_noc: float
    outlier_3px_noc: float
    outlier_5px_noc: float
    angular_all: float
    angular_noc: float
    pixels: int
    pixels_noc: int
    pixels_occ: int
    pixels_s0_10: int
    pixels_s10_40: int
    pixels_s40plus: int
    pixels_d0_10: int
    pixels_d10_60: int
    pixels_d60_140: int
    sums: Mapping[str, float] = field(repr=False, compare=False)

    def as_row(self) -> Row:
        """Return all means and counts by their names, always the same in the same order.

        A mean over no pixels is None: an empty cell in CSV, and null in JSON, which has no NaN.
        """
        return self._means() | {name: getattr(self, name) for name in _COUNTS.values()}

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> FlowMetrics:
        """Return the metrics whose `as_row` it is, or of which it has the columns.

        Sums are the means times the counts, so they may differ in their last digit.
        """
        counts = {name: int(row[name]) for name in _COUNTS.values()}
        means = {name: math.nan if row[name] is None else float(row[name]) for name in _MEANS}
        sums = {
            name: means[name] * counts[_COUNTS[over]] if counts[_COUNTS[over]] else 0.0
            for name, (_, over) in _MEANS.items()
        }
        return _filled(means, counts, sums)

    def _means(self) -> Row:
        means = {name: getattr(self, name) for name in _MEANS}
        return {name: None if math.isnan(mean) else mean for name, mean in means.items()}


@dataclass(frozen=True)
class PooledMetrics:
    """The metrics of several images together. All counts and sums are totals over the images.

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

    def as_row(self) -> Row:
        """Return everything by name, always the same names in the same order.

        First `images`, then the columns of `FlowMetrics.as_row` with the pooled metrics, and last
        the means over the images, with ``image_mean_`` before their names.
        """
        means = {f"image_mean_{name}": mean for name, mean in self.mean._means().items()}
        return {"images": self.images} | self.pooled.as_row() | means


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
        visible pixels and for occlusion boundaries are NaN, because they are not known.

    Returns
    -------
    metrics : FlowMetrics
        The errors, summed up in float64.

    Raises
    ------
    InputError
        If shapes or types do not fit, the flow is unknown where the truth is known, or either is
        infinite.

    Notes
    -----
    The magnitudes and the distances to occlusion boundaries are split as by Sintel [1]_; the exact
    definition of the distance is ours. A boundary consists of the pixels of `occluded` that share a
    side with one of the other value, on both sides and also where the truth is unknown; the
    distance is the Euclidean one between the centers of pixels. Occluded pixels are in no band of
    distance: they have `epe_occ`. Visible pixels from 140 on are in no band either, nor is any
    pixel of an image without a boundary. Where truth and mask are sparse, as KITTI's are, the
    boundaries are those of the measured points, and the bands say little.

    Fl is KITTI's [2]_, and the angle that of Barron et al. [3]_.

    References
    ----------
    .. [1] D. J. Butler, J. Wulff, G. B. Stanley, M. J. Black: A naturalistic open source movie for
       optical flow evaluation. ECCV 2012.
    .. [2] M. Menze, A. Geiger: Object scene flow for autonomous vehicles. CVPR 2015.
    .. [3] J. L. Barron, D. J. Fleet, S. S. Beauchemin: Performance of optical flow techniques.
       IJCV 12, 1994.

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

    error, length = _length(here - there), _length(there)
    values: dict[str, NDArray[Any]] = {
        "epe": error,
        "fl": (error > 3) & (error > length / 20),  # 5 %
        "1px": error > 1,
        "3px": error > 3,
        "5px": error > 5,
        "angle": _angle(here, there),
    }
    regions = _by_length(length) | _by_occlusion(hidden, valid)
    return _metrics(
        {
            name: float(values[of][regions[over]].sum(dtype=np.float64))
            for name, (of, over) in _MEANS.items()
        },
        {name: int(np.count_nonzero(regions[over])) for over, name in _COUNTS.items()},
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


def _by_length(length: NDArray[np.float64]) -> dict[str, NDArray[np.bool_]]:
    slow, fast = length < 10, length >= 40
    every = np.ones(length.shape, np.bool_)
    return {"all": every, "s0_10": slow, "s10_40": ~slow & ~fast, "s40plus": fast}


def _by_occlusion(
    hidden: NDArray[np.bool_] | None, valid: NDArray[np.bool_]
) -> dict[str, NDArray[np.bool_]]:
    """Return which of the pixels of known truth are in which region; none if nothing is known."""
    if hidden is None:
        nowhere = np.zeros(np.count_nonzero(valid), np.bool_)
        return dict.fromkeys(("noc", "occ", "d0_10", "d10_60", "d60_140"), nowhere)
    occ = hidden[valid]
    noc = ~occ
    # The mask is whole where the truth has holes, so the boundaries are those of all of it.
    distance = boundary_distance(hidden)[valid]
    return {
        "noc": noc,
        "occ": occ,
        "d0_10": noc & (distance < 10),
        "d10_60": noc & (distance >= 10) & (distance < 60),
        "d60_140": noc & (distance >= 60) & (distance < 140),
    }


def _length(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.hypot(vectors[:, 0], vectors[:, 1]))


def _angle(flow: NDArray[np.float64], truth: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the angles in degrees between the N×2 vectors, in space and time."""
    one, other = _direction(flow), _direction(truth)
    # The usual arccos of the product is off by up to 1e-6 degrees near 0; this is exact there.
    half = np.arctan2(np.linalg.norm(one - other, axis=1), np.linalg.norm(one + other, axis=1))
    return np.asarray(np.degrees(2 * half))


def _direction(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return (u, v, 1) for each of the N×2 vectors, at length 1."""
    spacetime = np.column_stack([vectors, np.ones(len(vectors))])
    return np.asarray(spacetime / np.hypot(_length(vectors), 1)[:, None])


def _metrics(sums: Mapping[str, float], counts: Mapping[str, int]) -> FlowMetrics:
    means = {name: _ratio(sums[name], counts[_COUNTS[over]]) for name, (_, over) in _MEANS.items()}
    return _filled(means, counts, sums)


def _filled(
    means: Mapping[str, float], counts: Mapping[str, int], sums: Mapping[str, float]
) -> FlowMetrics:
    fields: dict[str, Any] = {**means, **counts}
    return FlowMetrics(**fields, sums=sums)


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
    images = list(metrics)
    if not images:
        raise InputError("metrics must hold those of at least one image.")
    counts = {name: sum(getattr(one, name) for one in images) for name in _COUNTS.values()}
    # fsum rounds once, so that the order of the images does not matter.
    sums = {name: math.fsum(one.sums[name] for one in images) for name in _MEANS}
    means = {}
    for name, (_, over) in _MEANS.items():
        # An image without such pixels has NaN there.
        having = [getattr(one, name) for one in images if getattr(one, _COUNTS[over])]
        means[name] = _ratio(math.fsum(having), len(having))
    return PooledMetrics(_metrics(sums, counts), _filled(means, counts, sums), len(images))


def _ratio(total: float, count: int) -> float:
    return total / count if count else math.nan

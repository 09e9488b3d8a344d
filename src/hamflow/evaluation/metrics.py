"""The errors of a flow against the true flow, as Sintel and KITTI define them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, get_origin, get_type_hints

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hamflow._check import as_flow
from hamflow.errors import InputError
from hamflow.evaluation._distance import boundary_distance

Row = dict[str, float | int | None]


@dataclass(frozen=True)
class FlowMetrics:
    """Mean errors over the pixels whose true flow is known, and the numbers of these pixels.

    The error of a pixel is the endpoint error (EPE): the distance between the flow and the true
    flow. A mean over no pixels is NaN. Shares are in 0..1.

    Attributes
    ----------
    epe_all, epe_noc, epe_occ : float
        Mean error of all, of the visible, and of the occluded pixels.
    s0_10, s10_40, s40plus : float
        Mean error where the true flow is shorter than 10 pixels, from 10 to below 40, and longer.
    d0_10, d10_60, d60_140 : float
        Mean error of the visible pixels whose distance to the nearest occlusion boundary is below
        10 pixels, from 10 to below 60, and from 60 to below 140; see the notes of `epe_metrics`.
    fl_all, fl_noc : float
        Share of all, and of the visible pixels whose error is above 3 pixels and above 5 % of the
        length of the true flow.
    outlier_1px, outlier_3px, outlier_5px : float
        Share of the pixels whose error is above 1, 3 and 5 pixels.
    outlier_1px_noc, outlier_3px_noc, outlier_5px_noc : float
        The same for the visible pixels.
    angular_all, angular_noc : float
        Mean angle in degrees between (u, v, 1) of the flow and of the true flow, of all and of the
        visible pixels.
    pixels, pixels_noc, pixels_occ, pixels_s0_10, pixels_s10_40, pixels_s40plus : int
        How many pixels there are in each region.
    pixels_d0_10, pixels_d10_60, pixels_d60_140 : int
        The same near occlusion boundaries.
    sums : mapping of str to float
        The sums behind the means by their names, which `pool` adds.
    """

    epe_all: Annotated[float, "epe", "all"]
    epe_noc: Annotated[float, "epe", "noc"]
    epe_occ: Annotated[float, "epe", "occ"]
    s0_10: Annotated[float, "epe", "s0_10"]
    s10_40: Annotated[float, "epe", "s10_40"]
    s40plus: Annotated[float, "epe", "s40plus"]
    d0_10: Annotated[float, "epe", "d0_10"]
    d10_60: Annotated[float, "epe", "d10_60"]
    d60_140: Annotated[float, "epe", "d60_140"]
    fl_all: Annotated[float, "fl", "all"]
    fl_noc: Annotated[float, "fl", "noc"]
    outlier_1px: Annotated[float, "1px", "all"]
    outlier_3px: Annotated[float, "3px", "all"]
    outlier_5px: Annotated[float, "5px", "all"]
    outlier_1px_noc: Annotated[float, "1px", "noc"]
    outlier_3px_noc: Annotated[float, "3px", "noc"]
    outlier_5px_noc: Annotated[float, "5px", "noc"]
    angular_all: Annotated[float, "angle", "all"]
    angular_noc: Annotated[float, "angle", "noc"]
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
        """Return all means and counts by their names; a mean over no pixels is None."""
        return self._means() | {name: getattr(self, name) for name in _COUNTS.values()}

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> FlowMetrics:
        """Return the metrics that a row of `as_row` holds, possibly among other columns.

        The sums are computed from means and counts, so their last digit may differ.
        """
        counts: dict[str, Any] = {name: int(row[name]) for name in _COUNTS.values()}
        means: dict[str, Any] = {
            name: math.nan if row[name] is None else float(row[name]) for name in _MEANS
        }
        numbers = {name: counts[_COUNTS[over]] for name, (_, over) in _MEANS.items()}
        sums = {name: means[name] * n if n else 0.0 for name, n in numbers.items()}
        return cls(**means, **counts, sums=sums)

    def _means(self) -> Row:
        means = {name: getattr(self, name) for name in _MEANS}
        return {name: None if math.isnan(mean) else mean for name, mean in means.items()}


# The measure and the region of each mean, as annotated above.
_MEANS: dict[str, tuple[str, str]] = {
    name: hint.__metadata__
    for name, hint in get_type_hints(FlowMetrics, include_extras=True).items()
    if get_origin(hint) is Annotated
}
# The name of the number of pixels of each region.
_COUNTS = {
    over: "pixels" if over == "all" else f"pixels_{over}"
    for over in dict.fromkeys(over for _, over in _MEANS.values())
}


@dataclass(frozen=True)
class PooledMetrics:
    """The metrics of several images together. Counts and sums are totals over the images.

    Attributes
    ----------
    pooled : FlowMetrics
        Means over all pixels of all images, so that images with more known pixels weigh more.
    mean : FlowMetrics
        Means over the images in which the metric is known, with equal weights.
    images : int
        The number of images.
    """

    pooled: FlowMetrics
    mean: FlowMetrics
    images: int

    def as_row(self) -> Row:
        """Return the number of images, the pooled metrics, and the means as ``image_mean_...``."""
        means = {f"image_mean_{name}": mean for name, mean in self.mean._means().items()}
        return {"images": self.images} | self.pooled.as_row() | means


def epe_metrics(
    flow: ArrayLike, truth: ArrayLike, occluded: ArrayLike | None = None
) -> FlowMetrics:
    """Measure the errors of a flow against the true flow.

    Parameters
    ----------
    flow : (H, W, 2) array_like
        The flow to measure. It must be known wherever the true flow is, so that a method cannot
        gain by leaving out difficult pixels.
    truth : (H, W, 2) array_like
        The true flow. Pixels with NaN in either component are ignored.
    occluded : (H, W) array_like of bool, optional
        Which pixels are occluded in the second image. Without it, the metrics of occluded and
        visible pixels and near occlusion boundaries are NaN.

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
    The ranges of lengths and of distances to occlusion boundaries are Sintel's [1]_; the exact
    definition of the distance is ours. A boundary consists of the pixels of `occluded` that share a
    side with a pixel of the other value, on both sides, also where the true flow is unknown. The
    distance is the Euclidean one between pixel centers. The ranges of distance contain visible
    pixels only, none at 140 pixels or more, and none in an image without a boundary. With sparse
    truth, as KITTI's, the boundaries are those between measured points and have little meaning.

    Fl is defined by KITTI [2]_, the angular error by Barron et al. [3]_.

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
    regions = _regions(length, hidden, valid)
    sums = {
        name: float(values[of][regions[over]].sum(dtype=np.float64))
        for name, (of, over) in _MEANS.items()
    }
    counts = {name: int(np.count_nonzero(regions[over])) for over, name in _COUNTS.items()}
    return _from_sums(sums, counts)


def _as_mask(occluded: ArrayLike, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    mask = np.asarray(occluded)
    if mask.shape != shape:
        raise InputError(f"occluded must have the shape {shape}, but has {mask.shape}.")
    if mask.dtype != np.bool_:
        raise InputError(f"occluded must be of type bool, but is {mask.dtype}.")
    return mask


def _check_values(flow: NDArray[np.float64], truth: NDArray[np.float64]) -> None:
    """Raise an InputError for N×2 vectors, at the pixels of known truth, that have no error."""
    if np.isinf(truth).any():
        raise InputError("truth has infinite values; mark unknown pixels with NaN.")
    unknown = int(np.isnan(flow).any(axis=1).sum())
    if unknown:
        raise InputError(
            f"flow is unknown (NaN) at {unknown} of the {len(flow)} pixels where truth is known; "
            "complete it first."
        )
    if np.isinf(flow).any():
        raise InputError("flow has infinite values where truth is known; give finite ones.")


def _regions(
    length: NDArray[np.float64], hidden: NDArray[np.bool_] | None, valid: NDArray[np.bool_]
) -> dict[str, NDArray[np.bool_]]:
    """Return which pixels of known truth are in which region; none if occlusion is unknown."""
    nowhere = np.zeros(length.shape, np.bool_)
    found = dict.fromkeys(("noc", "occ", "d0_10", "d10_60", "d60_140"), nowhere)
    if hidden is not None:
        noc = ~hidden[valid]
        # The boundaries of the whole mask, also where the truth is unknown.
        distance = boundary_distance(hidden)[valid]
        found = {
            "noc": noc,
            "occ": ~noc,
            "d0_10": noc & (distance < 10),
            "d10_60": noc & (distance >= 10) & (distance < 60),
            "d60_140": noc & (distance >= 60) & (distance < 140),
        }
    slow, fast = length < 10, length >= 40
    lengths = {"s0_10": slow, "s10_40": ~slow & ~fast, "s40plus": fast}
    return {"all": ~nowhere, **lengths, **found}


def _length(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.hypot(vectors[:, 0], vectors[:, 1]))


def _angle(flow: NDArray[np.float64], truth: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the angles in degrees between (u, v, 1) of N×2 vectors."""
    one, other = _direction(flow), _direction(truth)
    # The usual arccos of the scalar product is inaccurate near 0 degrees.
    half = np.arctan2(np.linalg.norm(one - other, axis=1), np.linalg.norm(one + other, axis=1))
    return np.asarray(np.degrees(2 * half))


def _direction(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return (u, v, 1) for each of the N×2 vectors, at length 1."""
    spacetime = np.column_stack([vectors, np.ones(len(vectors))])
    return np.asarray(spacetime / np.hypot(_length(vectors), 1)[:, None])


def _from_sums(sums: Mapping[str, float], counts: Mapping[str, Any]) -> FlowMetrics:
    means: dict[str, Any] = {
        name: _ratio(sums[name], counts[_COUNTS[over]]) for name, (_, over) in _MEANS.items()
    }
    return FlowMetrics(**means, **counts, sums=sums)


def pool(metrics: Iterable[FlowMetrics]) -> PooledMetrics:
    """Combine the metrics of several images: over all pixels, as Sintel does, and as means.

    Parameters
    ----------
    metrics : iterable of FlowMetrics
        The metrics of each image, from `epe_metrics`.

    Raises
    ------
    InputError
        If there are none.
    """
    images = list(metrics)
    if not images:
        raise InputError("metrics must contain at least one image.")
    counts: dict[str, Any] = {
        name: sum(getattr(one, name) for one in images) for name in _COUNTS.values()
    }
    # fsum rounds only once, so that the order of the images does not matter.
    sums = {name: math.fsum(one.sums[name] for one in images) for name in _MEANS}
    means: dict[str, Any] = {}
    for name, (_, over) in _MEANS.items():
        # In an image without such pixels, the mean is NaN.
        having = [getattr(one, name) for one in images if getattr(one, _COUNTS[over])]
        means[name] = _ratio(math.fsum(having), len(having))
    return PooledMetrics(
        _from_sums(sums, counts), FlowMetrics(**means, **counts, sums=sums), len(images)
    )


def _ratio(total: float, count: int) -> float:
    return total / count if count else math.nan

"""Subpixel refinement by a variational model."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

import hamflow._runtime  # noqa: F401  (reads HAMFLOW_NUM_THREADS)
from hamflow import _native
from hamflow._check import check_range
from hamflow._room import empty
from hamflow._types import Field, Flow, FrameLike, Image, Mask
from hamflow.errors import InputError
from hamflow.refinement._edges import gaussian_weights
from hamflow.refinement.pyramid import RefineAt, coarse_to_fine

_COLORS = 3
_CHANNELS = 8


@dataclass(frozen=True)
class VariationalRefinement:
    """The variational refinement and its parameters; see :func:`refine`.

    Parameters
    ----------
    alpha : float
        Weight of the smoothness term.
    kappa : float
        How fast that weight falls with the contrast between neighbors, as in the joint model.
    delta, gamma : float
        Weights of the constancy of colors and of their gradients.
    zeta : float
        Contrast, of a range of 0..1, above which a larger one adds no weight to the data term.
    epsilon : float
        Of the robust penalties sqrt(s² + epsilon²), which are quadratic for smaller residuals s.
    blur : float
        Standard deviation, in pixels, of the smoothing of both images.
    warps : int
        How often the second image is warped by the flow found so far.
    inner : int
        How often the robust weights are updated for each warp.
    sweeps : int
        Sweeps of red-black over-relaxation after each update.
    omega : float
        Factor of the over-relaxation, between 0 and 2.
    finest : int
        The finest scale that is refined, a power of two; from there the flow is only enlarged.
    """

    alpha: float = 0.7
    kappa: float = 8.0
    delta: float = 0.1
    gamma: float = 1.0
    zeta: float = 0.01
    epsilon: float = 0.001
    blur: float = 0.6
    warps: int = 5
    inner: int = 2
    sweeps: int = 15
    omega: float = 1.8
    finest: int = 1
    method: ClassVar[str] = "variational"
    twice: ClassVar[bool] = False

    def __post_init__(self) -> None:
        # Ranges in which squares and quotients stay well within float32.
        for name in ("alpha", "kappa", "delta", "gamma"):
            check_range(self, name, 0, 1e6)
        for name in ("zeta", "epsilon"):
            check_range(self, name, 1e-6, 1e6)
        check_range(self, "blur", 0, 20)
        for name in ("warps", "inner", "sweeps"):
            check_range(self, name, 0, 10000, whole=True)
        if type(self.finest) is not int or self.finest not in {2**k for k in range(9)}:
            raise InputError(f"finest must be a power of two up to 256, not {self.finest!r}.")
        if not 0 < self.omega < 2:
            raise InputError(f"omega must be between 0 and 2, not {self.omega!r}.")

    def __call__(
        self,
        frames: tuple[FrameLike, FrameLike],
        flow: Flow,
        trusted: Mask,
        scale: int,
        opposite: Flow | None = None,
    ) -> Flow:
        """Take the flow of one direction from the matching scale to the full size."""
        return coarse_to_fine(
            frames[0],
            flow,
            trusted,
            scale,
            self._refiner(frames, scale),
            opposite=opposite,
            finest=self.finest,
            twice=self.twice,
        )

    def _refiner(self, frames: tuple[FrameLike, FrameLike], scale: int) -> RefineAt:
        """Return what refines at each scale on the way from the matching scale to the finest."""

        def refine_at(finer: int, start: Flow, weight: Field, near: bool) -> Flow:
            first, second = (features_of(frame, finer, self.blur) for frame in frames)
            config = replace(self, warps=self._warps(near))
            return refine(first, second, start, weight, config=config)

        return refine_at

    def _warps(self, near: bool) -> int:
        """Return how many warps there are, for a flow that is nearly right or not."""
        return (self.warps + 1) // 2 if near else self.warps


def refine(
    features0: Image,
    features1: Image,
    flow: Flow,
    weight: Field,
    *,
    config: VariationalRefinement | None = None,
    edges: tuple[Field, Field] | None = None,
    limit: float = math.inf,
) -> Flow:
    """Minimize a variational energy, starting from a flow that is right to a pixel or two.

    The energy demands constancy of colors and of their gradients, each normalized by its contrast,
    and smoothness of the flow except across image edges, all with robust penalties [1]_. The result
    has the same bytes for any number of threads.

    Parameters
    ----------
    features0, features1 : (H, W, 8) array of float32
        What `features` says of the two images.
    flow : (H, W, 2) array of float32
        Where to start.
    weight : (H, W) array of float32
        Of the data term, from 0 to 1; 0 where a pixel has no partner.
    config : VariationalRefinement, optional
        Parameters.
    edges : pair of (H, W) arrays of float32, optional
        Factors of the smoothness between a pixel and its right and lower neighbors, beside those
        of the image.
    limit : float
        How far a component may move in all, in pixels.

    Returns
    -------
    (H, W, 2) array of float32

    Raises
    ------
    InputError
        If shapes do not fit together.

    References
    ----------
    .. [1] T. Brox, A. Bruhn, N. Papenberg, J. Weickert: High accuracy optical flow estimation based
       on a theory for warping. ECCV 2004.
    """
    config = config or VariationalRefinement()
    _check_shapes(features0, features1, flow, weight)
    refined = empty(flow.shape, np.float32)
    _native.variational(
        features0,
        features1,
        _COLORS,
        (config.delta, config.gamma),
        np.ascontiguousarray(weight, np.float32),
        None if edges is None else (edges[0], edges[1]),
        (config.alpha, config.kappa, config.zeta, config.epsilon),
        (config.warps, config.inner, config.sweeps, config.omega),
        limit,
        np.ascontiguousarray(flow, np.float32),
        refined,
    )
    return refined


def _check_shapes(features0: Image, features1: Image, flow: Flow, weight: Any) -> None:
    size = np.shape(features0)[:2]
    for name, array, expected in (
        ("features0", features0, (*size, _CHANNELS)),
        ("features1", features1, (*size, _CHANNELS)),
        ("flow", flow, (*size, 2)),
        ("weight", weight, size),
    ):
        if np.shape(array) != expected:
            raise InputError(f"{name} must have the shape {expected}, not {np.shape(array)}.")


def features(image: Image, blur: float) -> Image:
    """Return what the data term compares.

    The three colors, the gradient of their mean, that of red against blue, and a zero that makes
    them eight.

    Parameters
    ----------
    image : (H, W, 3) array of float32
        From 0 to 1.
    blur : float
        Standard deviation of the smoothing, in pixels.

    Returns
    -------
    (H, W, 8) array of float32
    """
    channels = empty((*image.shape[:2], _CHANNELS), np.float32)
    image = np.ascontiguousarray(image, np.float32)
    _native.features(image, gaussian_weights(blur), channels)
    return channels


def features_of(frame: FrameLike, scale: int, blur: float) -> Image:
    """Return the features of a frame at a scale; they are computed once per frame."""
    return frame.kept(("features", scale, blur), lambda: features(frame.at(scale), blur))

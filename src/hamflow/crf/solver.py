"""The joint model (eq. 3) from end to end: descriptors in, labels and a lower bound out."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hamflow._types import Bits, Field, Labels, Phi, Volume
from hamflow.crf.arithmetic import Arithmetic
from hamflow.crf.backend import Backend, LabelCosts, Plane, load_backend
from hamflow.crf.config import CrfConfig
from hamflow.crf.data import BitsData, DataTerm, Edges, GivenCosts, PhiData
from hamflow.crf.dual import BoundProgress, Dual
from hamflow.crf.model import edge_weights, rho
from hamflow.crf.rounding import Primal
from hamflow.errors import InputError
from hamflow.matching._arrays import check_bits, check_phi, check_volume
from hamflow.window import Window, WindowLike, kernel_window


@dataclass(frozen=True)
class CrfStep:
    """What is known after an outer iteration.

    Attributes
    ----------
    iteration : int
        From 1 on.
    bound : float
        Ψ (eq. 6): no labeling has a smaller energy.
    energy : float
        E of the best labeling so far.
    seconds : float
        Since the solver was called.
    """

    iteration: int
    bound: float
    energy: float
    seconds: float

    @property
    def gap(self) -> float | None:
        """``(E - Ψ) / |Ψ|``; None if only the bound is 0, because nothing can be relative to it."""
        excess = self.energy - self.bound
        if self.bound == 0:
            return 0.0 if excess <= 0 else None
        return excess / abs(self.bound)


@dataclass(frozen=True)
class CrfPass:
    """What is known after a pass along all rows or columns, within an outer iteration.

    Attributes
    ----------
    iteration : int
        The outer iteration, from 1 on.
    bound : float
        No labeling has a smaller energy.
    seconds : float
        Since the solver was called.
    """

    iteration: int
    bound: float
    seconds: float


Callback = Callable[[CrfStep], object]
PassCallback = Callable[[CrfPass], object]


@dataclass(frozen=True, eq=False)
class CrfResult:
    """A labeling, and how far it can be from the best one.

    Attributes
    ----------
    u, v : (H, W) array of int16
        Labels: label k of u is the displacement k + window.u0.
    energy, bound, gap : float
        E of the labels, Ψ, and ``(E - Ψ) / |Ψ|``; E is at most so much above the minimum.
    history : tuple of CrfStep
        One for each outer iteration.
    slack_u, slack_v : (H, W, D) array of int16 or float32
        Slacks s of both planes in units of 1 / `scale`: the terms of a tight minorant of what is
        left of the energy, the smaller the better the label. The shares that nodes keep shrink
        them, so a difference is a lower estimate of that of the min-marginals, not the same.
    lam_v : (H, W, dv) array
        λ of the plane v, in the same units: what `solve` takes as `initial_lam`.
    margin : (H, W) array of float32
        How decided each pixel is, in units of cost: how much larger the slack of the best label is
        that is more than one away from the chosen one, for the plane in which that is less. Not
        positive where another label is as good; infinite if the window has no such label.
    scale : float
        Units of the solver in a unit of cost.
    window : Window
        The displacements.
    """

    u: Labels
    v: Labels
    energy: float
    bound: float
    gap: float | None
    history: tuple[CrfStep, ...]
    slack_u: Volume
    slack_v: Volume
    lam_v: Volume
    margin: Field
    scale: float
    window: Window

    @property
    def flow(self) -> NDArray[np.float32]:
        """The displacements, H×W×2."""
        first = np.array([self.window.u0, self.window.v0], np.float32)
        return np.stack([self.u, self.v], axis=2).astype(np.float32) + first


def solve(
    *,
    bits0: Bits | None = None,
    bits1: Bits | None = None,
    phi0: Phi | None = None,
    phi1: Phi | None = None,
    image: ArrayLike,
    window: WindowLike,
    config: CrfConfig | None = None,
    initial_labels: tuple[Labels, Labels] | None = None,
    initial_lam: CrfResult | Volume | None = None,
    unary: tuple[Volume | LabelCosts, Volume | LabelCosts] | None = None,
    callback: Callback | None = None,
    pass_callback: PassCallback | None = None,
) -> CrfResult:
    """Minimize the joint energy of u and v, with a lower bound on it.

    Algorithm 1 of the paper (messages between the planes, DMM within them), then labels by the
    smallest slack and moves that never raise the energy.

    Parameters
    ----------
    bits0, bits1 : (H, W) or (H, W, 2) array of uint64
        Packed descriptors of the two images (Q), of one word or two, ...
    phi0, phi1 : (H, W, m) array of float32
        ... or float descriptors (F).
    image : (H, W) or (H, W, 3) array
        The first image: the contrast between neighbors decides how much they have to agree.
    window : Window or int or tuple
        Displacements; with a single one vertically (stereo) or horizontally there is one plane.
    config : CrfConfig, optional
        Parameters of the model and of the solver.
    initial_labels : (u, v), optional
        Labels to start from, (H, W) int16 each, from a frame before or a coarser scale: a candidate
        for the result, with which later ones are fused. They do not change the bound.
    initial_lam : CrfResult or (H, W, dv) array, optional
        An earlier result with the same window, or its ``lam_v`` if the scale is the same, too: the
        first message then knows what that had found. Any values give a valid bound.
    unary : (a, b), optional
        Costs of the labels besides those of the descriptors: a(u), (H, W, du), and b(v),
        (H, W, dv), of type uint8; for example what a coarser scale says. They are part of the
        energy. Or objects that make them row by row (`hamflow.crf.backend.LabelCosts`).
    callback : callable, optional
        Called with a `CrfStep` after every outer iteration.
    pass_callback : callable, optional
        Called with a `CrfPass` after every pass along all rows or columns.

    Returns
    -------
    CrfResult

    Examples
    --------
    >>> import numpy as np
    >>> from hamflow import crf, pair_bits
    >>> image = np.random.default_rng(0).integers(0, 256, (40, 60, 3), np.uint8)
    >>> moved = np.roll(image, 5, axis=1)
    >>> result = crf.solve(bits0=pair_bits(image), bits1=pair_bits(moved), image=image, window=16)
    >>> result.flow[20, 30], bool(result.bound <= result.energy)
    (array([5., 0.], dtype=float32), True)
    """
    start = time.perf_counter()
    config = CrfConfig() if config is None else config
    backend = load_backend(config.backend)
    data = _data_term((bits0, bits1), (phi0, phi1), kernel_window(window), config, backend)
    if unary is not None:
        data.add_unary(_checked_unary(unary, data))
    weights = edge_weights(image, config.alpha)
    if weights[0].shape != data.shape:
        raise InputError(
            f"image must have the size of the descriptors, {data.shape[1]}×{data.shape[0]}, but "
            f"is {weights[0].shape[1]}×{weights[0].shape[0]} (width × height)."
        )
    arithmetic = Arithmetic.choose(config, data.largest, floats=isinstance(data, PhiData))
    data.use(arithmetic)
    start_lam = _checked_lam(initial_lam, data, config, arithmetic)
    dual = Dual(data, config, arithmetic, weights, start_lam, backend=backend)
    primal = _primal(data, dual, weights, config, backend)
    if initial_labels is not None:
        primal.best = primal.labeling(*_checked_labels(initial_labels, data))

    history: list[CrfStep] = []
    bound = -np.inf
    window = data.window
    for iteration in range(1, config.outer + 1):
        told = _told_of_passes(pass_callback, iteration, bound, start)
        # With bits it never falls; a float message is rounded in a way that may cost a unit.
        bound = max(bound, dual.iterate(told))
        u = dual.planes["u"].labels(window.u0)
        v = dual.planes["v"].labels(window.v0)
        energy = primal.offer(u, v)
        step = CrfStep(iteration, bound, energy, time.perf_counter() - start)
        close = step.gap is not None and step.gap <= config.gap_tolerance
        last = close or iteration == config.outer
        if last and config.rounding == "chains":
            step = CrfStep(iteration, bound, primal.spread(), time.perf_counter() - start)
        history.append(step)
        if callback is not None:
            callback(step)
        if last:
            break

    best = primal.best
    assert best is not None
    slacks = dual.planes["u"].slack, dual.planes["v"].slack
    margin: Field = np.minimum(
        backend.margins(slacks[0], best.u), backend.margins(slacks[1], best.v)
    )
    return CrfResult(
        u=best.u,
        v=best.v,
        energy=step.energy,
        bound=bound,
        gap=step.gap,
        history=tuple(history),
        slack_u=backend.to_numpy(slacks[0]),
        slack_v=backend.to_numpy(slacks[1]),
        lam_v=backend.to_numpy(dual.planes["v"].lam),
        margin=margin / np.float32(arithmetic.scale),
        scale=arithmetic.scale,
        window=window,
    )


def _told_of_passes(
    callback: PassCallback | None, iteration: int, bound: float, start: float
) -> BoundProgress | None:
    """Return what the dual tells of the passes of an iteration; `bound` is that of those before."""
    if callback is None:
        return None
    best = bound

    def told(found: float) -> None:
        nonlocal best
        best = max(best, found)
        callback(CrfPass(iteration, best, time.perf_counter() - start))

    return told


def _data_term(
    bits: tuple[Bits | None, Bits | None],
    phi: tuple[Phi | None, Phi | None],
    window: Window,
    config: CrfConfig,
    backend: Backend,
) -> DataTerm:
    if all(b is not None for b in bits) and all(p is None for p in phi):
        return BitsData(*check_bits(*bits), window, config.c_outside, backend)
    if all(p is not None for p in phi) and all(b is None for b in bits):
        return PhiData(*check_phi(*phi), window, config.c_outside, backend)
    raise InputError("solve needs either bits0 and bits1, or phi0 and phi1.")


def _primal(
    data: DataTerm, dual: Dual, weights: Any, config: CrfConfig, backend: Backend
) -> Primal:
    edges: dict[Plane, Edges] = {
        name: Edges(plane.edges["horizontal"], plane.edges["vertical"], plane.reach)
        for name, plane in dual.planes.items()
    }
    values = rho(config, max(data.window.du, data.window.dv))
    return Primal(data, weights, values, edges, config.rounding, backend=backend)


def _checked_lam(
    lam: CrfResult | Volume | None, data: DataTerm, config: CrfConfig, arithmetic: Arithmetic
) -> Volume | None:
    if lam is None:
        return None
    if isinstance(lam, CrfResult):
        lam = np.floor(lam.lam_v * (arithmetic.scale / lam.scale)).astype(arithmetic.dtype)
    elif getattr(lam, "dtype", arithmetic.dtype) != arithmetic.dtype:
        raise InputError(
            f"initial_lam is of type {lam.dtype}, but this solve is in "
            f"{np.dtype(arithmetic.dtype).name}, in units of its own; pass the earlier result."
        )
    volume = check_volume(lam, "initial_lam", arithmetic.dtype, (*data.shape, data.window.dv))
    if arithmetic.dtype is np.float32:
        volume = np.floor(np.nan_to_num(volume))
    # The range in which the solver leaves it, and in which nothing can overflow.
    limit = arithmetic.down(2 * config.tau2)
    clipped: Volume = np.clip(volume, -limit, limit)
    return clipped


def _checked_unary(
    unary: tuple[Volume | LabelCosts, Volume | LabelCosts], data: DataTerm
) -> dict[Plane, LabelCosts]:
    if not isinstance(unary, tuple | list) or len(unary) != 2:
        raise InputError("unary must be the costs of the labels u and those of v, two arrays.")
    shapes = (*data.shape, data.window.du), (*data.shape, data.window.dv)
    u, v = (_label_costs(unary[k], f"unary[{k}]", shapes[k]) for k in (0, 1))
    return {"u": u, "v": v}


def _label_costs(costs: Any, name: str, shape: tuple[int, int, int]) -> LabelCosts:
    if hasattr(costs, "turned"):
        assert costs.shape == shape
        found: LabelCosts = costs
        return found
    return GivenCosts(check_volume(costs, name, np.uint8, shape))


def _checked_labels(labels: tuple[Labels, Labels], data: DataTerm) -> tuple[Labels, Labels]:
    if not isinstance(labels, tuple | list) or len(labels) != 2:
        raise InputError("initial_labels must be the labels of u and those of v, two arrays.")
    u = check_volume(labels[0], "initial_labels[0]", np.int16, data.shape)
    v = check_volume(labels[1], "initial_labels[1]", np.int16, data.shape)
    for array, count in ((u, data.window.du), (v, data.window.dv)):
        if array.min() < 0 or array.max() >= count:
            raise InputError(f"initial_labels must be from 0 to {count - 1} for this window.")
    return u.copy(), v.copy()  # the result may be these, and the caller's are his own

"""The parameters of the joint model and of its solver, each with its default."""

from __future__ import annotations

import math
import operator
import os
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal, get_args

from hamflow._tables import build, config_of_file
from hamflow.errors import InputError

if TYPE_CHECKING:
    from typing_extensions import Self

Minorant = Literal["sequential", "hierarchical"]
Rounding = Literal["argmin", "icm", "rows", "chains"]
ArithmeticName = Literal["auto", "int16", "float32"]

_LARGEST = 5e5


@dataclass(frozen=True)
class CrfConfig:
    """Parameters of ``E(u, v) = Σ c(i; u, v) + Σ w_ij [ρ(u_i - u_j) + ρ(v_i - v_j)]`` (eq. 3).

    Parameters
    ----------
    c_outside : float
        Cost of a target outside of the image; 0 is that of a match by chance.
    alpha : float
        How fast the weight of an edge falls with the contrast across it:
        ``w = exp(-alpha · mean over channels of |I_i - I_j|)``, intensities from 0 to 1.
    tau1 : float
        ρ of neighboring labels; that of equal ones is 0.
    tau2 : float
        ρ of labels that are far apart.
    delta : float
        How far that is: from a distance of `delta` (at least 2) on ρ is `tau2`, and between 1 and
        `delta` it is linear.
    outer : int
        How often both planes are solved, with one message from each to the other.
    inner : int
        Passes over a plane for each message: 2 · `inner` - 1, along rows and columns in turn.
    gap_tolerance : float
        Stop as soon as the relative duality gap is at most this; 0 stops early only where the
        optimum is proven.
    kappa : float
        Least share, from 0 to 1, of what an edge decides that a node keeps in the sequential
        minorant.
    minorant : {"sequential", "hierarchical"}
        How a chain's minimum is distributed over its nodes.
    rounding : {"argmin", "icm", "rows", "chains"}
        How the labels are found: the smallest slack of each pixel as it is, improved pixel by pixel
        on a checkerboard (ICM), or improved by exact moves of whole rows ("rows"), or also of
        columns and by fusion with what the neighbors have ("chains").
    arithmetic : {"auto", "int16", "float32"}
        int16 is twice as fast and takes half the memory; "auto" falls back to float32 where the
        range of the costs does not fit, and with float descriptors.
    backend : str
        Where the solver computes, one of `hamflow.crf.backend.BACKENDS`.

    Examples
    --------
    >>> CrfConfig.paper().outer, CrfConfig(tau2=50.0).tau2
    (5, 50.0)
    """

    c_outside: float = 0.0
    alpha: float = 8.5
    tau1: float = 0.25
    tau2: float = 25.0
    delta: float = 2.0
    outer: int = 2
    inner: int = 4
    gap_tolerance: float = 0.003
    kappa: float = 0.2
    minorant: Minorant = "sequential"
    rounding: Rounding = "chains"
    arithmetic: ArithmeticName = "auto"
    backend: str = "native"

    def __post_init__(self) -> None:
        for name in ("c_outside", "alpha", "tau1", "tau2", "delta", "gap_tolerance", "kappa"):
            object.__setattr__(self, name, _finite(name, getattr(self, name)))
        for name in ("alpha", "tau1", "gap_tolerance"):
            if getattr(self, name) < 0:
                raise InputError(f"{name} must not be negative, but is {getattr(self, name)}.")
        for name in ("c_outside", "tau2"):
            # With bits a unit of cost is then at least one unit of the solver, in float32 too.
            if abs(getattr(self, name)) > _LARGEST:
                raise InputError(
                    f"{name} must be within ±{_LARGEST:g}, but is {getattr(self, name)}."
                )
        if self.tau2 < self.tau1:
            raise InputError(f"tau2 must be at least tau1, but {self.tau2} < {self.tau1}.")
        if self.delta < 2:
            raise InputError(f"delta must be at least 2, but is {self.delta}.")
        if not 0 <= self.kappa <= 1:
            raise InputError(f"kappa must be from 0 to 1, but is {self.kappa}.")
        for name in ("outer", "inner"):
            value = _whole(name, getattr(self, name))
            if value < 1:
                raise InputError(f"{name} must be at least 1, but is {value}.")
            object.__setattr__(self, name, value)
        for name, kind in (
            ("minorant", Minorant),
            ("rounding", Rounding),
            ("arithmetic", ArithmeticName),
        ):
            if getattr(self, name) not in get_args(kind):
                choices = ", ".join(repr(choice) for choice in get_args(kind))
                raise InputError(f"{name} must be one of {choices}, not {getattr(self, name)!r}.")

    @classmethod
    def paper(cls) -> Self:
        """Return the paper's parameters and schedule: 5×8, labels by argmin, no tolerance."""
        return cls(outer=5, inner=8, gap_tolerance=0.0, rounding="argmin")

    def updated(self, path: str | os.PathLike[str]) -> Self:
        """Return this with the parameters of a TOML file, which may be in a table ``[matcher]``.

        Raises
        ------
        FileError
            If the file cannot be read, is not TOML, or has something else in it.
        """
        config: Self = config_of_file(
            path, lambda tables: build(type(self), asdict(self) | tables.get("matcher", tables))
        )
        return config


def _finite(name: str, value: object) -> float:
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise InputError(f"{name} must be a number, not {value!r}.") from None
    if not math.isfinite(number):
        raise InputError(f"{name} must be finite, not {number}.")
    return number


def _whole(name: str, value: object) -> int:
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise InputError(f"{name} must be a whole number, not {value!r}.") from None

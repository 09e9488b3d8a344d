"""Where the solver computes: all its operations in one object, which can be replaced.

The dual solver, the messages and the moves (`dual`, `data`, `rounding`) hold volumes that a backend
made and hand them back to it; they never compute with them themselves.
"""

from __future__ import annotations

from pkgutil import resolve_name
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

import hamflow._runtime  # noqa: F401  (reads HAMFLOW_ISA and HAMFLOW_NUM_THREADS)
from hamflow import _native
from hamflow._room import empty, zeros
from hamflow._types import Costs, Field, Labels, Volume
from hamflow.errors import InputError
from hamflow.window import Window

Plane = Literal["u", "v"]
Blocks = Literal["rows", "columns", "pixels"]
Fields = tuple[NDArray[Any], NDArray[Any]]
"""The descriptors of both images: bits (H, W) or (H, W, 2) uint64, or floats (H, W, m) float32."""


class LabelCosts(Protocol):
    """Costs of the labels of one plane besides those of the descriptors, in whole units of cost.

    Attributes
    ----------
    shape : (int, int, int)
        Rows, columns, labels.
    """

    @property
    def shape(self) -> tuple[int, int, int]:
        """Rows, columns, labels."""

    def rows(self, first: int, last: int) -> NDArray[np.uint8]:
        """Return the costs of the rows from `first` to before `last`."""

    def turned(self) -> LabelCosts:
        """Return the same with rows and columns exchanged."""


Unary = tuple[LabelCosts, LabelCosts, float]
"""Costs of the labels of a message's sender and receiver, and the solver's units in each."""


class Backend:
    """The operations of the solver, by the compiled kernels of this machine's CPU.

    Another backend is a subclass that replaces some of them or all. Volumes are then of its own
    kind: `empty` and `zeros` make them, `to_numpy` brings them back. All other arrays are numpy's.
    Every operation is exact, as `hamflow.crf.arithmetic` explains, so backends agree to the bit.
    """

    def empty(self, shape: tuple[int, int, int], dtype: type[Any]) -> Volume:
        """Return a volume of undefined content."""
        return empty(shape, dtype)

    def zeros(self, shape: tuple[int, int, int], dtype: type[Any]) -> Volume:
        """Return a volume of zeros."""
        return zeros(shape, dtype)

    def copy_from(self, volume: Volume, values: NDArray[Any]) -> None:
        """Set a volume to the values of an array."""
        volume[:] = values

    def to_numpy(self, volume: Volume) -> NDArray[Any]:
        """Return a volume as an array."""
        return volume

    def message(
        self,
        fields: Fields,
        window: Window,
        cost: Any,
        *,
        to: Plane,
        lam: Volume,
        out: Volume,
        margin: float = 0.0,
        unary: Unary | None = None,
    ) -> None:
        """Write ``min [c - lam]`` over the sender's labels to `out` (eq. 8 of the paper).

        `cost` is (step, base, outside) for bits and the cost outside of the image for floats. With
        a `margin`, the message is rounded down to whole units and gets less by so many. The costs
        `unary` are added to c.
        """
        if unary is not None:
            _add(lam, unary[0], -unary[2])
        send_message(fields, window, cost, to=to, lam=lam, out=out, margin=margin)
        if unary is not None:
            # In place, and exactly undone: a copy of lam would be one more volume.
            _add(lam, unary[0], unary[2])
            _add(out, unary[1], unary[2])

    def chain_pass(
        self,
        lam: Volume,
        hold: Volume,
        slack: Volume | None,
        edges: NDArray[Any],
        shares: NDArray[Any] | None,
        *,
        vertical: bool,
        reverse: bool,
        reach: int,
        fresh: bool,
    ) -> float:
        """Run one pass of the dual solver over all rows or columns; return the bound in units.

        With `fresh`, nothing is held yet, and `hold` may have any content.
        """
        run: Any = _native.chain_pass
        return float(run(lam, hold, slack, edges, shares, vertical, reverse, reach, fresh))

    def best_labels(self, slack: Volume, first: int) -> Labels:
        """Return the labels of least slack; ties go to the smallest displacement."""
        labels = np.empty(slack.shape[:2], np.int16)
        _native.best_labels(slack, first, labels)
        return labels

    def margins(self, slack: Volume, labels: Labels) -> Field:
        """Return by how much labels that are more than one away from given ones have more slack.

        That of the best of them; infinite where there is no such label.
        """
        margins = np.empty(labels.shape, np.float32)
        _native.label_margins(slack, labels, margins)
        return margins

    def costs(self, fields: Fields, window: Window, outside: float, u: Labels, v: Labels) -> Costs:
        """Return the unrounded data costs of a labeling: `outside` where it leaves the image."""
        costs = empty(u.shape, np.float64)
        _native.label_costs(*fields, window.as_tuple(), u, v, outside, costs)
        return costs

    def relabel(
        self,
        fields: Fields,
        window: Window,
        cost: Any,
        *,
        edges: tuple[NDArray[Any], NDArray[Any], int],
        blocks: Blocks,
        v: Labels,
        u: Labels,
        unary: NDArray[np.uint8] | None = None,
        unit: float = 0,
    ) -> None:
        """Give every other row, column or pixel of the plane u its best labels, then the others.

        `unary` has costs of the labels u besides those of the descriptors, `unit` says how many
        units of the solver each of them is.
        """
        floats = fields[0].dtype == np.float32
        move: Any = _native.relabel_phi if floats else _native.relabel
        number: Any = int if edges[0].dtype == np.int16 else float
        move(*fields, window.as_tuple(), cost, *edges, blocks, v, u, unary, number(unit))

    def energy(
        self,
        weights: tuple[NDArray[np.float32], NDArray[np.float32]],
        rho: Costs,
        labeling: tuple[Labels, Labels, Costs],
    ) -> float:
        """Return the unrounded energy (eq. 3) of labels u, v and their data costs."""
        u, v, data = labeling
        return _native.label_energy(*weights, rho, u, v, data)

    def fuse(
        self,
        weights: tuple[NDArray[np.float32], NDArray[np.float32]],
        rho: Costs,
        blocks: Blocks,
        labeling: tuple[Labels, Labels, Costs],
        other: tuple[Labels, Labels, Costs],
    ) -> None:
        """Take over from `other`, along each row or column, what lowers the energy."""
        u, v, data = labeling
        _native.fuse(*weights, rho, blocks, u, v, data, other[0], other[1], other[2])


def send_message(
    fields: Fields,
    window: Window,
    cost: Any,
    *,
    to: Plane,
    lam: Volume,
    out: Volume,
    margin: float,
) -> None:
    """Write a message without the costs of labels; the second field may have another height."""
    if fields[0].dtype == np.float32:
        send: Any = _native.float_message
    else:
        send = _native.message16 if out.dtype == np.int16 else _native.message32
    send(*fields, window.as_tuple(), to, cost, lam, out)
    if margin:
        np.floor(out, out=out)
        out -= np.float32(margin)


def _add(volume: Volume, costs: LabelCosts, factor: float) -> None:
    add_costs(volume, costs.rows(0, volume.shape[0]), factor)


def add_costs(volume: Volume, costs: NDArray[np.uint8], factor: float) -> None:
    """Add a multiple of costs to a volume, in place."""
    unit: Any = int if volume.dtype == np.int16 else float
    _native.add_scaled(volume, costs, unit(factor))


NATIVE = Backend()

BACKENDS: dict[str, str] = {
    "native": "hamflow.crf.backend:Backend",
    "streamed": "hamflow.crf.streamed:StreamedBackend",
}
"""What `CrfConfig.backend` can name: a module and a class that is made without arguments."""


def load_backend(name: str) -> Backend:
    """Return the backend of a name.

    Raises
    ------
    InputError
        If there is none of that name.
    """
    if name not in BACKENDS:
        raise InputError(f"backend must be one of {', '.join(BACKENDS)}, not {name!r}.")
    backend: Backend = resolve_name(BACKENDS[name])()
    return backend

"""The search window W of discrete displacements."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import SupportsIndex, TypeAlias

from hamflow.errors import InputError

# The compiled kernels store labels as int16, and the number of a vector of labels in a byte.
MAX_LABELS = 4096
MAX_DISPLACEMENT = 1 << 24


@dataclass(frozen=True)
class Window:
    """All displacements with u in [u0, u0 + du) and v in [v0, v0 + dv).

    Label k of a component stands for the displacement k + u0 (or k + v0).

    Parameters
    ----------
    u0, du : int
        First horizontal displacement (to the right) and how many there are.
    v0, dv : int
        First vertical displacement (down) and how many there are; `dv` = 1 is stereo.

    Examples
    --------
    >>> Window.of(128)
    Window(u0=-64, du=128, v0=-64, dv=128)
    >>> Window(-100, 101, 0, 1).contains(-40, 0)
    True
    """

    u0: int
    du: int
    v0: int
    dv: int

    def __post_init__(self) -> None:
        for name in ("u0", "du", "v0", "dv"):
            try:
                value = operator.index(getattr(self, name))
            except TypeError:
                raise InputError(
                    f"The window's {name} must be a whole number, not {getattr(self, name)!r}."
                ) from None
            object.__setattr__(self, name, value)
        for first, count in (("u0", "du"), ("v0", "dv")):
            if not 1 <= getattr(self, count) <= MAX_DISPLACEMENT:
                raise InputError(
                    f"The window's {count} must be from 1 to {MAX_DISPLACEMENT}, "
                    f"not {getattr(self, count)}."
                )
            if abs(getattr(self, first)) > MAX_DISPLACEMENT:
                raise InputError(
                    f"The window's {first} must be within ±{MAX_DISPLACEMENT}, "
                    f"not {getattr(self, first)}."
                )

    @classmethod
    def square(cls, d: SupportsIndex) -> Window:
        """Return the paper's window: u and v in -D/2 .. D/2 - 1, for an even D."""
        try:
            side = operator.index(d)
        except TypeError:
            raise InputError(
                "A window must be a whole number D, a tuple (u0, du, v0, dv) or a hamflow.Window, "
                f"not {d!r}."
            ) from None
        if side % 2 or side < 2:
            raise InputError(
                f"A square window needs an even number of displacements, at least 2, not {d}; "
                "give all four of u0, du, v0, dv for others."
            )
        return cls(-side // 2, side, -side // 2, side)

    @classmethod
    def of(cls, window: WindowLike) -> Window:
        """Return a window from a window, the paper's D, or (u0, du, v0, dv)."""
        if isinstance(window, Window):
            return window
        if isinstance(window, tuple):
            if len(window) != 4:
                raise InputError(
                    f"A window is (u0, du, v0, dv), four numbers, but {len(window)} were given."
                )
            return cls(*window)
        return cls.square(window)

    def contains(self, u: int, v: int) -> bool:
        """Whether the displacement (u, v) is one of the window's."""
        return self.u0 <= u < self.u0 + self.du and self.v0 <= v < self.v0 + self.dv

    def as_tuple(self) -> tuple[int, int, int, int]:
        """Return (u0, du, v0, dv)."""
        return self.u0, self.du, self.v0, self.dv

    def opposite(self) -> Window:
        """Return the window of the opposite displacements, that of the backward flow.

        >>> Window(0, 10, -1, 3).opposite()
        Window(u0=-9, du=10, v0=-1, dv=3)
        """
        return Window(1 - self.u0 - self.du, self.du, 1 - self.v0 - self.dv, self.dv)

    def reduced(self, scale: int) -> Window:
        """Return the window in pixels of an image reduced by `scale`, rounded outward.

        >>> Window(-5, 10, 0, 1).reduced(4)
        Window(u0=-2, du=4, v0=0, dv=1)
        """
        sides = []
        for first, count in ((self.u0, self.du), (self.v0, self.dv)):
            low, high = first // scale, -(-(first + count - 1) // scale)
            sides += [low, high - low + 1]
        return Window(*sides)

    def enlarged(self, scale: int) -> Window:
        """Return the window in pixels of the full image, from those of one reduced by `scale`.

        >>> Window(-2, 4, 0, 1).enlarged(4)
        Window(u0=-8, du=13, v0=0, dv=1)
        """
        u, v = ((count - 1) * scale + 1 for count in (self.du, self.dv))
        return Window(self.u0 * scale, u, self.v0 * scale, v)


WindowLike: TypeAlias = Window | SupportsIndex | tuple[int, int, int, int]


def kernel_window(window: WindowLike) -> Window:
    """Return a window that the kernels can search: at most `MAX_LABELS` labels per component.

    Raises
    ------
    InputError
        If it has more.
    """
    checked = Window.of(window)
    for name, count in (("du", checked.du), ("dv", checked.dv)):
        if count > MAX_LABELS:
            raise InputError(
                f"The window's {name} is {count}, but at most {MAX_LABELS} displacements of each "
                "component can be searched; use a smaller window or a coarser scale."
            )
    return checked

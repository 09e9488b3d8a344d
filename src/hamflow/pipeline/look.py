"""A look at where the motion is: a narrower window for the search at the coarsest scale.

Most of a large window is empty. Winner takes all finds the best displacement of a quarter of the
pixels in it; displacements that many of them have in common are motions, others are chance.
"""

from __future__ import annotations

import numpy as np

from hamflow._types import Bits, Flow
from hamflow.matching import min_projection
from hamflow.matching._arrays import words_of
from hamflow.window import Window

_STEP = 2  # every other pixel in each direction is looked at
_SMALLEST = 2000  # pixels; in smaller images there is little to save, and too little to see
# Displacements within so many pixels count as one motion, if at least so many pixels, and so large
# a share of all, have them; and by how much the window is wider than the motions.
_SQUARE = 6
_FEWEST, _SHARE = 8, 0.002
_MARGIN = 6


def narrowed(bits: tuple[Bits, Bits], windows: tuple[Window, ...]) -> tuple[Window, ...]:
    """Return the part of the windows that has motions in it.

    Parameters
    ----------
    bits : (Bits, Bits)
        Of both frames.
    windows : tuple of Window
        Forward, and backward if both directions are to be searched: the opposite of it.
    """
    if bits[0].shape[0] * bits[0].shape[1] < _SMALLEST:
        return windows
    forward = _winners(*bits, windows[0])
    if len(windows) == 1:
        return (_motions(forward.reshape(-1, 2), windows[0]),)
    backward = _winners(bits[1], bits[0], windows[1])
    flows = np.concatenate([_confirmed(forward, backward), -_confirmed(backward, forward)])
    box = _motions(flows, windows[0])
    return box, box.opposite()


def _confirmed(flow: Flow, back: Flow) -> Flow:
    """Return those displacements that lead to a pixel which leads back, N×2."""
    height, width = flow.shape[:2]
    y, x = np.indices((height, width))
    target = np.rint(flow / _STEP).astype(int)
    column = np.clip(x + target[..., 0], 0, width - 1)
    row = np.clip(y + target[..., 1], 0, height - 1)
    found: Flow = flow[(np.abs(flow + back[row, column]) <= _STEP).all(axis=2)]
    return found


def _winners(bits0: Bits, bits1: Bits, window: Window) -> Flow:
    """Return the best displacements of every other pixel in each direction."""
    height, width = (side // _STEP for side in bits0.shape[:2])
    first = np.ascontiguousarray(bits0[::_STEP, ::_STEP][:height, :width])
    low = window.u0 // _STEP, window.v0 // _STEP
    high = (window.u0 + window.du - 1) // _STEP, (window.v0 + window.dv - 1) // _STEP
    reduced = Window(low[0], high[0] - low[0] + 1, low[1], high[1] - low[1] + 1)
    worst = 64 * words_of(bits0)
    least = np.full((height, width), worst + 1)
    flow = np.zeros((height, width, 2), np.float32)
    # The pixels of the other frame in as many parts, all displacements in one of them.
    for y, x in np.ndindex(_STEP, _STEP):
        part = np.ascontiguousarray(bits1[y::_STEP, x::_STEP][:height, :width])
        found = min_projection(first, part, reduced, outside=worst)
        distance = found.cv.min(axis=2)
        better = distance < least
        np.copyto(least, distance, where=better)
        moved = _STEP * found.wta() + np.array([x, y], np.float32)
        np.copyto(flow, moved, where=better[..., None])
    return flow


def _motions(flows: Flow, window: Window) -> Window:
    """Return the smallest window around what enough of the displacements have in common."""
    bins = [
        np.arange(first, first + count + 1, _SQUARE // 3)
        for first, count in ((window.u0, window.du), (window.v0, window.dv))
    ]
    bins = [np.append(b, b[-1] + _SQUARE // 3) for b in bins]
    count = np.pad(np.histogram2d(flows[:, 0], flows[:, 1], bins)[0], 1)
    count = count[:-2] + count[1:-1] + count[2:]
    count = count[:, :-2] + count[:, 1:-1] + count[:, 2:]
    many = count >= max(_FEWEST, _SHARE * len(flows))
    if not many.any():
        return window
    sides = []
    for axis, (first, size) in enumerate(((window.u0, window.du), (window.v0, window.dv))):
        used = np.flatnonzero(many.any(axis=1 - axis))
        low = max(first, int(bins[axis][used[0]]) - _MARGIN)
        high = min(first + size - 1, int(bins[axis][used[-1] + 1]) + _MARGIN)
        sides += [low, high - low + 1]
    return Window(*sides)

"""What a run will need, before it starts: memory, scales, and whether it goes tile by tile."""

from __future__ import annotations

import math
import os
from dataclasses import asdict, dataclass, replace
from typing import Any

from hamflow._memory import parse_memory, show_memory
from hamflow.config import EstimatorConfig, preset_config
from hamflow.errors import InputError
from hamflow.pipeline.box import cover
from hamflow.pipeline.needs import KEPT, TILES_KEEP, Needs, needs
from hamflow.pipeline.scales import memory_for, plan_scales, reduced_shape
from hamflow.pipeline.tiled_matching import SMALLEST_MATCHED
from hamflow.pipeline.tiles import CONTEXT, Tiling
from hamflow.window import Window, WindowLike

# The smallest tile, and room for some motion, in pixels of each side.
_SMALLEST_TILE, _MOTION = 128, 64
# Tiles with more pixels are hardly less work in all.
_LARGEST_TILE = 2**23
# Tiles are chosen as if they took so much more than they are expected to take.
_SAFETY = 1.25


@dataclass(frozen=True)
class Plan:
    """What a run needs, and which way it goes; `hamflow.plan` makes it.

    Attributes
    ----------
    width, height : int
        Of the images.
    scales : tuple of int
        By which the images are reduced for the search, the coarsest first; the last one is the
        matching scale.
    window : Window or None
        The displacements that are searched, in pixels of the images. None if the estimator finds
        them.
    files : bool
        Whether the images are read from files, and the result is written to files, part by part.
    mapped : bool
        Whether the result, which would not fit into memory, is in temporary files that are mapped.
    max_memory : int or None
        Bytes that the run may take.
    smallest : int
        The smallest `max_memory` that is enough.
    peak : int
        Bytes that the run will take, with everything that the process needs. If the estimator
        finds the window: with one that is expected.
    at_least, at_most : int
        The same for the smallest and the largest window that it may find.
    stages : dict of str to int
        The peak of each stage, in bytes.
    whole : bool
        Whether every stage gets the whole images.
    tiles : int
        How many tiles the images are computed in at the full size.
    tile_pixels : int
        Pixels of a tile with its surroundings, at most.
    matched_labels : int
        Labels of both components of all pixels that are matched at once, at most.
    memory : float
        What the setting of this name may be, so that every window that the estimator finds fits.
    completed_pixels : int
        Pixels of the matching scale that are completed at once, at most.
    """

    width: int
    height: int
    scales: tuple[int, ...]
    window: Window | None
    files: bool
    mapped: bool
    max_memory: int | None
    smallest: int
    peak: int
    at_least: int
    at_most: int
    stages: dict[str, int]
    whole: bool
    tiles: int
    tile_pixels: int
    matched_labels: int
    memory: float
    completed_pixels: int

    def limited(self, config: EstimatorConfig) -> EstimatorConfig:
        """Return the settings with which every window that is found fits."""
        return replace(config, memory=min(config.memory, self.memory))

    @property
    def tiling(self) -> Tiling:
        """How large tiles are."""
        return Tiling(self.tile_pixels)

    def as_dict(self) -> dict[str, Any]:
        """Return everything, ready for JSON."""
        window = "auto" if self.window is None else list(self.window.as_tuple())
        return {**asdict(self), "scales": list(self.scales), "window": window}

    @property
    def _remedy(self) -> str:
        if self.stages["matching"] >= self.smallest:
            return "use a smaller window or a coarser scale"
        if not self.files:
            return "have images and result in .npy or .tif files, of which parts are in memory"
        return "use smaller images"

    def check(self) -> None:
        """Raise an InputError if the run does not fit into `max_memory`."""
        if self.max_memory is not None and self.max_memory < self.smallest:
            raise InputError(
                f"max_memory is {show_memory(self.max_memory)}, but {self.width}×{self.height} "
                f"pixels with these settings need at least {show_memory(self.smallest)}; allow "
                f"that much, or {self._remedy}."
            )


def plan(
    width: int,
    height: int,
    preset: str | os.PathLike[str] | EstimatorConfig = "balanced",
    window: WindowLike | str = "auto",
    *,
    scale: int | None = None,
    max_memory: int | str | None = None,
    files: bool = False,
    expected: WindowLike | None = None,
) -> Plan:
    """Say what the estimate of two images will need, before it starts.

    Parameters
    ----------
    width, height : int
        Of the images.
    preset, window, scale
        As for `hamflow.Estimator`.
    max_memory : int or str, optional
        What the process may take: a number of bytes, or a text such as ``"4GB"``. If the whole
        images need more, they are computed tile by tile.
    files : bool
        Whether images and result are in files of which parts can be read and written, ``.npy`` or
        tiled ``.tif``; see `hamflow.estimate_files`.
    expected : Window, int or tuple, optional
        The displacements that the images have, if the estimator is to find the window; by default
        those of a sixteenth of the width and of the height, to either side.

    Returns
    -------
    Plan

    Examples
    --------
    >>> import hamflow
    >>> needed = hamflow.plan(3840, 2160, window=256, max_memory="1GB")
    >>> needed.peak <= 1e9, needed.scales, needed.tiles > 1
    (True, (8,), True)
    """
    config = preset_config(preset)
    if scale is not None:
        config = replace(config, scale=scale)
    for name, side in (("width", width), ("height", height)):
        if isinstance(side, bool) or not isinstance(side, int) or not 1 <= side < 2**31:
            raise InputError(f"{name} must be a whole number of pixels, not {side!r}.")
    limit = None if max_memory is None else parse_memory(max_memory)
    return plan_run(
        (height, width),
        config,
        given_window(window, config),
        limit,
        expected=None if expected is None else Window.of(expected),
        from_files=files,
        to_files=files,
    )


def given_window(window: WindowLike | str, config: EstimatorConfig) -> Window | None:
    """Return the window that a user gave, or the preset's; None if it is to be found."""
    if isinstance(window, str):
        if window != "auto":
            raise InputError(
                f"window must be 'auto', a number D, (u0, du, v0, dv) or a Window, not {window!r}."
            )
        return Window.of(config.square) if config.square else None
    return Window.of(window)


def plan_run(
    shape: tuple[int, int],
    config: EstimatorConfig,
    window: Window | None,
    max_memory: int | None,
    *,
    expected: Window | None = None,
    from_files: bool = False,
    to_files: bool = False,
) -> Plan:
    """Return the plan of a run; see `plan`, and `needs` for where images and result are."""
    scales = plan_scales(shape, config)
    places = {"from_files": from_files, "to_files": to_files}
    need = needs(shape, config, window, expected=expected, **places)
    pixels, matched = math.prod(shape), math.prod(reduced_shape(shape, scales[-1]))
    stages = _whole(need)
    margin = -(-CONTEXT // scales[-1]) * scales[-1]  # surroundings begin at pixels of all scales
    tile = min(pixels, (max(_SMALLEST_TILE, scales[-1]) + 2 * margin + _MOTION) ** 2)
    smallest = min(max(stages.values()), max(_tiled(need, _SAFETY * tile, 0, 0).values()))
    mapped = False
    if not to_files:
        # A result that does not fit can be in files that nobody sees.
        lean = needs(shape, config, window, expected=expected, from_files=from_files, to_files=True)
        least = max(_tiled(lean, _SAFETY * tile, 0, 0).values())
        if max_memory is not None and least <= max_memory < smallest:
            need, mapped = lean, True
        smallest = min(smallest, least)
    found = Plan(
        width=shape[1],
        height=shape[0],
        scales=tuple(scales if window is None else scales[-1:]),
        window=window,
        files=from_files and to_files,
        mapped=mapped,
        max_memory=max_memory,
        smallest=smallest,
        peak=max(stages.values()),
        at_least=max(_whole(replace(need, labels=0)).values()),
        at_most=max(_whole(replace(need, labels=need.most_labels)).values()),
        stages=stages,
        whole=True,
        tiles=1,
        tile_pixels=pixels,
        matched_labels=int(need.most_labels),
        memory=config.memory,
        completed_pixels=pixels,
    )
    if max_memory is None or max_memory < smallest:
        return found
    start = need.fixed + need.images
    labels, completed = (max_memory - start) / need.label, (max_memory - start) / need.completed
    memory = memory_for(matched * _widest_count(labels, matched))
    found = replace(found, memory=memory, matched_labels=int(labels))
    if found.peak <= max_memory:
        return replace(found, at_most=min(found.at_most, max_memory))
    room = max_memory - start - need.result
    # What is kept for reuse grows with a tile up to its limit.
    each = _SAFETY * need.tile
    tile = int(max(room / (each + need.tile_reused), (room - TILES_KEEP) / each))
    if need.assessed_tile:
        each, rest = _SAFETY * need.assessed_tile, room - need.assessed
        tile = min(tile, int(max(rest / (each + need.tile_reused), (rest - TILES_KEEP) / each)))
    tile = min(tile, _LARGEST_TILE)
    around = margin, margin
    boxes = list(cover(shape, tile, margin, scales[-1]))
    largest = max(box.grown(around, around, scales[-1], shape).pixels for box in boxes)
    stages = _tiled(need, largest, labels, completed)
    peak = max(stages.values())
    least = max(size for name, size in stages.items() if name != "matching")
    return replace(
        found,
        stages=stages,
        peak=peak,
        at_least=least if window is None else peak,
        at_most=max(least, min(int(start + need.most_labels * need.label), max_memory)),
        whole=False,
        tiles=len(boxes),
        tile_pixels=tile,
        completed_pixels=int(completed),
    )


def _widest_count(labels: float, matched: int) -> float:
    """Return how many labels a pixel may have if so many of all pixels are matched at once."""
    count = 1
    while (SMALLEST_MATCHED + (count + 1) / 2) ** 2 * (count + 1) <= labels:
        count += 1
    return max(count, labels / matched)  # the smallest part with its window, or the whole


def _whole(need: Needs) -> dict[str, int]:
    """Return the peaks of the stages if each gets the whole images."""
    start = need.fixed + need.images
    return {
        "descriptors": int(start + need.describing),
        "matching": int(start + need.matching),
        "completion": int(start + need.completing),
        "refinement": int(start + need.refining + min(KEPT, max(need.reused, need.matching))),
    }


def _tiled(need: Needs, tile: float, labels: float, completed: float) -> dict[str, int]:
    """Return the peaks of the stages with tiles, labels and completed pixels of this number."""
    start = need.fixed + need.images
    at_once = max(min(need.labels, labels), need.least_labels)
    completing = max(min(need.completing, completed * need.completed), need.least_completing)
    kept = min(TILES_KEEP, tile * need.tile_reused)
    return {
        "descriptors": int(start + need.describing),
        "matching": int(start + at_once * need.label),
        "completion": int(start + completing),
        "refinement": int(start + need.result + tile * need.tile + kept),
        "assessment": int(start + need.result + need.assessed + tile * need.assessed_tile + kept),
    }

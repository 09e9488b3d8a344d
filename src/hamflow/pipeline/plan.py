"""What a run will need, before it starts: memory, scales, and whether it goes tile by tile."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, replace
from typing import Any

from hamflow._memory import parse_memory, show_memory
from hamflow.config import EstimatorConfig, preset_config
from hamflow.errors import InputError
from hamflow.pipeline.box import cover
from hamflow.pipeline.needs import KEPT, Needs, needs
from hamflow.pipeline.scales import plan_scales
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
        them; then those of an eighth of the images are assumed.
    files : bool
        Whether images and flow stay in files, of which parts are in memory.
    max_memory : int or None
        Bytes that the run may take.
    smallest : int
        The smallest `max_memory` that is enough.
    peak : int
        Bytes that the run will take, with everything that the process needs.
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
    completed_pixels : int
        Pixels of the matching scale that are completed at once, at most.
    """

    width: int
    height: int
    scales: tuple[int, ...]
    window: Window | None
    files: bool
    max_memory: int | None
    smallest: int
    peak: int
    stages: dict[str, int]
    whole: bool
    tiles: int
    tile_pixels: int
    matched_labels: int
    completed_pixels: int

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
            return "have the flow alone written to a .npy or .tif file, part by part"
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
        Whether images and flow are in files of which parts can be read and written, ``.npy`` or
        tiled ``.tif``, and the flow alone is wanted; see `hamflow.Estimator.estimate_files`.

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
    return plan_run((height, width), config, given_window(window, config), limit, files=files)


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
    files: bool = False,
) -> Plan:
    """Return the plan of a run; see `plan`."""
    scales = plan_scales(shape, config)
    need = needs(shape, config, window, files=files)
    pixels = shape[0] * shape[1]
    stages = _whole(need)
    margin = -(-CONTEXT // scales[-1]) * scales[-1]  # surroundings begin at pixels of all scales
    tile = min(pixels, (max(_SMALLEST_TILE, scales[-1]) + 2 * margin + _MOTION) ** 2)
    smallest = min(max(stages.values()), max(_tiled(need, _SAFETY * tile, 0, 0).values()))
    found = Plan(
        width=shape[1],
        height=shape[0],
        scales=tuple(scales if window is None else scales[-1:]),
        window=window,
        files=files,
        max_memory=max_memory,
        smallest=smallest,
        peak=max(stages.values()),
        stages=stages,
        whole=True,
        tiles=1,
        tile_pixels=pixels,
        matched_labels=int(need.labels),
        completed_pixels=pixels,
    )
    if max_memory is None or max_memory < smallest or found.peak <= max_memory:
        return found
    start = need.fixed + need.images
    room = max_memory - start - need.result
    # What is kept for reuse grows with a tile up to its limit.
    each = _SAFETY * need.tile
    tile = int(max(room / (each + need.tile_reused), (room - KEPT) / each))
    if need.assessed_tile:
        each, rest = _SAFETY * need.assessed_tile, room - need.assessed
        tile = min(tile, int(max(rest / (each + need.tile_reused), (rest - KEPT) / each)))
    tile = min(tile, _LARGEST_TILE)
    labels, completed = (max_memory - start) / need.label, (max_memory - start) / need.completed
    around = margin, margin
    boxes = list(cover(shape, tile, margin, scales[-1]))
    largest = max(box.grown(around, around, scales[-1], shape).pixels for box in boxes)
    stages = _tiled(need, largest, labels, completed)
    return replace(
        found,
        stages=stages,
        peak=max(stages.values()),
        whole=False,
        tiles=len(boxes),
        tile_pixels=tile,
        matched_labels=int(labels),
        completed_pixels=int(completed),
    )


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
    kept = min(KEPT, tile * need.tile_reused)
    return {
        "descriptors": int(start + need.describing),
        "matching": int(start + at_once * need.label),
        "completion": int(start + completing),
        "refinement": int(start + need.result + tile * need.tile + kept),
        "assessment": int(start + need.result + need.assessed + tile * need.assessed_tile + kept),
    }

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
from hamflow.pipeline.needs import GIVEN, KEPT, TILES_KEEP, Needs, needs
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
        them.
    files : bool
        Whether the images are read from files, and the result is written to files, part by part.
    mapped : bool
        Whether the result, which would not fit into memory, is in temporary files that are mapped.
    max_memory : int or None
        Bytes that the run may take.
    smallest : int
        The smallest `max_memory` that is enough.
    decisive : str
        The stage that needs it.
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
        Labels of both components of all pixels that the matcher has in memory, at most; more are
        in temporary files.
    disk : int
        Bytes of these files; 0 if all labels fit into memory.
    """

    width: int
    height: int
    scales: tuple[int, ...]
    window: Window | None
    files: bool
    mapped: bool
    max_memory: int | None
    smallest: int
    decisive: str
    peak: int
    at_least: int
    at_most: int
    stages: dict[str, int]
    whole: bool
    tiles: int
    tile_pixels: int
    matched_labels: int
    disk: int

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
        early = self.decisive in ("descriptors", "matching", "completion")
        images = 0 if self.files else GIVEN * self.width * self.height
        if early and 2 * images < self.smallest:
            return "use a coarser scale"
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
    scales = plan_scales(shape, config, closer=window is None)
    places = {"from_files": from_files, "to_files": to_files}
    need = needs(shape, config, window, expected=expected, **places)
    pixels = math.prod(shape)
    stages = _whole(need)
    margin = -(-CONTEXT // scales[-1]) * scales[-1]  # surroundings begin at pixels of all scales
    tile = min(pixels, (max(_SMALLEST_TILE, scales[-1]) + 2 * margin + _MOTION) ** 2)
    worst = need.worst
    smallest, decisive = min(_largest(stages), _largest(_tiled(worst, _SAFETY * tile, 0)))
    mapped = False
    if not to_files:
        # A result that does not fit can be in files that nobody sees.
        lean = needs(shape, config, window, expected=expected, from_files=from_files, to_files=True)
        leanest = _largest(_tiled(lean.worst, _SAFETY * tile, 0))
        if max_memory is not None and leanest[0] <= max_memory < smallest:
            need, mapped = lean, True
        smallest, decisive = min((smallest, decisive), leanest)
    found = Plan(
        width=shape[1],
        height=shape[0],
        scales=tuple(scales if window is None else scales[-1:]),
        window=window,
        files=from_files and to_files,
        mapped=mapped,
        max_memory=max_memory,
        smallest=smallest,
        decisive=decisive,
        peak=max(stages.values()),
        at_least=max(_whole(replace(need, labels=0)).values()),
        at_most=max(_whole(replace(worst, labels=need.most_labels)).values()),
        stages=stages,
        whole=True,
        tiles=1,
        tile_pixels=pixels,
        matched_labels=int(need.most_labels),
        disk=0,
    )
    if max_memory is None or max_memory < smallest:
        return found
    start = need.fixed + need.images
    labels = (max_memory - start) / (_SAFETY * need.label)
    if found.peak <= max_memory:
        labels = max(labels, need.labels)
        at_most = min(found.at_most, max_memory)
        return replace(found, matched_labels=int(labels), at_most=at_most)
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
    stages = _tiled(need, largest, labels)
    peak = max(stages.values())
    least = max(size for name, size in stages.items() if name != "matching")
    most = int(start + need.most_completing)
    return replace(
        found,
        stages=stages,
        peak=peak,
        at_least=least if window is None else peak,
        at_most=max(least, most, min(int(start + need.most_labels * need.label), max_memory)),
        whole=False,
        tiles=len(boxes),
        tile_pixels=tile,
        matched_labels=int(labels),
        disk=int(need.labels * need.on_disk) if need.labels > labels else 0,
    )


def _largest(stages: dict[str, int]) -> tuple[int, str]:
    """Return the peak, and the stage that it is of."""
    return max((size, name) for name, size in stages.items())


def _whole(need: Needs) -> dict[str, int]:
    """Return the peaks of the stages if each gets the whole images."""
    start = need.fixed + need.images
    return {
        "descriptors": int(start + need.describing),
        "matching": int(start + need.matching + min(KEPT, need.searched)),
        "completion": int(start + need.completing + min(KEPT, need.matching)),
        "refinement": int(start + need.refining + min(KEPT, max(need.reused, need.matching))),
    }


def _tiled(need: Needs, tile: float, labels: float) -> dict[str, int]:
    """Return the peaks of the stages with tiles of so many pixels, and so many labels in memory.

    With none, any window that may be found has to fit.
    """
    start = need.fixed + need.images
    matching = need.matching
    if need.labels > labels:
        matching = need.streaming(need.labels if labels else need.most_labels)
    kept = min(TILES_KEEP, tile * need.tile_reused)
    return {
        "descriptors": int(start + need.describing),
        "matching": int(start + matching),
        "completion": int(start + need.completing),
        "refinement": int(start + need.result + tile * need.tile + kept),
        "assessment": int(start + need.result + need.assessed + tile * need.assessed_tile + kept),
    }

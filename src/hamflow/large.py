"""From files to files: the flow of images that do not fit into memory, nor does the flow."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from hamflow._progress import stage_progress
from hamflow._types import ImageLike, StageProgress
from hamflow.errors import FileError, InputError
from hamflow.estimator import Estimator
from hamflow.io import check_flow_path
from hamflow.io._atomic import atomic_write
from hamflow.pipeline.box import cover
from hamflow.pipeline.canvas import CANVAS_SUFFIXES, Canvas, MemoryCanvas, NpyCanvas, new_canvas
from hamflow.pipeline.clock import Clock
from hamflow.pipeline.frame import check_frames
from hamflow.pipeline.needs import IN_MEMORY
from hamflow.pipeline.route import Tiles

_STRIP = 2**22  # pixels that are set to zero at a time

Path_ = str | os.PathLike[str]


def written_in_parts(path: Path_) -> bool:
    """Return whether a flow file of this name can be written part by part."""
    return PurePath(path).suffix.lower() in CANVAS_SUFFIXES


def estimate_files(
    image0: ImageLike,
    image1: ImageLike,
    flow: Path_,
    *,
    backward: Path_ | None = None,
    estimator: Estimator | None = None,
    progress: StageProgress | bool | None = None,
) -> dict[str, Any]:
    """Estimate the flow between two images of any size, and write it tile by tile.

    Only parts of the images and of the flow are in memory. The flow is that of
    `hamflow.Estimator.estimate` with the same `max_memory`; occlusion and confidence are not
    computed. A file appears when it is complete.

    Parameters
    ----------
    image0, image1 : path, or array
        ``.npy`` and ``.tif`` files are read part by part (the latter with the extra ``tiff``),
        everything else as a whole.
    flow : path
        Where to write the flow: ``.npy``, or a tiled ``.tif`` with two channels of float32.
    backward : path, optional
        Where to write the flow from the second image to the first.
    estimator : Estimator, optional
        With `max_memory`; by default ``Estimator(max_memory="4GB")``.
    progress : bool or callable, optional
        As for `hamflow.estimate`.

    Returns
    -------
    dict
        What can be said in numbers, ready for JSON: sizes, scale, window, gap, seconds.

    Examples
    --------
    >>> import hamflow, numpy as np, os, tempfile
    >>> image = np.random.default_rng(0).integers(0, 256, (300, 400, 3), np.uint8)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     names = [os.path.join(folder, f"{k}.npy") for k in range(3)]
    ...     np.save(names[0], image)
    ...     np.save(names[1], np.roll(image, 4, axis=1))
    ...     estimator = hamflow.Estimator("fast", max_memory="200MB")
    ...     told = hamflow.estimate_files(*names, estimator=estimator)
    ...     np.load(names[2], mmap_mode="r")[150, 200].round()
    array([4., 0.], dtype=float32)
    """
    estimator = Estimator(max_memory="4GB") if estimator is None else estimator
    wanted = [flow] if backward is None else [flow, backward]
    for path in wanted:
        if not written_in_parts(path):
            raise FileError(
                f"{os.fspath(path)}: cannot be written part by part; name a .npy or .tif file."
            )
        check_flow_path(path)
    if backward is not None and not estimator.config.bidirectional:
        raise InputError("backward needs both directions, but the preset computes one.")
    frames = estimator.large_frame(image0, "image0"), estimator.large_frame(image1, "image1")
    check_frames(*frames)
    shape = frames[0].shape
    plan = estimator.plan(shape, files=True)
    with stage_progress(progress) as told, ExitStack() as stack:
        clock = Clock(told)
        makers = [stack.enter_context(_Canvases.at(path, shape)) for path in wanted]
        route = Tiles(plan)
        matches = estimator.matches(frames, route, clock)
        found = None
        for k, canvases in enumerate(makers):
            with clock.stage("refinement", 0.4 + 0.3 * k):
                if matches.cut:
                    canvases.clear()
                    continue
                pair = frames if k == 0 else (frames[1], frames[0])
                route = Tiles(plan, canvases)
                found = route.refined(estimator.config.refinement, pair, matches, found)
        stack.close()  # the files get their names
        clock.finish()
    certificate = matches.directions[0].certificate
    return {
        "width": shape[1],
        "height": shape[0],
        "scale": matches.scale,
        "cut": matches.cut,
        "window": list(certificate.window.enlarged(matches.scale).as_tuple()),
        "energy": certificate.energy,
        "bound": certificate.bound,
        "gap": certificate.gap,
        "tiles": plan.tiles,
        "seconds": {name: round(value, 4) for name, value in clock.seconds.items()},
    }


class _Canvases:
    """The fields of one flow: that of the full size is the file, those on the way are temporary."""

    def __init__(self, path: Path_, temporary: Path, shape: tuple[int, int]) -> None:
        self._kind, self._temporary, self._shape = path, temporary, shape
        self._on_the_way: list[Path] = []

    @classmethod
    @contextmanager
    def at(cls, path: Path_, shape: tuple[int, int]) -> Iterator[_Canvases]:
        """Give what makes the fields; the file gets its name when the block ends well."""
        with atomic_write(path) as file:
            canvases = cls(path, Path(file.name), shape)
            try:
                yield canvases
            finally:
                canvases._remove()

    def __call__(self, shape: tuple[int, ...], dtype: type[np.generic]) -> Canvas:
        """Return a new field."""
        if shape[:2] == self._shape:
            return new_canvas(shape, dtype, self._temporary, self._kind)
        if np.prod(shape) * np.dtype(dtype).itemsize <= IN_MEMORY:
            return MemoryCanvas(shape, dtype)
        place = self._temporary.with_name(f".hamflow-{secrets.token_hex(8)}.tmp")
        self._on_the_way.append(place)
        return NpyCanvas(shape, dtype, place)

    def clear(self) -> None:
        """Write a flow of zeros."""
        canvas = self((*self._shape, 2), np.float32)
        for box in cover(self._shape, _STRIP, 0, 1):
            canvas.write(box, np.zeros((box.height, box.width, 2), np.float32))

    def _remove(self) -> None:
        for place in self._on_the_way:
            with suppress(OSError):
                os.unlink(place)

"""From files to files: the flow of images that do not fit into memory, nor does the flow."""

from __future__ import annotations

import os
from pathlib import PurePath
from typing import Any

from hamflow._progress import stage_progress
from hamflow._types import ImageLike, StageProgress
from hamflow.errors import FileError, InputError
from hamflow.estimation import FIELDS, estimated
from hamflow.estimator import Estimator
from hamflow.io._atomic import check_writable
from hamflow.io.tiff import require_tifffile
from hamflow.pipeline.canvas import FLOW_SUFFIXES, MASK_SUFFIXES, FileCanvases
from hamflow.pipeline.clock import Clock
from hamflow.pipeline.frame import check_frames
from hamflow.pipeline.route import Tiles

Path_ = str | os.PathLike[str]


def written_in_parts(name: str, path: Path_) -> bool:
    """Return whether a field of the result can be written to this file part by part."""
    flow = name in ("flow", "backward")
    known = FLOW_SUFFIXES if flow else MASK_SUFFIXES
    return name in FIELDS and PurePath(path).suffix.lower() in known


def estimate_files(
    image0: ImageLike,
    image1: ImageLike,
    flow: Path_,
    *,
    backward: Path_ | None = None,
    occlusion: Path_ | None = None,
    confidence: Path_ | None = None,
    estimator: Estimator | None = None,
    progress: StageProgress | bool | None = None,
) -> dict[str, Any]:
    """Estimate the flow between two images of any size, and write the result tile by tile.

    Only parts of the images and of the result are in memory. The result is that of
    `hamflow.Estimator.estimate` with the same `max_memory`; only what is written is computed. The
    files appear when all of them are complete.

    Parameters
    ----------
    image0, image1 : path, or array
        ``.npy`` and ``.tif`` files are read part by part (the latter with the extra ``tiff``),
        everything else as a whole.
    flow : path
        Where to write the flow: ``.npy``, ``.flo``, or a tiled ``.tif`` with two channels of
        float32.
    backward : path, optional
        Where to write the flow from the second image to the first.
    occlusion, confidence : path, optional
        Where to write what is occluded, and the confidence: ``.npy`` of bool or float32, or a tiled
        ``.tif`` of 8 bits, as `hamflow.write_image` does.
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
    named = {"flow": flow, "backward": backward, "occlusion": occlusion, "confidence": confidence}
    wanted = {name: path for name, path in named.items() if path is not None}
    _check(wanted, estimator)
    frames = estimator.large_frame(image0, "image0"), estimator.large_frame(image1, "image1")
    check_frames(*frames)
    height, width = shape = frames[0].shape
    in_files = all(frame.source.in_file for frame in frames)
    plan = estimator.plan(shape, from_files=in_files, to_files=True)
    folder = os.path.dirname(os.path.realpath(flow))
    with stage_progress(progress) as told, FileCanvases(wanted, folder) as canvases:
        clock = Clock(told)
        result, _ = estimated(
            frames,
            estimator.config,
            estimator.window,
            Tiles(plan, canvases),
            clock,
            wanted=wanted,
        )
        canvases.close()
        clock.finish()
    return {"width": width, "height": height, "tiles": plan.tiles, **result.certificate()}


def _check(wanted: dict[str, Path_], estimator: Estimator) -> None:
    """Raise an error if a file cannot be written part by part, or takes what is not computed."""
    for name, path in wanted.items():
        if not written_in_parts(name, path):
            kinds = ".npy, .tif or .flo" if name in ("flow", "backward") else ".npy or .tif"
            raise FileError(
                f"{os.fspath(path)}: cannot be written part by part; name a {kinds} file."
            )
        check_writable(path)
        if PurePath(path).suffix.lower().startswith(".tif"):
            require_tifffile(path)
        if name != "flow" and not estimator.config.bidirectional:
            raise InputError(f"{name} needs both directions, but the preset computes one.")

"""From two images to a flow one can use: what everybody calls."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from tempfile import gettempdir
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike

from hamflow._log import logger
from hamflow._memory import parse_memory
from hamflow._progress import stage_progress
from hamflow._types import Flow, ImageLike, StageProgress
from hamflow.config import EstimatorConfig, preset_config
from hamflow.descriptors import Descriptor, load_model
from hamflow.descriptors.architecture import CELL
from hamflow.errors import InputError
from hamflow.estimation import estimated
from hamflow.io.sources import open_source
from hamflow.pipeline.canvas import FileCanvases
from hamflow.pipeline.clock import Clock
from hamflow.pipeline.explain import Explanation
from hamflow.pipeline.frame import Frame, LargeFrame, check_described, check_frames
from hamflow.pipeline.matches import Matches, check_previous
from hamflow.pipeline.plan import Plan, given_window, plan_run
from hamflow.pipeline.recording import RecordedMatcher, Recording
from hamflow.pipeline.route import Route, Tiles, WholeImages
from hamflow.regions import Regions
from hamflow.result import FlowResult, PointFlow
from hamflow.window import WindowLike

Auto = Literal["auto"]


class Estimator:
    """Estimates the flow of many pairs with one model and one set of settings.

    Parameters
    ----------
    preset : str, path or EstimatorConfig
        ``"realtime"``, ``"fast"``, ``"balanced"``, ``"fine"``, ``"paper"``, a TOML file that
        changes one of them, or the settings themselves.
    window : "auto", Window, int or tuple
        Displacements to search, in pixels of the images: found at a coarse scale, or given as the
        paper's D or (u0, du, v0, dv). The preset "paper" takes D = 128 for "auto".
    scale : int, optional
        Match in images reduced by this power of two, instead of what the preset says.
    model : str, optional
        Another descriptor than the preset's; see `hamflow.load_model`.
    max_memory : int or str, optional
        What the process may take, in bytes or as a text such as ``"4GB"``. Images that need more
        are computed tile by tile; if that does not fit either, an InputError says how much would
        be enough. See `hamflow.plan`.

    Examples
    --------
    >>> import numpy as np, hamflow
    >>> first = np.random.default_rng(0).integers(0, 256, (60, 80, 3), np.uint8)
    >>> second = np.roll(first, (2, 9), axis=(0, 1))
    >>> result = hamflow.Estimator("fast").estimate(first, second)
    >>> np.abs(np.round(result.flow[30, 40], 1))
    array([9., 2.], dtype=float32)
    """

    def __init__(
        self,
        preset: str | os.PathLike[str] | EstimatorConfig = "balanced",
        *,
        window: WindowLike | Auto = "auto",
        scale: int | None = None,
        model: str | None = None,
        max_memory: int | str | None = None,
    ) -> None:
        config = preset_config(preset)
        if scale is not None:
            config = replace(config, scale=scale)
        if model is not None:
            config = replace(config, model=model)
        self.config = config
        self.window = given_window(window, config)
        self.max_memory = None if max_memory is None else parse_memory(max_memory)
        self._descriptor = _descriptor("model", config.model, 1)
        self._coarse = None
        if config.coarse_model and self.window is None:
            self._coarse = _descriptor("coarse_model", config.coarse_model, CELL)

    @property
    def fingerprints(self) -> dict[str, str]:
        """The descriptors, by the settings that name them, with a hash of their weights."""
        found = {"model": self._descriptor.fingerprint}
        return found | ({"coarse_model": self._coarse.fingerprint} if self._coarse else {})

    @overload
    def estimate(
        self,
        image0: ImageLike,
        image1: ImageLike,
        *,
        region: Sequence[int] | None = ...,
        at: None = ...,
        progress: StageProgress | bool | None = ...,
    ) -> FlowResult: ...

    @overload
    def estimate(
        self,
        image0: ImageLike,
        image1: ImageLike,
        *,
        region: None = ...,
        at: ArrayLike,
        progress: StageProgress | bool | None = ...,
    ) -> PointFlow: ...

    def estimate(
        self,
        image0: ImageLike,
        image1: ImageLike,
        *,
        region: Sequence[int] | None = None,
        at: ArrayLike | None = None,
        progress: StageProgress | bool | None = None,
    ) -> FlowResult | PointFlow:
        """Estimate the flow from one image to another.

        Parameters
        ----------
        image0, image1 : array, PIL image or path
            As for `hamflow.estimate`.
        region : (int, int, int, int), optional
            x, y, width and height of a part of the first image: the flow of its pixels alone is
            estimated, from this part of the images and its surroundings.
        at : (N, 2) array_like, optional
            x and y of points in the first image: their flow alone is returned, estimated from
            regions around them.
        progress : bool or callable, optional
            As for `hamflow.estimate`.

        Returns
        -------
        FlowResult, or PointFlow with `at`
        """
        frames = self.frame(image0, "image0"), self.frame(image1, "image1")
        if region is None and at is None:
            return self.between(*frames, progress=progress)[0]
        check_frames(*frames)
        if region is not None:
            if at is not None:
                raise InputError("region and at cannot be given together.")
            return Regions(self, frames).of(region, progress)
        return Regions(self, frames).at(at, progress)

    def explained(
        self,
        image0: ImageLike,
        image1: ImageLike,
        *,
        progress: StageProgress | bool | None = None,
    ) -> tuple[FlowResult, Explanation]:
        """Estimate the flow, and keep what explains the match of each pixel.

        The result is the same as that of `estimate`. What is kept takes 2 bytes for each label of
        each pixel of the matching scale.

        Returns
        -------
        result : FlowResult
        explanation : Explanation
            Its method `pixel` returns the costs and slacks of all labels of a pixel.

        Examples
        --------
        >>> import numpy as np, hamflow
        >>> first = np.random.default_rng(0).integers(0, 256, (60, 80, 3), np.uint8)
        >>> second = np.roll(first, (2, 9), axis=(0, 1))
        >>> result, explanation = hamflow.Estimator("fast").explained(first, second)
        >>> u = explanation.pixel(40, 30).u
        >>> int(u.labels[u.wta]), int(u.labels[u.crf]), int(u.cost.argmin()) == u.wta
        (9, 9, True)
        """
        recording = Recording()
        result = self.recorded_by(recording).estimate(image0, image1, progress=progress)
        return result, recording.explanation(result.scale)

    def recorded_by(self, recording: Recording) -> Estimator:
        """Return an estimator that does the same, and keeps what explains the last pair.

        For a video: ``hamflow.video(source, estimator.recorded_by(recording))``, and with each
        item ``recording.explanation(item.result.scale)``.

        Raises
        ------
        InputError
            If `max_memory` is given.
        """
        if self.max_memory is not None:
            raise InputError(
                "max_memory and what explains a result exclude each other, because that takes "
                "memory for each label of each pixel; leave max_memory out."
            )
        directions = 2 if self.config.bidirectional else 1
        matcher = RecordedMatcher(self.config.matcher, directions, recording)
        recorded = copy(self)
        recorded.config = replace(self.config, matcher=matcher)
        return recorded

    def for_videos(self) -> Estimator:
        """Return an estimator without the closer look (`EstimatorConfig.closer_pixels`).

        Pairs of a video start from the one before, at the scale before the closer look, and all of
        them should have the same detail. `hamflow.video` does this.
        """
        plain = copy(self)
        plain.config = replace(self.config, closer_pixels=0)
        return plain

    def calc(self, I0: ArrayLike, I1: ArrayLike, flow: Any = None) -> Flow:  # noqa: N803
        """Return the flow alone, as OpenCV's ``DenseOpticalFlow.calc`` does.

        Colors are RGB: pass ``image[..., ::-1]`` of what OpenCV reads, which is BGR. An array
        `flow` is filled and returned; it is not used as a start.
        """
        frames = self.frame(I0, "I0"), self.frame(I1, "I1")
        if isinstance(flow, np.ndarray):
            shape = (*frames[0].shape, 2)
            if flow.shape != shape or flow.dtype.kind != "f":
                raise InputError(
                    f"flow must be of floating point and have the shape {shape}, but is "
                    f"{flow.dtype} and {flow.shape}."
                )
        result = self.between(*frames)[0].flow
        if isinstance(flow, np.ndarray):
            flow[...] = result
            return flow
        return result

    def frame(self, image: ImageLike, name: str = "image") -> Frame:
        """Prepare an image that is part of several pairs; see `between`."""
        if isinstance(image, Frame):
            raise InputError(f"{name} is a Frame already; pass frames to Estimator.between.")
        mapped = isinstance(image, str | os.PathLike) and str(image).lower().endswith(".npy")
        if self.max_memory is not None or mapped:
            large = self.large_frame(image, name)
            if not self.plan(large.shape).whole:
                return large
            image = large.source.read(slice(None), slice(None))
        return Frame(image, self._descriptor, name, self._coarse)

    def large_frame(self, image: ImageLike, name: str = "image") -> LargeFrame:
        """Prepare an image of which only parts are in memory at full size."""
        return LargeFrame(open_source(image, name), self._descriptor, self._coarse)

    def plan(
        self, shape: tuple[int, int], *, from_files: bool = False, to_files: bool = False
    ) -> Plan:
        """Return what a run with images of this height and width needs; see `plan_run`.

        Raises
        ------
        InputError
            If it does not fit into `max_memory`.
        """
        places = {"from_files": from_files, "to_files": to_files}
        plan = plan_run(shape, self.config, self.window, self.max_memory, **places)  # type: ignore[arg-type]
        plan.check()
        return plan

    def between(
        self,
        frame0: Frame,
        frame1: Frame,
        *,
        previous: Matches | None = None,
        progress: StageProgress | bool | None = None,
    ) -> tuple[FlowResult, Matches]:
        """Estimate the flow between two prepared frames.

        Parameters
        ----------
        frame0, frame1 : Frame
            Made by `frame`. What is computed from one of them alone is kept for the next pair.
            Those of an estimator with other descriptors are refused.
        previous : Matches, optional
            The second value returned for the pair before in a video: its window and labels take
            the place of the search at a coarse scale.
        progress : bool or callable, optional
            As for `hamflow.estimate`.

        Returns
        -------
        result : FlowResult
        matches : Matches
            For the next pair.
        """
        check_frames(frame0, frame1)
        check_described(frame0, frame1, self._descriptor, self._coarse)
        check_previous(previous)
        frames = frame0, frame1
        with stage_progress(progress) as told, self._route(frames) as route:
            clock = Clock(told)
            result, matches = estimated(
                frames, self.config, self.window, route, clock, previous=previous
            )
            clock.finish()
        _report(result, clock)
        return result, matches

    @contextmanager
    def _route(self, frames: tuple[Frame, Frame]) -> Iterator[Route]:
        """Give the way through the stages: whole images, or tile by tile."""
        large = isinstance(frames[0], LargeFrame)
        if self.max_memory is None and not large:
            yield WholeImages()
            return
        plan = self.plan(frames[0].shape)
        if not large:
            yield WholeImages(plan)
        elif not plan.mapped:
            yield Tiles(plan)
        else:
            with FileCanvases({}, gettempdir()) as canvases:
                yield Tiles(plan, canvases)


@overload
def estimate(
    image0: ImageLike,
    image1: ImageLike,
    preset: str | os.PathLike[str] | EstimatorConfig = ...,
    window: WindowLike | Auto = ...,
    *,
    region: Sequence[int] | None = ...,
    at: None = ...,
    scale: int | None = ...,
    model: str | None = ...,
    max_memory: int | str | None = ...,
    progress: StageProgress | bool | None = ...,
) -> FlowResult: ...


@overload
def estimate(
    image0: ImageLike,
    image1: ImageLike,
    preset: str | os.PathLike[str] | EstimatorConfig = ...,
    window: WindowLike | Auto = ...,
    *,
    region: None = ...,
    at: ArrayLike,
    scale: int | None = ...,
    model: str | None = ...,
    max_memory: int | str | None = ...,
    progress: StageProgress | bool | None = ...,
) -> PointFlow: ...


def estimate(
    image0: ImageLike,
    image1: ImageLike,
    preset: str | os.PathLike[str] | EstimatorConfig = "balanced",
    window: WindowLike | Auto = "auto",
    *,
    region: Sequence[int] | None = None,
    at: ArrayLike | None = None,
    scale: int | None = None,
    model: str | None = None,
    max_memory: int | str | None = None,
    progress: StageProgress | bool | None = None,
) -> FlowResult | PointFlow:
    """Estimate the flow from one image to another.

    Parameters
    ----------
    image0, image1 : array, PIL image or path
        Of one size; (H, W), (H, W, 1), (H, W, 3) or (H, W, 4); uint8, uint16, or floating point in
        0..1. Tensors on the CPU are arrays, too. Colors are RGB: pass ``image[..., ::-1]`` of what
        OpenCV reads, which is BGR.
    preset : str, path or EstimatorConfig
        ``"realtime"``, ``"fast"``, ``"balanced"``, ``"fine"``, ``"paper"``, a TOML file, or
        the settings.
    region, at
        A part of the first image, or points of it, to which the estimate is limited; see
        `Estimator.estimate`.
    window, scale, model, max_memory
        As for `Estimator`.
    progress : bool or callable, optional
        True shows a bar, on the terminal or in a notebook. A function is called with the name of
        the stage that begins and the share of the work that is done, which never falls; at the end
        with "done" and 1.

    Returns
    -------
    FlowResult, or PointFlow with `at`

    Raises
    ------
    InputError
        If an image or an argument is wrong; the message says what to do.
    FileError
        If a file cannot be read.

    Notes
    -----
    The logger ``"hamflow"`` gets a line for each pair at the level INFO, and for each stage at the
    level DEBUG; without ``logging.basicConfig(level=logging.INFO)`` or the like nothing is printed.

    Examples
    --------
    >>> import numpy as np, hamflow
    >>> image = np.random.default_rng(0).integers(0, 256, (48, 64), np.uint8)
    >>> hamflow.estimate(image, image, preset="fast").flow.any()
    np.False_
    """
    estimator = Estimator(preset, window=window, scale=scale, model=model, max_memory=max_memory)
    if at is None:
        return estimator.estimate(image0, image1, region=region, progress=progress)
    if region is not None:
        raise InputError("region and at cannot be given together.")
    return estimator.estimate(image0, image1, at=at, progress=progress)


def _descriptor(setting: str, name: str, cell: int) -> Descriptor:
    """Load a descriptor of single pixels, or of cells."""
    found = load_model(name)
    if getattr(found, "cell", 1) != cell:
        wanted = "single pixels" if cell == 1 else f"cells of {cell}×{cell} pixels"
        raise InputError(f"{setting} must be a descriptor of {wanted}; {name!r} is none.")
    return found


def _report(result: FlowResult, clock: Clock) -> None:
    height, width = result.flow.shape[:2]
    logger.info(
        "%d×%d pixels, window of %d×%d pixels, matched at scale 1/%d, gap %s, %.2f s%s",
        *(width, height, result.window.du, result.window.dv, result.scale),
        "unknown" if result.gap is None else f"{result.gap:.2%}",
        *(sum(clock.seconds.values()), ", a cut" if result.cut else ""),
    )

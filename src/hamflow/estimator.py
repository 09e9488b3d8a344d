"""From two images to a flow one can use: the whole route on one page."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hamflow._scale import enlarged_boxes, enlarged_smoothly
from hamflow._types import Flow, ImageLike, StageProgress
from hamflow.config import EstimatorConfig, preset_config
from hamflow.descriptors import load_model
from hamflow.errors import InputError
from hamflow.flow import warp
from hamflow.frame import Frame
from hamflow.refinement import confidence, disagreement, occluded, refine
from hamflow.result import FlowResult
from hamflow.search import Clock, Direction, Matched, match
from hamflow.window import Window, WindowLike

Auto = Literal["auto"]


class Estimator:
    """Estimates the flow of many pairs with one model and one set of settings.

    Parameters
    ----------
    preset : str, path or EstimatorConfig
        ``"fast"``, ``"balanced"``, ``"accurate"``, ``"paper"``, a TOML file that changes one of
        them, or the settings themselves.
    window : "auto", Window, int or tuple
        Displacements to look at, in pixels: found by a look at a coarse scale, or given as the
        paper's D or (u0, du, v0, dv). The preset "paper" takes D = 128 for "auto".
    scale : int, optional
        Match in images reduced by this power of two, instead of what the preset says.
    model : str, optional
        Another descriptor than the preset's; see `hamflow.load_model`.

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
    ) -> None:
        config = preset_config(preset)
        if scale is not None:
            config = replace(config, scale=scale)
        if model is not None:
            config = replace(config, model=model)
        self.config = config
        self.window = _given_window(window, config)
        self._model = load_model(config.model)

    def estimate(
        self, image0: ImageLike, image1: ImageLike, *, progress: StageProgress | None = None
    ) -> FlowResult:
        """Estimate the flow from one image to another.

        Parameters
        ----------
        image0, image1 : array, PIL image or path
            Of one size; gray, RGB (not BGR) or RGBA; uint8, uint16, or floating point in 0..1.
        progress : callable, optional
            Called with the name of a stage and the share of the work that is done.
        """
        frames = self.frame(image0, "image0"), self.frame(image1, "image1")
        return self.between(*frames, progress=progress)[0]

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
        return Frame(image, self._model, name)

    def between(
        self,
        frame0: Frame,
        frame1: Frame,
        *,
        previous: Matched | None = None,
        progress: StageProgress | None = None,
    ) -> tuple[FlowResult, Matched]:
        """Estimate the flow between two prepared frames.

        Parameters
        ----------
        frame0, frame1 : Frame
            Made by `frame`. What is computed from one alone is kept for the next pair.
        previous : Matched, optional
            The second value returned for the pair before in a video: it saves the coarse look.
        progress : callable, optional
            As for `estimate`.

        Returns
        -------
        result : FlowResult
        matched : Matched
            For the next pair.
        """
        if frame0.shape != frame1.shape:
            sizes = [f"{shape[1]}×{shape[0]}" for shape in (frame0.shape, frame1.shape)]
            raise InputError(
                f"The two images must have one size, but are {sizes[0]} and {sizes[1]} "
                "(width × height)."
            )
        clock = Clock(progress)
        frames = (frame0, frame1)
        matched = match(frames, self.config, self.window, clock, previous)
        flows = []
        for k, direction in enumerate(matched.directions):
            with clock.stage("refinement", 0.6 + 0.15 * k):
                pair = frames if k == 0 else (frame1, frame0)
                flows.append(_refined(direction, matched.factor, pair, self.config))
        hidden = certain = None
        if len(flows) == 2:
            with clock.stage("confidence", 0.95):
                hidden = occluded(flows[0], flows[1])
                certain = confidence(*evidence(flows, matched, frames, self.config))
        solution = matched.directions[0].solution
        result = FlowResult(
            flow=flows[0],
            backward=flows[1] if len(flows) == 2 else None,
            occlusion=hidden,
            confidence=certain,
            energy=solution.energy,
            bound=solution.bound,
            gap=solution.gap,
            window=solution.window,
            scale=matched.factor,
            timings=clock.seconds,
        )
        return result, matched


def estimate(
    image0: ImageLike,
    image1: ImageLike,
    preset: str | os.PathLike[str] | EstimatorConfig = "balanced",
    window: WindowLike | Auto = "auto",
    **options: Any,
) -> FlowResult:
    """Estimate the flow from one image to another.

    Parameters
    ----------
    image0, image1 : array, PIL image or path
        Of one size; gray, RGB (not OpenCV's BGR) or RGBA; uint8, uint16, or floating point in
        0..1.
    preset : str, path or EstimatorConfig
        ``"fast"``, ``"balanced"``, ``"accurate"``, ``"paper"``, or a TOML file.
    window : "auto", Window, int or tuple
        Displacements to look at.
    **options
        More of what `Estimator` takes: `scale`, `model`.

    Returns
    -------
    FlowResult

    Examples
    --------
    >>> import numpy as np, hamflow
    >>> image = np.random.default_rng(0).integers(0, 256, (48, 64), np.uint8)
    >>> hamflow.estimate(image, image, preset="fast").flow.any()
    np.False_
    """
    return Estimator(preset, window=window, **options).estimate(image0, image1)


def _given_window(window: WindowLike | Auto, config: EstimatorConfig) -> Window | None:
    if isinstance(window, str):
        if window != "auto":
            raise InputError(
                f"window must be 'auto', a number D, (u0, du, v0, dv) or a Window, not {window!r}."
            )
        return Window.of(config.square) if config.square else None
    return Window.of(window)


def _refined(
    direction: Direction, factor: int, frames: tuple[Frame, Frame], config: EstimatorConfig
) -> Flow:
    """Take one direction from the matching scale to the full size."""
    field = direction.filled if config.filling else direction.flow
    shape = frames[0].shape
    if not config.fractions:
        enlarge = enlarged_smoothly if config.filling else enlarged_boxes
        return enlarge(field, factor, shape) * np.float32(factor)
    blur = config.variational.blur
    matched_factor, trusted = factor, direction.trusted.astype(np.float32)
    while True:
        finer = max(1, factor // 2)
        size = frames[0].at(finer).shape[:2]
        step = factor // finer
        field = enlarged_smoothly(field, step, size) * np.float32(step)
        weight = enlarged_boxes(trusted, matched_factor // finer, size)
        first, second = (frame.features(finer, blur) for frame in frames)
        field = refine(first, second, field, weight, config=config.variational)
        factor = finer
        if factor == 1:
            return field


def evidence(
    flows: Sequence[Flow], matched: Matched, frames: tuple[Frame, Frame], config: EstimatorConfig
) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]:
    """Return what the confidence is computed from; see `hamflow.refinement.confidence`.

    Parameters
    ----------
    flows : sequence of (H, W, 2) array
        Forward and backward.
    matched : Matched
        What the flows were refined from.
    frames : (Frame, Frame)
        The images.
    config : EstimatorConfig
        How they were refined.

    Returns
    -------
    disagreement, distance, residual : (H, W) array of float32
        Of the two flows, to the next match that both directions agree on, and of the colors.
    """
    blur = config.variational.blur
    colors = [frame.features(1, blur)[..., :3] for frame in frames]
    residual = np.abs(colors[0] - warp(colors[1], flows[0])).mean(axis=2)
    distance = enlarged_smoothly(matched.directions[0].distance, matched.factor, frames[0].shape)
    return disagreement(flows[0], flows[1]), distance, residual

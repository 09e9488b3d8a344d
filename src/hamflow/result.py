"""What the estimator returns."""

from __future__ import annotations

import io
import os
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image

from hamflow._check import as_flow, pixel_array
from hamflow._types import ImageLike
from hamflow.crf.solver import CrfStep
from hamflow.errors import FileError, InputError
from hamflow.flow import warp
from hamflow.io import split_flow_name, write_flow
from hamflow.io._record import read_record, write_record
from hamflow.io.images import as_colors
from hamflow.visualize import Style, render
from hamflow.window import Window

_SAME_MOTION = 1.0  # pixels by which neighbors of one surface differ at most


@dataclass(frozen=True, eq=False)
class PointFlow:
    """The flow at some points.

    Attributes
    ----------
    flow : (N, 2) array of float32
        (u, v) of each point, in pixels.
    visible : (N,) array of bool, or None
        Whether the point is to be seen in the second image; None if only one direction was
        computed.
    confidence : (N,) array of float32, or None
        As `FlowResult.confidence`.
    """

    flow: NDArray[np.float32]
    visible: NDArray[np.bool_] | None
    confidence: NDArray[np.float32] | None


@dataclass(frozen=True, eq=False)
class FlowResult:
    """A flow, and what is known about it.

    Attributes
    ----------
    flow : (H, W, 2) array of float32
        (u, v) in pixels: the pixel (x, y) of the first image is at (x + u, y + v) in the second.
    backward : (H, W, 2) array of float32, or None
        The flow from the second image to the first; None if only one direction was computed, as by
        the preset "paper".
    occlusion : (H, W) array of bool, or None
        Pixels of the first image that are hidden, or outside, in the second.
    confidence : (H, W) array of float32, or None
        1 / (1 + e), where e is the mean error, in pixels, of all pixels of which as much is known:
        0.5 says that the flow is wrong by one pixel on average, 0.9 by a ninth of a pixel.
    energy, bound, gap : float, or None
        Of the joint model at the matching scale: E of the labeling found, Ψ that no labeling can
        be below, and ``(E - Ψ) / |Ψ|``. They describe the matching, not the refinement after it.
        None if the matcher has no bound, as the local model.
    history : tuple of CrfStep
        Bound and energy after each iteration of the joint model; see
        `hamflow.crf.plot_convergence`.
    window : Window
        The displacements that were searched at the matching scale, in pixels of the images.
    scale : int
        By what factor the images were reduced for matching.
    timings : dict of str to float
        Seconds for each stage.
    cut : bool
        Whether the two images have nothing to do with each other, as at a cut in a video. Then both
        flows are 0, all of the first image is occluded, and the confidence is 0. It takes both
        directions and the joint model to know.
    region : (int, int, int, int), or None
        x, y, width and height of the part of the images that all arrays are of; None if they are
        of the whole images. Vectors are in pixels of the images, whatever the region.
    """

    flow: NDArray[np.float32]
    backward: NDArray[np.float32] | None
    occlusion: NDArray[np.bool_] | None
    confidence: NDArray[np.float32] | None
    energy: float | None
    bound: float | None
    gap: float | None
    window: Window
    scale: int
    history: tuple[CrfStep, ...] = ()
    timings: dict[str, float] = field(default_factory=dict)
    cut: bool = False
    region: tuple[int, int, int, int] | None = None

    def warp(self, image1: ImageLike, *, fill: float = 0) -> NDArray[Any]:
        """Warp the second image to the first; see `hamflow.warp`.

        It may be an array, a tensor on the CPU, a PIL image or the path of a file. If the result is
        of a region, so is what it returns; `image1` is the whole image.
        """
        if isinstance(image1, str | os.PathLike | Image.Image):
            image1 = as_colors(image1, "image1")
        return warped(self, pixel_array(image1, "image1"), "image1", fill)[0]

    def part(self, box: tuple[int, int, int, int], origin: tuple[int, int] = (0, 0)) -> FlowResult:
        """Return the result of a region alone.

        Parameters
        ----------
        box : (int, int, int, int)
            x, y, width and height of the region in these arrays.
        origin : (int, int)
            Where these arrays begin in the images: x and y.
        """
        x, y, width, height = box

        def cut(array: Any) -> Any:
            return None if array is None else array[y : y + height, x : x + width].copy()

        return replace(
            self,
            flow=cut(self.flow),
            backward=cut(self.backward),
            occlusion=cut(self.occlusion),
            confidence=cut(self.confidence),
            region=(x + origin[0], y + origin[1], width, height),
        )

    def at(self, points: ArrayLike) -> PointFlow:
        """Return flow, visibility and confidence at some points.

        Parameters
        ----------
        points : (N, 2) array_like
            x and y of each, in pixels of the images; the center of the first pixel is (0, 0). They
            need not be whole numbers: the flow is interpolated, but not over motion boundaries.
        """
        found = np.asarray(points, np.float64)
        if found.ndim != 2 or found.shape[1] != 2 or not np.isfinite(found).all():
            raise InputError("points must be finite numbers of the shape (N, 2), x and y of each.")
        return _at(self, found - (self.region or (0, 0))[:2])

    def to_color(self, max_flow: float | None = None, *, key: bool = False) -> NDArray[np.uint8]:
        """Show the flow in the colors of the Middlebury wheel, (H, W, 3) uint8 in RGB.

        Full color is `max_flow` pixels, by default the `hamflow.visualize.typical_length`. With
        `key`, the color wheel and this length are drawn in the lower right corner. See
        `hamflow.flow_to_color`.
        """
        return render(None, self, "color", max_flow, key=key)

    def render(
        self,
        image0: ImageLike | None,
        style: Style = "side-by-side",
        max_flow: float | None = None,
        *,
        key: bool = True,
        step: int | None = None,
    ) -> NDArray[np.uint8]:
        """Show the result in a style: "color", "overlay", "arrows" or "side-by-side".

        `image0` is the first image: an array, a tensor on the CPU, a PIL image or the path of a
        file; the whole image, also if the result is of a region. See `hamflow.visualize.render`.
        """
        image = None if image0 is None else as_colors(image0, "image0")
        if image is not None and style != "color":  # which does not show it
            image = image[_place(self, image, "image0")]
        return render(image, self, style, max_flow, key=key, step=step)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to a ``.npz`` file, or the flow alone to a file of another suffix.

        `load` reads the ``.npz`` file again, and `hamflow.read_flow` its flow. For the other
        suffixes see `hamflow.write_flow`.
        """
        if split_flow_name(path)[1] == ".npz":
            self._check()
            write_record(path, self)
        else:
            write_flow(path, self.flow)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> FlowResult:
        """Read a ``.npz`` file that `save` has written.

        Raises
        ------
        FileError
            If the file is missing or damaged, or holds something else. Nothing is unpickled.
        """
        result = read_record(path, cls)
        try:
            result._check()
        except InputError as error:
            raise FileError(f"{os.fspath(path)}: is damaged: {error}") from error
        return result

    def _check(self) -> None:
        """Raise an InputError if the arrays do not fit each other."""
        shape = as_flow(self.flow).shape
        for name in ("backward", "occlusion", "confidence"):
            array = getattr(self, name)
            wanted = shape if name == "backward" else shape[:2]
            if array is not None and array.shape != wanted:
                raise InputError(f"{name} must have the shape {wanted}, but has {array.shape}.")

    def summary(self) -> dict[str, Any]:
        """Return what can be said in numbers, ready for JSON."""
        lengths = np.hypot(self.flow[..., 0], self.flow[..., 1])
        height, width = lengths.shape
        return {
            "width": width,
            "height": height,
            "region": None if self.region is None else list(self.region),
            "mean_length": float(lengths.mean()),
            "longest": float(lengths.max()),
            "occluded": None if self.occlusion is None else float(self.occlusion.mean()),
            "mean_confidence": None if self.confidence is None else float(self.confidence.mean()),
            **self.certificate(),
        }

    def certificate(self) -> dict[str, Any]:
        """Return what can be said in numbers without looking at the pixels, ready for JSON."""
        return {
            "scale": self.scale,
            "cut": self.cut,
            "window": list(self.window.as_tuple()),
            "energy": self.energy,
            "bound": self.bound,
            "gap": self.gap,
            "seconds": {name: round(value, 4) for name, value in self.timings.items()},
        }

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        Image.fromarray(self.to_color(key=True)).save(buffer, "PNG")
        return buffer.getvalue()

    def __repr__(self) -> str:
        height, width = self.flow.shape[:2]
        gap = "" if self.gap is None else f", gap {self.gap:.2%}"
        gap = ", cut" if self.cut else gap
        return f"<FlowResult {width}×{height}{gap}, {sum(self.timings.values()):.2f} s>"


def warped(
    result: FlowResult, image: NDArray[Any], name: str, fill: float
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return the second image, warped by a result, and which pixels are not `fill`.

    `image` is the whole image, also if the result is of a region; messages call it `name`.
    """
    flow, place = result.flow, _place(result, image, name)
    if result.region is not None:
        flow = np.full((*image.shape[:2], 2), np.nan, np.float32)
        flow[place] = result.flow
    whole, inside = warp(image, flow, fill=fill, return_mask=True)
    return whole[place], inside[place]


def _place(result: FlowResult, image: NDArray[Any], name: str) -> tuple[slice, slice]:
    """Return where a result is in the whole image; raise an InputError if it cannot be there."""
    if result.region is None:
        return slice(None), slice(None)
    x, y, width, height = result.region
    if image.ndim < 2 or image.shape[0] < y + height or image.shape[1] < x + width:
        raise InputError(
            f"{name} must be the whole image, of which the result is a region (x, y, width, "
            f"height = {x}, {y}, {width}, {height}), but has the shape {image.shape}."
        )
    return slice(y, y + height), slice(x, x + width)


def _at(result: FlowResult, points: NDArray[np.float64]) -> PointFlow:
    """Return what a result says at points (N, 2) of its arrays."""
    height, width = result.flow.shape[:2]
    if len(points) and not ((points >= -0.5) & (points <= [width - 0.5, height - 0.5])).all():
        where = f"the {width}×{height} pixels of the result"
        if result.region is not None:
            x, y = result.region[:2]
            where = (
                f"the region of the result, in pixels of the whole image: x from {x} to "
                f"{x + width - 1} and y from {y} to {y + height - 1}"
            )
        raise InputError(f"points must be within {where}.")
    x, y = points.clip(0, [width - 1, height - 1]).T
    near = np.rint(y).astype(np.intp), np.rint(x).astype(np.intp)
    left, top = np.floor(x).astype(np.intp), np.floor(y).astype(np.intp)
    total, weights = np.zeros((len(points), 2)), np.zeros(len(points))
    for dx, dy in ((0, 0), (1, 0), (0, 1), (1, 1)):
        column, row = np.minimum(left + dx, width - 1), np.minimum(top + dy, height - 1)
        vector = result.flow[row, column]
        alike = abs(vector - result.flow[near]).max(axis=1, initial=0) <= _SAME_MOTION
        weight = alike * (1 - abs(x - (left + dx))) * (1 - abs(y - (top + dy)))
        total += weight[:, None] * vector
        weights += weight
    return PointFlow(
        (total / weights[:, None]).astype(np.float32),
        None if result.occlusion is None else ~result.occlusion[near],
        None if result.confidence is None else result.confidence[near],
    )

"""The pictures of a pair in a report."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from hamflow._check import to_rgb
from hamflow.evaluation.methods import Estimate
from hamflow.evaluation.runner import Pair
from hamflow.visualize import error_map, flow_to_color, typical_length, wheel_picture
from hamflow.visualize.errors import ERROR_COLORS, ERROR_LIMITS

_LONGEST = 480  # longest side of a picture in the page
_QUALITY = 88

_Picture = NDArray[np.uint8]
_Mask = NDArray[np.bool_]

# Colors of Okabe and Ito, which color-blind readers can distinguish.
OCCLUSION = {
    "found": (0, 158, 115),
    "missed": (213, 94, 0),
    "wrongly found": (86, 180, 233),
}
"""Colors of true positives, false negatives and false positives of the occlusion."""


@dataclass(frozen=True)
class Panel:
    """One picture."""

    kind: str  # which legend it needs: frame, flow, error, occlusion or confidence
    title: str
    source: str  # the picture as a data URI
    size: tuple[int, int]  # width and height
    note: str = ""  # a text for the legend


def panels(pair: Pair, estimate: Estimate) -> tuple[list[Panel], list[str]]:
    """Return the pictures of an estimate, and sentences about pictures that are missing."""
    truth = pair.flow
    known = np.asarray(~np.isnan(truth).any(axis=2))
    # One scale for both flows, so that their colors can be compared.
    longest = typical_length(truth)
    rim = f"{longest:.3g} px"
    found = [
        _panel("frame", "First frame", to_rgb(pair.image0)),
        _panel("flow", "True flow", flow_to_color(truth, longest), known, note=rim),
        _panel("flow", "Estimated flow", flow_to_color(estimate.flow, longest), note=rim),
        _panel("error", "Endpoint error", error_map(estimate.flow, truth, legend=False), known),
    ]
    missing = []
    if estimate.occlusion is None:
        missing.append("There is no occlusion, because the method does not estimate it.")
    elif pair.occluded is None:
        missing.append("There is no occlusion, because the true occlusion is not known.")
    else:
        true = pair.occluded
        masks = (estimate.occlusion & true, ~estimate.occlusion & true, estimate.occlusion & ~true)
        picture = _painted(to_rgb(pair.image0), [mask & known for mask in masks])
        found.append(_panel("occlusion", "Occlusion", picture))
    if estimate.confidence is None:
        missing.append("There is no confidence, because the method does not estimate it.")
    else:
        found.append(_panel("confidence", "Confidence", to_rgb(np.clip(estimate.confidence, 0, 1))))
    return found, missing


def error_scale() -> list[tuple[str, float]]:
    """Return the colors of `error_map`, each with the smallest error that it stands for."""
    limits = (0.0, *ERROR_LIMITS)
    return [(css(color), limit) for color, limit in zip(ERROR_COLORS, limits, strict=True)]


def css(color: Any) -> str:
    """Return an RGB color for a style sheet."""
    return "#" + "".join(f"{int(part):02x}" for part in color)


def wheel() -> str:
    """Return the color wheel on a transparent ground, as a data URI."""
    size = 96
    place = (np.arange(size) + 0.5) * 2 / size - 1
    inside = np.hypot(*np.meshgrid(place, place)) <= 1
    picture = np.dstack([wheel_picture(size), np.uint8(255) * inside])
    return _uri(Image.fromarray(picture), "png")


def _panel(
    kind: str, title: str, picture: _Picture, known: _Mask | None = None, *, note: str = ""
) -> Panel:
    small = _reduced(picture, known)
    return Panel(kind, title, _uri(small, "jpeg"), small.size, note)


def _reduced(picture: _Picture, known: _Mask | None) -> Image.Image:
    """Reduce a picture to the size for the page, without mixing unknown pixels into known ones."""
    height, width = picture.shape[:2]
    ratio = min(1.0, _LONGEST / max(height, width))
    size = (max(1, round(ratio * width)), max(1, round(ratio * height)))
    if known is None or known.all():
        return Image.fromarray(picture).resize(size, Image.Resampling.BOX)
    # Pillow weights colors by their opacity. Without this, sparse truth would be nearly black.
    weighted = Image.fromarray(np.dstack([picture, np.uint8(255) * known]))
    pixels = np.array(weighted.resize(size, Image.Resampling.BOX))
    pixels[pixels[:, :, 3] == 0] = 0
    return Image.fromarray(np.ascontiguousarray(pixels[:, :, :3]))


def _uri(picture: Image.Image, form: str) -> str:
    buffer = io.BytesIO()
    # Without subsampling, because the colors matter here.
    options: dict[str, Any] = {"quality": _QUALITY, "subsampling": 0} if form == "jpeg" else {}
    picture.save(buffer, form, optimize=True, **options)
    return f"data:image/{form};base64,{base64.b64encode(buffer.getvalue()).decode()}"


def _painted(frame: _Picture, masks: Sequence[_Mask]) -> _Picture:
    """Draw masks in the colors of `OCCLUSION` on a faded frame."""
    gray = np.asarray(Image.fromarray(frame).convert("L"))
    picture = to_rgb((64 + gray * 0.4).astype(np.uint8))
    for mask, color in zip(masks, OCCLUSION.values(), strict=True):
        picture[mask] = color
    return picture

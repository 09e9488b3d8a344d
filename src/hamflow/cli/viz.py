"""``hamflow viz``: a picture of a flow."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from hamflow.cli._console import say
from hamflow.cli._options import (
    FlowFile,
    OptionalFile,
    OutputFile,
    Overwrite,
    check_distinct,
    check_new,
    option,
)
from hamflow.cli._results import read_result
from hamflow.errors import InputError
from hamflow.flow import endpoint_error
from hamflow.io import read_flow, read_image, write_image
from hamflow.io.images import check_image_path
from hamflow.result import FlowResult
from hamflow.visualize import error_map, render, typical_length

_Style = Literal["color", "overlay", "arrows", "side-by-side", "error"]
_NO_KEY = option(
    "",
    "Leave out the key in the lower right corner, which is the color wheel or the longest arrow "
    "with its length.",
)
_NEED_IMAGE = ("overlay", "side-by-side")
_NOT_ERROR = ("color", "overlay", "arrows", "side-by-side")


def viz(
    flow: FlowFile,
    output: OutputFile,
    *,
    style: _Style = "color",
    image: OptionalFile = None,
    truth: OptionalFile = None,
    max_flow: Annotated[float | None, option("PIXELS")] = None,
    step: Annotated[int | None, option("PIXELS")] = None,
    key: Annotated[bool, _NO_KEY] = True,
    overwrite: Overwrite = False,
) -> None:
    """Draw a flow: in colors, over the image, as arrows, or its errors against the true flow.

    Colors: the hue shows the direction and the saturation the length; black is unknown. Overlay:
    these colors over the image in gray. Arrows: one every --step pixels, colored by direction.
    Side by side: the image and the colors, and the occlusion and the confidence if FLOW is a result
    that was saved with them (.npz). Errors: the distance to the true flow on a scale in which each
    color stands for twice the error of the one before, blue below 3 pixels and yellow to red above,
    with a legend below the picture. There, black means that the true flow is unknown, and gray that
    only the estimated flow is.

    Parameters
    ----------
    output
        Where to write the picture (.png, .jpg, ...).
    style
        What to draw.
    image
        The first image, for overlay, side-by-side and arrows (which are drawn on white without it).
    truth
        For --style error: the true flow, in any flow format.
    max_flow
        The length in pixels that gets full color or the longest arrow; longer vectors look the
        same. By default the 95th percentile of the lengths, at least 1; give it to make pictures
        comparable.
    step
        For --style arrows: pixels from one arrow to the next. By default 1/24 of the shorter side,
        at least 16.
    """
    for name, given, styles in (
        ("--truth", truth is not None, ("error",)),
        ("--image", image is not None, ("overlay", "arrows", "side-by-side")),
        ("--step", step is not None, ("arrows",)),
        ("--max-flow", max_flow is not None, _NOT_ERROR),
        ("--no-key", not key, _NOT_ERROR),
    ):
        if given and style not in styles:
            raise InputError(
                f"{name} is for --style {' and '.join(styles)}; leave it out for --style {style}."
            )
    if style == "error" and truth is None:
        raise InputError("--style error needs the true flow; name its file with --truth.")
    if style in _NEED_IMAGE and image is None:
        raise InputError(f"--style {style} needs the first image; name its file with --image.")
    check_image_path(output)
    check_distinct({"FLOW": flow, "--truth": truth, "--image": image}, {"--output": output})
    check_new([output], overwrite)

    if style == "error":
        assert truth is not None
        picture, said = _errors(read_flow(flow), read_flow(truth))
    else:
        shown = read_result(flow)
        below = None if image is None else read_image(image)
        vectors = shown.flow if isinstance(shown, FlowResult) else shown
        longest = typical_length(vectors) if max_flow is None else max_flow
        if isinstance(shown, FlowResult):
            picture = shown.render(below, style, longest, key=key, step=step)
        else:
            picture = render(below, shown, style, longest, key=key, step=step)
        what = "the longest arrows are" if style == "arrows" else "full color is"
        said = f"{what} {longest:.3g} px"
    write_image(output, picture)
    height, width = picture.shape[:2]
    say(f"Wrote {output}: {width}×{height} pixels, {said}.")


def _errors(flow: NDArray[np.float32], truth: NDArray[np.float32]) -> tuple[NDArray[np.uint8], str]:
    picture = error_map(flow, truth)
    error = endpoint_error(flow, truth)
    known = error[~np.isnan(error)]
    if not known.size:
        return picture, "no pixel is known in both flows"
    return picture, f"mean error {known.mean(dtype=np.float64):.3f} px where both flows are known"

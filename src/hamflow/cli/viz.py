"""``hamflow viz``: a picture of a flow."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hamflow.cli._console import say
from hamflow.cli._options import FlowFile, OutputFile, check_distinct
from hamflow.errors import InputError
from hamflow.flow import endpoint_error, flow_to_color
from hamflow.io import read_flow, read_image, write_image
from hamflow.io.images import check_image_path
from hamflow.visualize import add_wheel, draw_arrows, error_map, typical_length

_Mode = Literal["color", "arrows", "error"]
_DEFAULT_STEP = 16
# The modes in which an option has an effect.
_MODES = {
    "--truth": ("error",),
    "--image": ("arrows",),
    "--step": ("arrows",),
    "--max-flow": ("color", "arrows"),
    "--wheel": ("color", "arrows"),
}


def viz(
    flow: FlowFile,
    output: OutputFile,
    *,
    mode: _Mode = "color",
    truth: Path | None = None,
    max_flow: float | None = None,
    image: Path | None = None,
    step: int | None = None,
    wheel: bool = False,
) -> None:
    """Draw a flow: in the Middlebury colors, as arrows, or its errors against the true flow.

    Colors: the hue shows the direction and the saturation the length; black is unknown. Arrows: one
    every --step pixels, colored by direction. Errors: the distance to the true flow on a scale in
    which each color stands for twice the error of the one before, blue below 3 pixels and yellow to
    red above, with a legend below the picture. There, black means that the true flow is unknown,
    and gray that only the estimated flow is.

    Parameters
    ----------
    output
        Where to write the picture (.png, .jpg, ...).
    mode
        What to draw.
    truth
        For --mode error: the true flow, in any flow format.
    max_flow
        The length in pixels that gets full color or the longest arrow. By default the 95th
        percentile of the lengths; give it to make pictures comparable.
    image
        For --mode arrows: the first image, to draw the arrows on. By default the ground is white.
    step
        For --mode arrows: pixels from one arrow to the next. (default: 16)
    wheel
        Draw the color wheel, the key to the colors, in the lower right corner.
    """
    given = {
        "--truth": truth is not None,
        "--image": image is not None,
        "--step": step is not None,
        "--max-flow": max_flow is not None,
        "--wheel": wheel,
    }
    for option, modes in _MODES.items():
        if given[option] and mode not in modes:
            raise InputError(
                f"{option} is for --mode {' and '.join(modes)}; leave it out for --mode {mode}."
            )
    if mode == "error" and truth is None:
        raise InputError("--mode error needs the true flow; name its file with --truth.")
    check_image_path(output)
    check_distinct({"FLOW": flow, "--truth": truth, "--image": image}, {"--output": output})

    vectors = read_flow(flow)
    if truth is not None:
        picture, said = _errors(vectors, read_flow(truth))
    else:
        longest = typical_length(vectors) if max_flow is None else max_flow
        if mode == "arrows":
            under = None if image is None else read_image(image)
            apart = _DEFAULT_STEP if step is None else step
            picture = draw_arrows(vectors, under, apart, max_flow=longest)
            said, caption = f"the longest arrows are {longest:.3g} px", ""
        else:
            picture = flow_to_color(vectors, max_flow=longest)
            said = f"full color is {longest:.3g} px"
            caption = f"{longest:.3g} px"
        if wheel:
            picture = add_wheel(picture, caption)
    write_image(output, picture)
    height, width = vectors.shape[:2]
    say(f"Wrote {output}: {width}×{height} pixels, {said}.")


def _errors(flow: NDArray[np.float32], truth: NDArray[np.float32]) -> tuple[NDArray[np.uint8], str]:
    picture = error_map(flow, truth)
    error = endpoint_error(flow, truth)
    known = error[~np.isnan(error)]
    if not known.size:
        return picture, "no pixel is known in both flows"
    return picture, f"mean error {known.mean(dtype=np.float64):.3f} px where both flows are known"

"""``hamflow warp``: the second image, warped to the first by the flow."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro

from hamflow._check import to_bytes
from hamflow.cli._console import say
from hamflow.cli._options import FlowFile, OutputFile, check_distinct
from hamflow.errors import FileError, InputError
from hamflow.flow import warp
from hamflow.io import read_flow, read_image, write_image
from hamflow.io.images import check_image_path

# Other formats would blur the edges of a mask.
_LOSSLESS = (".png", ".bmp", ".tif", ".tiff")


def warp_image(
    image1: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="IMAGE1")],
    flow: FlowFile,
    output: OutputFile,
    *,
    fill: int = 0,
    mask: Path | None = None,
) -> None:
    """Warp the second image to the first with the flow from the first to the second.

    Each pixel gets the color at the place in the second image that the flow points to, interpolated
    between pixels. Where the flow is right and nothing is occluded, the result looks like the first
    image.

    Parameters
    ----------
    image1
        The second image, of the same size as the flow.
    output
        Where to write the result (.png, .jpg, ...), with 8 bits per channel.
    fill
        The gray level, from 0 (black) to 255 (white), where the flow is unknown or leaves the
        image.
    mask
        Where to write a mask (.png), black at the filled pixels and white elsewhere.
    """
    if not 0 <= fill <= 255:
        raise InputError(f"--fill must be in 0..255, but is {fill}.")
    check_image_path(output)
    if mask is not None:
        check_image_path(mask)
        if mask.suffix.lower() not in _LOSSLESS:
            raise FileError(
                f"{mask}: this format does not store a mask exactly; use one of: "
                f"{', '.join(_LOSSLESS)}."
            )
    check_distinct({"IMAGE1": image1, "FLOW": flow}, {"--output": output, "--mask": mask})

    pixels, vectors = to_bytes(read_image(image1)), read_flow(flow)
    if pixels.shape[:2] != vectors.shape[:2]:
        sizes = ["×".join(str(n) for n in array.shape[1::-1]) for array in (pixels, vectors)]
        raise InputError(
            f"{image1} and {flow} must have the same size, but have {sizes[0]} and {sizes[1]} "
            "pixels; give the flow of this image."
        )
    warped, inside = warp(pixels, vectors, fill=fill, return_mask=True)
    write_image(output, warped)
    if mask is not None:
        write_image(mask, inside)
    say(f"Wrote {output}: {inside.mean():.1%} of the pixels come from {image1}.")

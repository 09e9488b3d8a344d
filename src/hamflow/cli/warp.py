"""``hamflow warp``: the second image, warped to the first by the flow."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro

from hamflow._check import to_bytes
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
from hamflow.errors import FileError, InputError
from hamflow.flow import warp
from hamflow.io import read_image, write_image
from hamflow.io.images import check_image_path
from hamflow.result import FlowResult, warped

# Other formats would blur the edges of a mask.
_LOSSLESS = (".png", ".bmp", ".tif", ".tiff")


def warp_image(
    image2: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="IMAGE2")],
    flow: FlowFile,
    output: OutputFile,
    *,
    fill: Annotated[int, option("LEVEL")] = 0,
    mask: OptionalFile = None,
    overwrite: Overwrite = False,
) -> None:
    """Warp the second image to the first with the flow from the first to the second.

    For example:

        hamflow warp frame2.png flow.flo -o warped.png

    Each pixel gets the color at the place in the second image that the flow points to, interpolated
    between pixels. Where the flow is right and nothing is occluded, the result looks like the first
    image.

    Parameters
    ----------
    image2
        The second image, of the same size as the flow; the whole image if FLOW is a saved result
        (.npz) of a region, which is then what is written.
    output
        Where to write the result (.png, .jpg, ...), with 8 bits per channel.
    fill
        The gray level, from 0 (black) to 255 (white), where the flow is unknown or leaves the
        image.
    mask
        A mask (.png), black at the filled pixels and white elsewhere.
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
    check_distinct({"IMAGE2": image2, "FLOW": flow}, {"--output": output, "--mask": mask})
    check_new([output, mask], overwrite)

    pixels, found = to_bytes(read_image(image2)), read_result(flow)
    if isinstance(found, FlowResult) and found.region is not None:
        picture, inside = warped(found, pixels, str(image2), fill)
    else:
        vectors = found.flow if isinstance(found, FlowResult) else found
        if pixels.shape[:2] != vectors.shape[:2]:
            sizes = ["×".join(str(n) for n in array.shape[1::-1]) for array in (pixels, vectors)]
            raise InputError(
                f"{image2} and {flow} must have the same size, but have {sizes[0]} and {sizes[1]} "
                "pixels; give the flow of this image."
            )
        picture, inside = warp(pixels, vectors, fill=fill, return_mask=True)
    write_image(output, picture)
    if mask is not None:
        write_image(mask, inside)
    say(f"Wrote {output}: {inside.mean():.1%} of the pixels come from {image2}.")

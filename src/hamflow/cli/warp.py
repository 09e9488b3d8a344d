"""``hamflow warp``: the second image, fetched back to the first by the flow."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import tyro
from rich.console import Console

from hamflow.cli._options import check_distinct
from hamflow.errors import FileError, InputError
from hamflow.flow import warp
from hamflow.io import read_flow, read_image, write_image
from hamflow.io.images import check_image_path
from hamflow.visualize import to_bytes

# A mask with gray edges would be none.
_LOSSLESS = (".png", ".bmp", ".tif", ".tiff")


def warp_image(
    image1: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="IMAGE1")],
    flow: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="FLOW")],
    output: Annotated[Path, tyro.conf.arg(aliases=["-o"])],
    *,
    fill: int = 0,
    mask: Path | None = None,
) -> None:
    """Fetch the second image back to the first by the flow from the first to the second.

    Each pixel gets the color that the flow points to in the second image, interpolated between
    pixels. Where the flow is right and nothing is hidden, the result looks like the first image.

    Parameters
    ----------
    image1
        The second image.
    flow
        The flow file (.flo, .png of KITTI, .pfm, .flo5, .npy, .npz), of the same size.
    output
        Where to write the result (.png, .jpg, ...), with 8 bits per channel.
    fill
        The gray (0 is black, 255 white) where the flow is unknown or leaves the image.
    mask
        Where to write a picture that is black at these pixels and else white (.png).
    """
    if not 0 <= fill <= 255:
        raise InputError(f"--fill must be in 0..255, but is {fill}.")
    check_image_path(output)
    if mask is not None:
        check_image_path(mask)
        if mask.suffix.lower() not in _LOSSLESS:
            raise FileError(
                f"{mask}: would not keep the mask exactly; use one of: {', '.join(_LOSSLESS)}."
            )
    check_distinct({"IMAGE1": image1, "FLOW": flow}, {"--output": output, "--mask": mask})

    pixels, vectors = to_bytes(read_image(image1)), read_flow(flow)
    if pixels.shape[:2] != vectors.shape[:2]:
        sizes = ["×".join(str(n) for n in array.shape[1::-1]) for array in (pixels, vectors)]
        raise InputError(
            f"{image1} and {flow} must have one size, but are {sizes[0]} and {sizes[1]} "
            "(width × height)."
        )
    warped, inside = warp(pixels, vectors, fill=fill, return_mask=True)
    write_image(output, warped)
    if mask is not None:
        write_image(mask, inside.astype(np.uint8) * np.uint8(255))
    Console(soft_wrap=True, markup=False).print(
        f"Wrote {output}: {inside.mean():.1%} of the pixels come from {image1}.", highlight=False
    )

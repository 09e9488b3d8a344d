"""The local model (eq. 2 of the paper) from end to end: images, bits, winner-takes-all flow."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hamflow.errors import InputError
from hamflow.matching._arrays import Describe
from hamflow.matching.projection import min_projection
from hamflow.window import WindowLike


def local_flow(
    image0: ArrayLike,
    image1: ArrayLike,
    window: WindowLike = 128,
    *,
    describe: Describe,
) -> NDArray[np.float32]:
    """Match two images by their descriptors, each pixel on its own (eq. 2, quantized).

    Parameters
    ----------
    image0, image1 : (H, W) or (H, W, 3) array
        Of one size; uint8, uint16 or float.
    window : Window or int or tuple
        Displacements to search.
    describe : callable
        What gives every pixel of an image its 64 bits: `hamflow.pair_bits`, or the ``bits`` of a
        descriptor that `hamflow.load_model` returned.

    Returns
    -------
    (H, W, 2) array of float32
        The flow from `image0` to `image1` in whole pixels.

    Examples
    --------
    >>> import numpy as np
    >>> from hamflow import pair_bits
    >>> image = np.random.default_rng(0).integers(0, 256, (40, 60, 3), np.uint8)
    >>> local_flow(image, np.roll(image, 5, axis=1), 16, describe=pair_bits)[20, 30]
    array([5., 0.], dtype=float32)
    """
    first, second = np.asarray(image0), np.asarray(image1)
    if first.shape[:2] != second.shape[:2]:
        raise InputError(
            f"The two images must have one size, but are {_size(first)} and {_size(second)} "
            "(width × height)."
        )
    return min_projection(describe(first), describe(second), window).wta()


def _size(image: NDArray[np.generic]) -> str:
    return "×".join(str(n) for n in image.shape[1::-1])

"""What the flow of one pair of a video lets expect of the next one: motion goes on."""

from __future__ import annotations

import numpy as np

from hamflow._types import Field, Flow, Mask


def continued(backward: Flow, trusted: Mask) -> list[tuple[Flow, Field]]:
    """Return the flow, forward and backward, that the next pair has if all motion goes on.

    The second frame of a pair is the first one of the next: what came to a pixel from somewhere
    goes on as far. Where that ends, in the third frame, it came from the pixel.

    Parameters
    ----------
    backward : (H, W, 2) array of float32
        From the second frame of the pair before to its first one.
    trusted : (H, W) array of bool
        Where it can be relied on. These pixels also take precedence where several end in one place.

    Returns
    -------
    list of ((H, W, 2) array of float32, (H, W) array of float32)
        For each direction between the second and the third frame, the flow, and 1 where it can be
        relied on. Where nothing ends in the third frame, the flow is that of the pair before.
    """
    height, width = backward.shape[:2]
    rows, columns = np.indices((height, width), sparse=True)
    x = np.rint(columns - backward[..., 0]).astype(np.intp)
    y = np.rint(rows - backward[..., 1]).astype(np.intp)
    inside = (x >= 0) & (y >= 0) & (x < width) & (y < height)
    after, known = backward.copy(), np.zeros((height, width), np.float32)
    for which, weight in ((inside & ~trusted, 0), (inside & trusted, 1)):  # the latter replace
        after[y[which], x[which]] = backward[which]
        known[y[which], x[which]] = weight
    return [(-backward, trusted.astype(np.float32)), (after, known)]

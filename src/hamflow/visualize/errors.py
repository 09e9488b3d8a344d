"""Where a flow is wrong."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from PIL import Image, ImageDraw, ImageFont

from hamflow._check import as_flow
from hamflow.flow import endpoint_error
from hamflow.visualize._drawing import BLACK, INK, WHITE, Picture

ERROR_LIMITS = (0.1875, 0.375, 0.75, 1.5, 3, 6, 12, 24, 48)
# Of ColorBrewer's RdYlBu, which KITTI uses for the same limits; 3 px is where blue ends.
ERROR_COLORS = np.array(
    [
        *((49, 54, 149), (69, 117, 180), (116, 173, 209), (171, 217, 233), (224, 243, 248)),
        *((254, 224, 144), (253, 174, 97), (244, 109, 67), (215, 48, 39), (165, 0, 38)),
    ],
    np.uint8,
)
_MISSING = (128, 128, 128)


def error_map(flow: ArrayLike, truth: ArrayLike, *, legend: bool = True) -> Picture:
    """Show where a flow is wrong, in steps of a factor of 2.

    Errors (distances from the true flow) below 3 pixels are blue, larger ones yellow and red: the
    colors and limits of KITTI's error maps, which however also depend on the length of the true
    flow. Pixels of unknown true flow are black; those where only the flow is unknown are gray.

    Parameters
    ----------
    flow, truth : (H, W, 2) array_like
        The flows to compare.
    legend : bool
        Whether to add a strip with the colors and their limits below the map.

    Returns
    -------
    picture : (H, W, 3) uint8
        RGB; with the legend it has more rows than the flow.

    Raises
    ------
    InputError
        If the shapes differ or are not those of a flow.

    Examples
    --------
    >>> import numpy as np
    >>> from hamflow.visualize import error_map
    >>> truth = np.zeros((1, 3, 2))
    >>> flow = np.array([[[0.1, 0], [3, 4], [np.nan, np.nan]]])
    >>> error_map(flow, truth, legend=False).tolist()
    [[[49, 54, 149], [254, 224, 144], [128, 128, 128]]]
    """
    error = endpoint_error(flow, truth)
    # NaN is sorted after every limit, and overwritten below.
    picture = ERROR_COLORS[np.searchsorted(ERROR_LIMITS, error, side="right")]
    picture[np.isnan(error)] = _MISSING
    picture[np.isnan(as_flow(truth)).any(axis=2)] = BLACK
    return np.concatenate([picture, _legend(picture.shape[1])]) if legend else picture


def _legend(width: int) -> Picture:
    """Return a strip with the colors of `error_map` above their limits in pixels."""
    font_size = min(16, max(9, width // 36))
    bar = round(1.2 * font_size)
    strip = Image.new("RGB", (width, bar + 2 * font_size), WHITE)
    draw = ImageDraw.Draw(strip)
    edges = [round(width * i / len(ERROR_COLORS)) for i in range(len(ERROR_COLORS) + 1)]
    for start, stop, color in zip(edges, edges[1:], ERROR_COLORS.tolist(), strict=False):
        if start < stop:
            draw.rectangle((start, 2, stop - 1, bar + 1), tuple(color))
    font = ImageFont.load_default(font_size)
    # The most important labels first; those for which there is no room are left out.
    labels = {5: "3", 10: "px", 0: "0", 9: "48", 7: "12", 3: "0.75"}
    labels |= {i + 1: f"{limit:.2g}" for i, limit in enumerate(ERROR_LIMITS) if i + 1 not in labels}
    taken: list[tuple[float, float]] = []
    for edge, text in labels.items():
        extent = font.getlength(text)
        left = min(max(edges[edge] - extent / 2, 1), width - extent - 1)
        if left < 0 or any(left < b + 3 and a < left + extent + 3 for a, b in taken):
            continue
        taken.append((left, left + extent))
        draw.text((left, bar + 0.35 * font_size), text, INK, font)
    return np.array(strip)

"""A result as one picture, in several styles."""

from __future__ import annotations

from typing import Literal, Protocol, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image

from hamflow._check import to_rgb
from hamflow.errors import InputError
from hamflow.visualize._drawing import Picture, image_below, label
from hamflow.visualize.arrows import default_step, draw_arrows
from hamflow.visualize.colors import flow_to_color
from hamflow.visualize.key import add_arrow_key, add_key
from hamflow.visualize.scale import to_draw

Style = Literal["color", "overlay", "arrows", "side-by-side"]
STYLES: tuple[Style, ...] = get_args(Style)
"""The styles of `render`."""

_DARKEST = 0.4  # brightness of a black pixel under the colors of the flow


class ResultLike(Protocol):
    """What `render` shows of a result; `hamflow.FlowResult` is one."""

    @property
    def flow(self) -> NDArray[np.float32]:
        """The flow."""

    @property
    def occlusion(self) -> NDArray[np.bool_] | None:
        """Which pixels are occluded."""

    @property
    def confidence(self) -> NDArray[np.float32] | None:
        """From 0 to 1."""


def render(
    image: ArrayLike | None,
    result: ResultLike | ArrayLike,
    style: Style,
    max_flow: float | None = None,
    *,
    key: bool = False,
    step: int | None = None,
) -> Picture:
    """Show a result as one picture.

    Parameters
    ----------
    image : (H, W) or (H, W, 3) array_like, or None
        The first image. The styles "overlay" and "side-by-side" need it; "arrows" are drawn on
        white without it.
    result : FlowResult or (H, W, 2) array_like
        The result, or the flow alone.
    style : str
        - "color": the colors of the Middlebury wheel (`hamflow.flow_to_color`);
        - "overlay": these colors over the image in gray (`overlay`);
        - "arrows": arrows on the faded image (`draw_arrows`);
        - "side-by-side": the image, the colors, and if the result has them the occlusion (white:
          occluded) and the confidence (white: certain), in two columns (`side_by_side`).
    max_flow : float, optional
        The length in pixels in full color, and of the longest arrows. By default `typical_length`.
    key : bool
        Whether to draw the key in the lower right corner (with "side-by-side": of the colors).
    step : int, optional
        For "arrows": pixels from one arrow to the next, as for `draw_arrows`.

    Returns
    -------
    picture : uint8 array in RGB
        (H, W, 3); of "side-by-side" (H, 2 W, 3), or (2 H, 2 W, 3) with occlusion and confidence.

    Raises
    ------
    InputError
        If the style is unknown or needs an image, or shapes, types or values do not fit.

    Examples
    --------
    >>> import numpy as np
    >>> from hamflow.visualize import render
    >>> image, flow = np.zeros((30, 40, 3), np.uint8), np.ones((30, 40, 2), np.float32)
    >>> render(image, flow, "side-by-side").shape
    (30, 80, 3)
    """
    if style not in STYLES:
        raise InputError(f"style must be one of {', '.join(STYLES)}, not {style!r}.")
    if step is not None and style != "arrows":
        raise InputError(f"step is for the style 'arrows'; leave it out for {style!r}.")
    vectors, longest = to_draw(getattr(result, "flow", result), max_flow)  # type: ignore[arg-type]
    if style == "color":
        picture = flow_to_color(vectors, longest)
    elif style == "arrows":
        apart = default_step(vectors.shape[:2]) if step is None else step
        picture = draw_arrows(vectors, image, apart, max_flow=longest)
        return add_arrow_key(picture, longest, apart) if key else picture
    elif image is None:
        raise InputError(
            f"image is missing, which the style {style!r} needs; give the first image."
        )
    elif style == "overlay":
        picture = overlay(vectors, image, max_flow=longest)
    else:
        return side_by_side(image, result, max_flow=longest, key=key)
    return add_key(picture, longest) if key else picture


def overlay(flow: ArrayLike, image: ArrayLike, *, max_flow: float | None = None) -> Picture:
    """Show a flow in colors over the image, which stays visible as light and shade.

    What does not move has no color.

    Parameters
    ----------
    flow : (H, W, 2) array_like
        The flow; unknown pixels (NaN) become black.
    image : (H, W) or (H, W, 3) array_like
        The first image.
    max_flow : float, optional
        As for `hamflow.flow_to_color`.

    Returns
    -------
    picture : (H, W, 3) uint8
        RGB.

    Raises
    ------
    InputError
        If shapes, types or values do not fit.
    """
    colors = flow_to_color(flow, max_flow)
    below = Image.fromarray(image_below(image, colors.shape[:2]))
    # In gray, so that every color is that of a motion; not too dark for the colors to be seen.
    light = _DARKEST + (1 - _DARKEST) / 255 * np.asarray(below.convert("L"), np.float32)
    return np.rint(colors * light[:, :, None]).astype(np.uint8)


def side_by_side(
    image: ArrayLike,
    result: ResultLike | ArrayLike,
    *,
    max_flow: float | None = None,
    key: bool = True,
) -> Picture:
    """Show the image, the flow, the occlusion and the confidence in two columns.

    Parameters
    ----------
    image : (H, W) or (H, W, 3) array_like
        The first image.
    result : FlowResult or (H, W, 2) array_like
        The result. Occlusion and confidence are left out if it does not have both.
    max_flow : float, optional
        As for `hamflow.flow_to_color`.
    key : bool
        Whether to draw the key to the colors.

    Returns
    -------
    picture : (H, 2 W, 3) or (2 H, 2 W, 3) uint8
        RGB.

    Raises
    ------
    InputError
        If shapes, types or values do not fit.
    """
    vectors, longest = to_draw(getattr(result, "flow", result), max_flow)  # type: ignore[arg-type]
    colors = flow_to_color(vectors, longest)
    top = [
        label(image_below(image, colors.shape[:2]), "image"),
        label(add_key(colors, longest) if key else colors, "flow"),
    ]
    rows = [np.concatenate(top, axis=1)]
    occlusion, confidence = (getattr(result, name, None) for name in ("occlusion", "confidence"))
    if occlusion is not None and confidence is not None:
        bottom = [
            label(to_rgb(occlusion, "occlusion"), "occluded"),
            label(to_rgb(confidence, "confidence"), "confidence"),
        ]
        rows.append(np.concatenate(bottom, axis=1))
    return np.concatenate(rows)

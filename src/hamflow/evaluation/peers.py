"""The dense optical flow methods of OpenCV, for comparison; needs the extra 'peers'."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hamflow._types import Flow, Pixels
from hamflow.errors import InputError

Method = Callable[[Pixels, Pixels], Flow]


def opencv_methods() -> dict[str, Method]:
    """Return OpenCV's methods by name; each takes two RGB images (uint8) and returns the flow.

    Raises
    ------
    InputError
        If OpenCV with its contributed modules is not installed.
    """
    try:
        import cv2  # noqa: PLC0415  (an extra)

        cv2.optflow.createOptFlow_DeepFlow  # noqa: B018  (plain OpenCV does not have it)
    except (ImportError, AttributeError):
        raise InputError(
            "OpenCV's contributed modules are missing; pip install 'hamflow[peers]'."
        ) from None

    def wrapped(make: Callable[[], Any], conversion: int = cv2.COLOR_RGB2GRAY) -> Method:
        def method(first: Pixels, second: Pixels) -> Flow:
            images = (cv2.cvtColor(image, conversion) for image in (first, second))
            return np.asarray(make().calc(*images, None), np.float32)

        return method

    def rlof() -> Any:
        peer = cv2.optflow.DenseRLOFOpticalFlow_create()
        peer.setInterpolation(cv2.optflow.INTERP_RIC)
        return peer

    medium = cv2.DISOPTICAL_FLOW_PRESET_MEDIUM
    return {
        "DIS medium": wrapped(lambda: cv2.DISOpticalFlow_create(medium)),
        "Farneback": wrapped(cv2.optflow.createOptFlow_Farneback),
        "DeepFlow": wrapped(cv2.optflow.createOptFlow_DeepFlow),
        "PCAFlow": wrapped(cv2.optflow.createOptFlow_PCAFlow),
        "SparseToDense": wrapped(cv2.optflow.createOptFlow_SparseToDense),
        "RLOF RIC": wrapped(rlof, cv2.COLOR_RGB2BGR),
    }


def opencv_version() -> str:
    """Return the version of OpenCV."""
    import cv2  # noqa: PLC0415  (an extra)

    return str(cv2.__version__)

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from hamflow.errors import InputError
from hamflow.visualize import error_map


def constant(u: float, v: float, height: int = 48, width: int = 64) -> NDArray[np.float32]:
    return np.full((height, width, 2), (u, v), np.float32)


def test_limits_of_the_errors() -> None:
    limits = [0.1875, 0.375, 0.75, 1.5, 3, 6, 12, 24, 48]
    below = [np.nextafter(np.float32(x), np.float32(0)) for x in limits]
    errors = np.array([[0, *below], [*limits, 1e6]], np.float32)
    flow = np.stack([errors, np.zeros_like(errors)], axis=2)
    picture = error_map(flow, np.zeros_like(flow), legend=False)
    assert picture.shape == (2, 10, 3)
    # Below a limit the color is still that of the limit before.
    assert (picture[0, 2:] == picture[1, :-2]).all()
    assert (picture[0, 0] == picture[0, 1]).all()
    assert (picture[1, 9] == picture[1, 8]).all()
    assert len(np.unique(picture.reshape(-1, 3), axis=0)) == 10
    # Blue up to 3 pixels, then red.
    assert (picture[0, :6, 2] > picture[0, :6, 0]).all()
    assert (picture[1, 4:, 0] > picture[1, 4:, 2]).all()


def test_unknown_pixels_of_both_kinds() -> None:
    flow, truth = constant(1, 1, 1, 4), constant(1, 1, 1, 4)
    flow[0, 1:3, 0] = np.nan
    truth[0, 2:4, 1] = np.nan
    picture = error_map(flow, truth, legend=False)
    assert picture[0, 1:].tolist() == [[128] * 3, [0] * 3, [0] * 3]
    assert picture[0, 0].max() > 128


@pytest.mark.parametrize("width", [1, 5, 20, 60, 200, 1024])
def test_legend(width: int) -> None:
    zeros = constant(0, 0, 7, width)
    with_legend, without = error_map(zeros, zeros), error_map(zeros, zeros, legend=False)
    assert with_legend.shape[1:] == (width, 3)
    assert (with_legend[:7] == without).all()
    strip = with_legend[7:]
    if width >= 20:
        colors = {tuple(color) for color in strip[5].tolist()}
        assert len(colors) == 10
        # Something is written below the colors.
        assert (strip[len(strip) // 2 :] < 128).all(axis=2).any()


def test_errors_of_different_size() -> None:
    with pytest.raises(InputError, match="same shape"):
        error_map(constant(0, 0), constant(0, 0, 5, 5))

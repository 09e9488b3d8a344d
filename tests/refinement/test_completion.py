"""Filling from Python: which matches are trusted, the seeds, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from _interpolation_reference import F, scene_of_two
from hamflow import InputError
from hamflow.refinement import AffineCompletion, complete, with_opposite
from hamflow.refinement.completion import _seeds
from hamflow.stages import MatchEvidence


def test_filling_stops_at_the_edge_of_an_image() -> None:
    image, truth, known = scene_of_two()
    completed, _ = complete(image, truth, known)
    assert abs(completed - truth).max() < 0.3
    gray = complete(np.full_like(image, 0.5), truth, known)[0]
    assert abs(gray - truth)[~known].max() > 2


def test_small_regions_are_not_trusted() -> None:
    image = np.full((30, 40, 3), 0.5, F)
    flow = np.zeros((30, 40, 2), F)
    trusted = np.zeros((30, 40), np.bool_)
    trusted[:, :20] = True
    flow[10:15, 30:35] = 9
    trusted[10:15, 30:35] = True
    assert not complete(image, flow, trusted, AffineCompletion(smallest=26, neighbors=4))[0].any()
    completed = complete(image, flow, trusted, AffineCompletion(smallest=25, neighbors=4))[0]
    assert np.allclose(completed[12, 32], 9, atol=0.01)
    # Where nothing else is left, they are better than nothing ...
    trusted[:, :20] = False
    assert np.allclose(
        complete(image, flow, trusted, AffineCompletion(smallest=26))[0], 9, atol=0.01
    )
    # ... and if nothing is trusted, everything is.
    trusted[:] = False
    assert abs(complete(image, flow, trusted)[0][:, :20]).max() < 0.01


@pytest.mark.parametrize("cell", [1, 2, 3, 5])
@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (7, 1), (11, 13)])
def test_a_plane_of_whole_pixels(cell: int, shape: tuple[int, int]) -> None:
    image = np.random.default_rng(0).random((*shape, 3)).astype(F)
    flow = np.broadcast_to(F([3, -2]), (*shape, 2)).copy()
    completed, distance = complete(
        image, flow, np.ones(shape, np.bool_), AffineCompletion(cell=cell)
    )
    assert completed.dtype == distance.dtype == F
    assert np.allclose(completed, flow, rtol=0, atol=1e-5)
    assert (distance >= 0).all()
    assert (distance == 0).sum() == -(-shape[0] // cell) * -(-shape[1] // cell)


@pytest.mark.parametrize("cell", [1, 2, 3, 4])
def test_seeds(cell: int) -> None:
    rng = np.random.default_rng(cell)
    height, width = 11, 13
    trusted = rng.random((height, width)) < 0.3
    flow = rng.integers(-2, 3, (height, width, 2)).astype(F)
    seeds = _seeds(flow, trusted, cell)
    cells = {(y // cell, x // cell): [] for y, x in np.argwhere(trusted)}
    for y, x in np.argwhere(trusted):
        cells[y // cell, x // cell].append((int(y), int(x)))
    assert len(seeds.pixel) == len(cells)
    reach = cell // 2 + 1 if cell > 1 else 0
    for pixel, place, mean, trust in zip(*seeds, strict=True):
        y, x = divmod(int(pixel), width)
        # It is one of its cell that is closest to the middle ...
        middle = np.array([y // cell, x // cell]) * cell + (cell - 1) / 2
        lengths = [np.linalg.norm(other - middle) for other in cells.pop((y // cell, x // cell))]
        assert np.linalg.norm([y, x] - middle) == min(lengths)
        # ... and stands for those around with about the same flow.
        alike = [
            (i, j)
            for i, j in np.argwhere(trusted)
            if max(abs(i - y), abs(j - x)) <= reach and abs(flow[i, j] - flow[y, x]).max() <= 1
        ]
        assert np.allclose(place[::-1], np.mean(alike, axis=0), atol=1e-5)
        assert np.allclose(mean, np.mean([flow[i, j] for i, j in alike], axis=0), atol=1e-5)
        assert trust == pytest.approx(len(alike) / (2 * reach + 1) ** 2)


def test_rounded_flow_is_averaged() -> None:
    """A slope in whole pixels becomes a slope in fractions of them."""
    height, width = 40, 60
    truth = np.zeros((height, width, 2), F)
    truth[..., 0] = np.arange(width) / 10
    image = np.full((height, width, 3), 0.5, F)
    completed, _ = complete(image, np.rint(truth), np.ones((height, width), np.bool_))
    assert abs(np.rint(truth) - truth)[..., 0].mean() > 0.2
    assert abs(completed - truth)[..., 0].mean() < 0.05


def test_bad_input_of_fill() -> None:
    image, flow = np.zeros((4, 5, 3), F), np.zeros((4, 5, 2), F)
    trusted = np.ones((4, 5), np.bool_)
    for args in (
        (image[:3], flow, trusted),
        (image, flow[:, :4], trusted),
        (image, flow, trusted[:3]),
    ):
        with pytest.raises(InputError, match="one height and width"):
            complete(*args)
    image[2, 3, 1] = np.nan
    with pytest.raises(InputError, match="image must be finite"):
        complete(image, flow, trusted)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cell", 0),
        ("cell", 2.0),
        ("smallest", -1),
        ("neighbors", 0),
        ("rounds", -1),
        ("step", 0.0),
        ("reach", math.nan),
        ("tolerance", math.inf),
        ("blur", -1.0),
    ],
)
def test_bad_parameters(name: str, value: Any) -> None:
    with pytest.raises(InputError, match=f"^{name} must be .*{value}.*\\.$"):
        AffineCompletion(**{name: value})


def test_the_other_direction_tells_the_details() -> None:
    rng = np.random.default_rng(0)
    image = rng.random((40, 60, 3)).astype(F)
    shift = F([3.4, -2.2])  # what a completion makes of matches in whole pixels
    trusted = np.ones((40, 60), np.bool_)
    trusted[10:14] = False
    matched = np.broadcast_to(np.rint(-shift), (40, 60, 2)).astype(F).copy()
    matched[30:34, 20:24] = 7  # trusted by accident
    bits = np.zeros((40, 60), np.uint64)
    evidence = MatchEvidence(image, (bits, bits), matched, trusted)
    filled = np.full((40, 60, 2), 11, F)
    filled[..., 0] += np.arange(40, dtype=F)[:, None]
    found = with_opposite(evidence, filled, np.broadcast_to(shift, (40, 60, 2)))
    y, x = np.indices((40, 60))
    inside = (x - 3 >= 0) & (y + 2 <= 39)
    alone = ~trusted | (matched[..., 0] == 7)
    assert np.array_equal(
        found[inside & ~alone], np.broadcast_to(-shift, found.shape)[inside & ~alone]
    )
    assert np.array_equal(found[~inside | alone], filled[~inside | alone])


def test_a_cell_never_becomes_too_large() -> None:
    assert AffineCompletion(cell=3).beside_opposite().cell == 6
    assert AffineCompletion(cell=64).beside_opposite() == AffineCompletion(cell=64)

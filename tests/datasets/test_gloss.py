"""Reflections of lamps: where they are, and that they do not move with the surface."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from _synthetic import PLAIN, layers_of, textures
from hamflow.datasets.synthetic import render_both
from hamflow.datasets.synthetic.gloss import Glossy, Spot, draw_spots
from hamflow.datasets.synthetic.layer import FULL

SPOT = Spot(
    np.array([30.0, 20.0]),
    np.array([4.0, -2.0]),
    np.array([[0.5, 0.0], [0.0, 0.25]]),
    np.float32([0.5 * FULL, 0.4 * FULL, 0.3 * FULL]),
)


@pytest.mark.parametrize("time", [0.0, 0.5, 2.0])
def test_a_spot_is_where_it_should_be(time: float) -> None:
    y, x = (axis.ravel().astype(np.float32) for axis in np.mgrid[:40, :60])
    lanes = np.tile(np.uint16([100, 30000, 60000, FULL]), (x.size, 1))
    SPOT.shine(lanes, x, y, time)
    for k in range(0, x.size, 7):
        across, down = x[k] - 30 - 4 * time, y[k] - 20 + 2 * time
        square = (0.5 * across) ** 2 + (0.25 * down) ** 2
        added = FULL * np.exp(-square / 2) * (square < 3.5**2) * np.array([0.5, 0.4, 0.3])
        expected = np.minimum(np.array([100, 30000, 60000]) + added, FULL)
        assert np.abs(lanes[k, :3] - expected).max() < 20
        assert lanes[k, 3] == FULL


def test_spots_are_on_their_surface_and_slower() -> None:
    drawn = 0
    for seed in range(6):
        for layer in layers_of(PLAIN, seed, textures())[1:]:
            rng = np.random.default_rng(seed)
            for spot in draw_spots(rng, layer, (PLAIN.height, PLAIN.width), 1.0):
                drawn += 1
                x, y = spot.center.astype(np.float32)[:, None]
                assert layer.covers(0, x, y)[0]
                moved = np.array(layer.follow(0, 1, x, y)[:2])[:, 0] - spot.center
                assert np.linalg.norm(spot.speed) <= 0.61 * np.linalg.norm(moved) + 1e-3
                shown, plain = Glossy(layer, [spot]).look(0, x, y), layer.look(0, x, y)
                assert (shown[:, :3] > plain[:, :3]).any() or (plain[:, :3] > 0.9 * FULL).any()
                assert np.array_equal(shown[:, 3], plain[:, 3])
    assert drawn > 20


def test_spots_leave_the_truth() -> None:
    config = replace(PLAIN, specular=1.0, perspective_share=0.5, curved_share=0.5)
    brighter = 0
    for seed in range(6):
        clean, final = render_both(config, seed, textures())
        assert np.array_equal(clean.flow, final.flow)
        assert np.array_equal(clean.occluded, final.occluded)
        change = final.image0.astype(int) - clean.image0
        assert change.min() >= -1
        brighter += change.max() > 40
    assert brighter >= 3

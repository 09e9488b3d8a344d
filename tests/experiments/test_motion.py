"""The measures of the scripts about tracks, frames in between, stabilization and masks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from _synthetic import SMALL, textures
from experiments.scripts.motion import camera_flow, psnr, shake
from experiments.scripts.tracks import lucas_kanade, scores, truth
from hamflow.datasets.synthetic import SyntheticFilm
from hamflow.motion.tracks import grid_points


def test_scores() -> None:
    where = np.zeros((4, 3, 2))
    seen = np.array([[1, 1, 1], [1, 1, 0], [1, 0, 0], [1, 1, 1]], bool)
    found = where.copy()
    found[1:, 0, 0] = 3.0  # the first point is always 3 pixels off, the others are right
    says = np.ones((4, 3), bool)
    says[3, 2] = False
    row = scores((found, says), (where, seen))
    assert row["error"] == pytest.approx(9 / 6)
    assert row["< 2 px"] == pytest.approx(3 / 6)
    assert row["< 8 px"] == 1
    assert row["lost"] == pytest.approx(1 / 6)
    assert row["false"] == 1
    assert row["occlusion"] == pytest.approx(5 / 9)
    assert row["reappeared"] == pytest.approx(1 / 2)


def test_truth_and_lucas_kanade() -> None:
    film = SyntheticFilm(replace(SMALL, max_displacement=4.0, max_layers=2), 5, textures(), 3)
    points = grid_points(film.images[0].shape, 16)
    where, seen = truth(film, points)
    assert np.array_equal(where[0], points)
    assert seen[0].all()
    places, says = lucas_kanade(film.images, points)
    both = seen[1] & says[1]
    assert both.mean() > 0.5
    assert np.median(np.linalg.norm(places - where, axis=2)[1][both]) < 0.5


def test_psnr() -> None:
    picture = np.full((4, 4), 100.0)
    everywhere = np.ones((4, 4), bool)
    assert psnr(picture, np.full((4, 4), 110, np.uint8), everywhere) == pytest.approx(
        28.13, abs=0.01
    )


def test_an_even_pan_does_not_shake() -> None:
    pan = [np.array([[1.0, 0, 3 * k], [0, 1, -k], [0, 0, 1]]) for k in range(5)]
    assert shake(pan) < 1e-9
    pan[2][0, 2] += 1
    assert shake(pan) > 0.5


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_the_background_moves_with_the_camera(share: float) -> None:
    config = replace(SMALL, perspective_share=share, elastic_share=0.0, max_displacement=10.0)
    film = SyntheticFilm(config, 2, textures(), 3)
    off = np.linalg.norm(film.truth(1, 2)[0] - camera_flow(film, 1), axis=2)
    assert np.isfinite(off).all()
    assert (off < 1e-3).mean() > 0.2
    assert off.max() > 0.5 or share == 1.0

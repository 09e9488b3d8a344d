"""Synthetic scenes: what they consist of, determinism and settings."""

from __future__ import annotations

import multiprocessing
import operator
import pickle
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from _synthetic import EFFECTS, SMALL, check_kinds, same, scene, textures
from hamflow.datasets.synthetic import (
    SyntheticConfig,
    SyntheticDataset,
    render_scene,
)
from hamflow.errors import InputError
from hamflow.flow import warp

# What a scene is


def test_shapes_and_types() -> None:
    check_kinds(scene(0), (SMALL.height, SMALL.width))


@pytest.mark.parametrize("size", [(32, 32), (33, 150), (150, 33), (97, 131)])
def test_any_size(size: tuple[int, int]) -> None:
    shown = scene(3, SyntheticConfig(height=size[0], width=size[1]))
    assert shown.image0.shape == (*size, 3)
    assert shown.image0.std() > 5


# Determinism


def test_deterministic_by_seed() -> None:
    for config in (SMALL, replace(SMALL, clean=False)):
        again = render_scene(config, 0, textures())
        assert same(again, scene(0, config))
        assert not same(again, scene(1, config))


def test_seeds_are_more_than_numbers() -> None:
    # Any two scenes of two sets differ.
    flows = {render_scene(SMALL, [a, b], textures()).flow.tobytes() for a in (0, 1) for b in (0, 1)}
    assert len(flows) == 4
    with pytest.raises(InputError, match="seed"):
        render_scene(SMALL, -1, textures())
    with pytest.raises(InputError, match="seed"):
        render_scene(SMALL, [], textures())


def test_dataset() -> None:
    dataset = SyntheticDataset(SMALL, seed=5, size=4)
    assert len(dataset) == 4
    assert same(dataset[2], render_scene(SMALL, [5, 2], textures()))
    assert same(dataset[-1], dataset[3])
    assert [same(a, dataset[i]) for i, a in enumerate(dataset[1:3], 1)] == [True, True]
    assert not same(dataset[0], SyntheticDataset(SMALL, seed=6, size=4)[0])
    assert same(dataset[1], SyntheticDataset(SMALL, seed=5, size=9)[1])
    clean, final = dataset.both(2)
    assert same(clean, dataset[2])
    assert not same(final, dataset[2])
    for bad in (4, -5):
        with pytest.raises(IndexError):
            dataset[bad]
    with pytest.raises(InputError, match="size"):
        SyntheticDataset(SMALL, size=0)
    with pytest.raises(InputError, match="seed"):
        SyntheticDataset(SMALL, seed=-2)


def test_same_bytes_in_other_processes() -> None:
    dataset = SyntheticDataset(replace(SMALL, clean=False), seed=1, size=9)
    assert len(pickle.dumps(dataset)) < 5000
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, context) as pool:
        far = list(pool.map(operator.getitem, [dataset] * 3, (7, 0, 3)))
    for other, number in zip(far, (7, 0, 3), strict=True):
        assert same(other, dataset[number])


# Settings


@given(
    data=st.data(),
    height=st.integers(32, 72),
    width=st.integers(32, 72),
    seed=st.integers(0, 2**64),
)
@settings(max_examples=25)
def test_any_settings(data: st.DataObject, height: int, width: int, seed: int) -> None:
    share = st.floats(0, 1)
    fields: dict[str, Any] = {name: data.draw(share, name) for name in EFFECTS}
    for name in ("thin", "dull", "elastic", "affine", "still", "procedural", "articulated"):
        fields[f"{name}_share"] = data.draw(share, name)
    low = data.draw(st.floats(0.01, 5))
    config = SyntheticConfig(
        height=height,
        width=width,
        min_displacement=low,
        max_displacement=data.draw(st.floats(low, 500)),
        min_layers=data.draw(st.integers(0, 3)),
        max_layers=data.draw(st.integers(3, 8)),
        max_rotation=data.draw(share),
        max_zoom=data.draw(st.floats(0, 0.5)),
        max_strain=data.draw(st.floats(0, 0.5)),
        shutter=data.draw(share),
        max_blur=data.draw(st.floats(0, 0.5)),
        **fields,
    )
    shown = render_scene(config, seed, textures())
    # Places of up to some thousand pixels are known to some ten-thousandths in float32.
    assert np.linalg.norm(shown.flow, axis=2).max() <= config.max_displacement + 1e-3
    assert np.isfinite(shown.flow).all()
    assert np.isfinite(shown.backward_flow).all()
    _, inside = warp(shown.image1, shown.flow, return_mask=True)
    assert (inside | shown.occluded).all()


@pytest.mark.parametrize(
    "fields",
    [
        {"height": 31},
        {"width": 4097},
        {"height": 64.0},
        {"width": True},
        {"min_layers": -1},
        {"min_layers": 5, "max_layers": 4},
        {"max_displacement": 0.2},
        {"max_displacement": float("nan")},
        {"max_displacement": 1e6},
        {"min_displacement": 0.0},
        {"max_strain": 0.9},
        {"max_zoom": -0.1},
        {"max_blur": 0.6},
        {"curved_share": 2},
        {"max_rotation": 2.0},
        {"fog": 1.5},
        {"thin_share": -0.1},
        {"noise_strength": float("inf")},
        {"defocus_strength": "2"},
        {"small_share": 0.7, "camera_share": 0.7},
    ],
)
def test_bad_settings(fields: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=list(fields)[-1]):
        SyntheticConfig(**fields)

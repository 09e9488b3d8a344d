from __future__ import annotations

import multiprocessing
import operator
import pickle
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image

from _paths import PHOTOGRAPHS
from _synthetic import SlowLayer, bilinear, layers_of, pixels, same_around, smooth
from hamflow import datasets
from hamflow.datasets.synthetic import (
    SyntheticConfig,
    SyntheticDataset,
    SyntheticScene,
    TextureSet,
    load_textures,
    render_both,
    render_scene,
)
from hamflow.datasets.synthetic.compose import Canvas, owners
from hamflow.datasets.synthetic.geometry import Elastic
from hamflow.datasets.synthetic.layer import FULL, Texels
from hamflow.datasets.synthetic.shapes import Part, Shape, draw_shape
from hamflow.datasets.synthetic.textures import procedural_texture
from hamflow.errors import FileError, InputError
from hamflow.flow import warp

FIELDS = ("image0", "image1", "flow", "occluded", "backward_flow", "backward_occluded")
EFFECTS = (
    *("illumination", "shadow", "fog", "motion_blur", "defocus", "noise", "vignette", "jpeg"),
)
SMALL = SyntheticConfig(height=112, width=144, max_displacement=40, clean=True)
PLAIN = replace(SMALL, clean=False, **dict.fromkeys(EFFECTS, 0.0))
# Large pieces with structure, so that there is something to measure in each scene.
EXACT = replace(SMALL, height=160, width=192, max_layers=5, dull_share=0.0)
SEEDS = range(6)


@cache
def textures() -> TextureSet:
    return load_textures()


@cache
def scene(seed: int, config: SyntheticConfig = SMALL) -> SyntheticScene:
    return render_scene(config, seed, textures())


def same(first: SyntheticScene, second: SyntheticScene) -> bool:
    return all(getattr(first, f).tobytes() == getattr(second, f).tobytes() for f in FIELDS)


# What a scene is


def test_shapes_and_types() -> None:
    shown = scene(0)
    size = (SMALL.height, SMALL.width)
    for image in (shown.image0, shown.image1):
        assert image.shape == (*size, 3)
        assert image.dtype == np.uint8
    for flow in (shown.flow, shown.backward_flow):
        assert flow.shape == (*size, 2)
        assert flow.dtype == np.float32
        assert np.isfinite(flow).all()
    for mask in (shown.occluded, shown.backward_occluded):
        assert mask.shape == size
        assert mask.dtype == np.bool_


def test_exported() -> None:
    assert datasets.SyntheticDataset is SyntheticDataset
    assert datasets.SyntheticConfig is SyntheticConfig
    assert datasets.SyntheticScene is SyntheticScene
    with pytest.raises(AttributeError, match="no attribute 'Sintel2'"):
        datasets.Sintel2  # noqa: B018


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


# Exactness of the flow


def residual_motion(
    shown: SyntheticScene, flow: NDArray[np.float32], inner: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Return, block by block, by how many pixels the second frame seems to be off after warping.

    That is one step of Lucas and Kanade's method; blocks without structure are left out.
    """
    first = smooth(shown.image0)
    other = warp(np.repeat(smooth(shown.image1)[..., None], 3, axis=2), flow)[..., 0]
    valid = inner & np.isfinite(other)
    off = np.where(valid, other - first, 0).astype(np.float64)
    gy, gx = np.gradient((first + np.where(valid, other, first)) / 2)
    gx, gy = gx * valid, gy * valid
    found = []
    for top in range(0, off.shape[0] - 23, 24):
        for left in range(0, off.shape[1] - 23, 24):
            block = np.s_[top : top + 24, left : left + 24]
            a, b, c = (np.sum(p[block] * q[block]) for p, q in ((gx, gx), (gx, gy), (gy, gy)))
            matrix = np.array([[a, b], [b, c]])
            if np.linalg.eigvalsh(matrix)[0] > 2000:
                right = [np.sum(gx[block] * off[block]), np.sum(gy[block] * off[block])]
                found.append(np.linalg.solve(matrix, right))
    return np.linalg.norm(np.array(found).reshape(-1, 2), axis=1)


def away_from_outlines(
    config: SyntheticConfig, seed: int, shown: SyntheticScene
) -> NDArray[np.bool_]:
    """Return pixels that are visible in both frames and at least 4 pixels from any other layer."""
    layers = layers_of(config, seed, textures())
    canvas = Canvas(config.height, config.width)
    here, there = (same_around(owners(canvas, layers, k), 4) for k in range(2))
    x, y = pixels(config)
    at = np.rint([x + shown.flow[..., 0], y + shown.flow[..., 1]]).astype(int)
    column, row = np.clip(at[0], 0, config.width - 1), np.clip(at[1], 0, config.height - 1)
    return here & there[row, column] & ~shown.occluded


def looks_exact(config: SyntheticConfig, seed: int, error: tuple[float, float] = (0, 0)) -> bool:
    shown = scene(seed, config)
    inner = away_from_outlines(config, seed, shown)
    off = residual_motion(shown, shown.flow + np.array(error, np.float32), inner)
    assert len(off) >= 10
    return bool(np.median(off) < 0.05 and np.quantile(off, 0.9) < 0.12)


@pytest.mark.parametrize("seed", [0, 1, 2, 3, 5, 7])
def test_second_frame_warps_back_to_the_first(seed: int) -> None:
    assert looks_exact(EXACT, seed)
    # The criterion sees small errors, in any direction.
    for error in ((0.3, 0), (0, -0.3), (-0.2, 0.2)):
        assert not looks_exact(EXACT, seed, error)

    shown = scene(seed, EXACT)
    inner = away_from_outlines(EXACT, seed, shown)
    difference = np.abs(warp(shown.image1, shown.flow).astype(int) - shown.image0).max(axis=2)
    assert inner.mean() > 0.1
    # What bilinear interpolation loses.
    assert difference[inner].mean() < 10


def test_blurred_frames_are_where_the_flow_says() -> None:
    config = replace(EXACT, clean=False, **dict.fromkeys(EFFECTS, 0.0) | {"motion_blur": 1.0})
    for seed in (1, 2, 5):
        assert not np.array_equal(scene(seed, config).image0, scene(seed, EXACT).image0)
        assert looks_exact(config, seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_flow_is_that_of_the_layers(seed: int) -> None:
    """Evaluate all layers again in double precision, pixel by pixel and without any shortcut."""
    shown = scene(seed)
    layers = [SlowLayer(layer) for layer in layers_of(SMALL, seed, textures())]
    x, y = pixels(SMALL)
    for frame, flow, hidden in (
        (0, shown.flow, shown.occluded),
        (1, shown.backward_flow, shown.backward_occluded),
    ):
        owner = np.zeros(x.shape, int)
        clear = np.ones(x.shape, np.bool_)  # decided not only by rounding
        for number, layer in enumerate(layers):
            cover = layer.covers(frame, x, y)
            owner[cover > 0.5] = number
            clear &= np.abs(cover - 0.5) > 0.02
        tx, ty = x + flow[..., 0], y + flow[..., 1]
        covered = (tx < 0) | (tx > SMALL.width - 1) | (ty < 0) | (ty > SMALL.height - 1)
        for number, layer in enumerate(layers):
            mine = clear & (owner == number)
            if frame == 0:
                there = layer.target(x[mine], y[mine])
                assert np.allclose(there, (tx[mine], ty[mine]), atol=1e-3)
            else:
                # The flow back is exact if the way forth leads to where it started.
                back = layer.target(tx[mine], ty[mine])
                assert np.allclose(back, (x[mine], y[mine]), atol=2e-3)
            cover = layer.covers(1 - frame, tx, ty)
            covered |= (cover > 0.5) & (owner < number)
            clear &= (np.abs(cover - 0.5) > 0.02) | (owner >= number)
        at_border = (np.abs(tx) < 1e-3) | (np.abs(tx - SMALL.width + 1) < 1e-3)
        at_border |= (np.abs(ty) < 1e-3) | (np.abs(ty - SMALL.height + 1) < 1e-3)
        assert clear.mean() > 0.95
        assert (covered == hidden)[clear & ~at_border].all()


def test_masks_are_not_trivial() -> None:
    hidden = np.array(
        [[scene(s).occluded.mean(), scene(s).backward_occluded.mean()] for s in SEEDS]
    )
    assert hidden.max() < 0.9
    assert (hidden.mean(axis=0) > 0.02).all()
    # Hidden, and not only out of the frame.
    covered = 0
    for seed in SEEDS:
        _, inside = warp(scene(seed).image1, scene(seed).flow, return_mask=True)
        assert (inside | scene(seed).occluded).all()
        covered += int((scene(seed).occluded & inside).sum())
    assert covered > 500


@pytest.mark.parametrize("seed", SEEDS)
def test_forth_and_back(seed: int) -> None:
    shown = scene(seed)
    inner = away_from_outlines(SMALL, seed, shown)
    back = warp(shown.backward_flow, shown.flow)
    off = np.linalg.norm(back + shown.flow, axis=2)[inner]
    # Only interpolation of the bent flow between pixels is not exact.
    assert np.quantile(off, 0.99) < 0.02
    assert off.max() < 0.2


def test_hidden_pixels_do_not_match() -> None:
    worse = []
    for seed in SEEDS:
        shown = scene(seed)
        warped, inside = warp(shown.image1, shown.flow, return_mask=True)
        difference = np.abs(warped.astype(int) - shown.image0).max(axis=2)
        hidden = same_around(shown.occluded, 1) & shown.occluded & inside
        if hidden.sum() > 50:
            visible = away_from_outlines(SMALL, seed, shown)
            worse.append(np.median(difference[hidden]) - np.median(difference[visible]))
    assert len(worse) >= 2
    assert np.mean(worse) > 15


# Motions


@cache
def lengths() -> list[NDArray[np.float32]]:
    config = replace(SMALL, height=64, width=80, max_displacement=60)
    scenes = (render_scene(config, seed, textures()) for seed in range(100, 150))
    return [np.linalg.norm(shown.flow, axis=2) for shown in scenes]


def test_displacements_are_heavy_tailed() -> None:
    farthest = np.array([length.max() for length in lengths()])
    assert farthest.max() <= 60
    assert farthest.max() > 50
    assert (farthest < 7).mean() > 0.05  # scenes with small motion only
    every = np.concatenate([length.ravel() for length in lengths()])
    for low, high in ((0.0, 1.0), (1.0, 5.0), (5.0, 20.0), (20.0, 60.0)):
        assert 0.05 < ((every >= low) & (every < high)).mean() < 0.6


def test_subpixel_motion_in_all_directions() -> None:
    flow = np.concatenate([scene(seed).flow.reshape(-1, 2) for seed in SEEDS])
    moving = flow[np.linalg.norm(flow, axis=1) > 0.2]
    parts, _ = np.histogram(np.mod(moving, 1), 10, (0, 1))
    assert parts.min() > 0.03 * moving.size
    angles = [np.arctan2(*scene(s).flow.mean(axis=(0, 1))) for s in range(24)]
    quarters, _ = np.histogram(angles, 4, (-np.pi, np.pi))
    assert quarters.min() >= 1


def test_large_displacements() -> None:
    config = SyntheticConfig(height=64, width=300, max_displacement=250, camera_share=1.0,
                             small_share=0.0, clean=True)  # fmt: skip
    longest = [np.linalg.norm(scene(seed, config).flow, axis=2).max() for seed in range(8)]
    assert max(longest) > 180
    assert max(longest) <= 250


def test_still_scenes_are_exactly_still() -> None:
    config = replace(SMALL, still_share=1.0, camera_share=0.0, elastic_share=0.0)
    found = [scene(seed, config) for seed in range(8)]
    still = [shown for shown in found if not shown.flow.any()]
    assert still  # the background may move by itself
    for shown in still:
        assert np.array_equal(shown.image0, shown.image1)
        assert not shown.occluded.any()
        assert not shown.backward_flow.any()


@given(
    seed=st.integers(0, 2**32),
    strain=st.floats(0.01, 0.5),
    size=st.floats(6, 500),
)
@settings(max_examples=30)
def test_bending_can_be_undone(seed: int, strain: float, size: float) -> None:
    rng = np.random.default_rng(seed)
    waves = np.column_stack([rng.normal(0, 2 / size, (3, 2)), rng.uniform(0, 6, 3)])
    unit = Elastic(waves, rng.normal(0, 1, (3, 2)))
    elastic = unit.scaled(strain / unit.strain)
    assert elastic.strain == pytest.approx(strain)
    x, y = rng.uniform(-100, 1000, (2, 200)).astype(np.float32)
    dx, dy = elastic(x, y)
    assert np.hypot(dx, dy).max() <= elastic.reach * 1.0001
    back_x, back_y = elastic.undo(x + dx, y + dy)
    tolerance = 1e-3 + 1e-5 * elastic.reach
    assert np.abs(back_x - x).max() < tolerance
    assert np.abs(back_y - y).max() < tolerance


# Shapes and textures


@pytest.mark.parametrize("thin", [False, True])
def test_all_shapes(thin: bool) -> None:
    seen = set()
    for seed in range(60):
        shape = draw_shape(np.random.default_rng(seed), 20.0, thin)
        assert shape.thin == thin
        left, top, right, bottom = shape.box
        size = (int(2 * (right - left)) + 4, int(2 * (bottom - top)) + 4)
        box = (left - 1, top - 1, left - 1 + size[0] / 2, top - 1 + size[1] / 2)
        cover = np.asarray(shape.coverage(box, size))
        assert cover.shape == size[::-1]
        assert cover.max() == 255
        # The box holds all of it.
        assert not cover[0].any()
        assert not cover[-1].any()
        assert not cover[:, 0].any()
        assert not cover[:, -1].any()
        seen.add(cover.tobytes())
    assert len(seen) == 60


def test_outlines_are_antialiased() -> None:
    angles = np.linspace(0, 2 * np.pi, 200, endpoint=False)
    disc = Shape([Part(np.column_stack([np.cos(angles), np.sin(angles)]) * 20.3)])
    cover = np.asarray(disc.coverage((-32, -32, 32, 32), (64, 64))) / 255
    assert cover.sum() == pytest.approx(np.pi * 20.3**2, rel=0.015)
    assert 0.02 < ((cover > 0) & (cover < 1)).mean() < 0.06
    y, x = np.mgrid[:64, :64] - 31.5
    assert np.sum(x * cover) / cover.sum() == pytest.approx(0, abs=0.06)
    assert np.sum(y * cover) / cover.sum() == pytest.approx(0, abs=0.06)
    line = Shape([Part(np.array([[-40.0, 3.3], [40.0, -5.7]]), width=1.5)])
    cover = np.asarray(line.coverage((-32, -32, 32, 32), (64, 64))) / 255
    assert cover.sum() == pytest.approx(1.5 * 64 * np.hypot(1, 9 / 80), rel=0.25)


def test_thin_structures() -> None:
    config = replace(SMALL, thin_share=1.0, min_layers=6)
    shares = []
    for seed in range(4):
        owner = owners(Canvas(config.height, config.width), layers_of(config, seed, textures()), 0)
        # Not the background, which is found again within six pixels on both sides.
        near = np.zeros((2, *owner.shape), np.bool_)
        for step in range(1, 7):
            near[0, :, step:] |= owner[:, :-step] == 0
            near[1, :, :-step] |= owner[:, step:] == 0
        shares.append(((owner > 0) & near.all(axis=0)).mean())
    assert np.mean(shares) > 0.03


def test_look_up_is_bilinear() -> None:
    rng = np.random.default_rng(0)
    picture = rng.integers(0, 256, (9, 13, 4), np.uint8)
    texels = Texels.of(Image.fromarray(picture))
    assert np.array_equal(np.asarray(texels.picture()), picture)
    x, y = rng.uniform(0, 11.99, 500), rng.uniform(0, 7.99, 500)
    lanes = texels.look_up(x.astype(np.float32), y.astype(np.float32))
    for channel in range(4):
        expected = bilinear(picture[:, :, channel], x, y)
        assert np.abs(lanes[:, channel] / 256 - expected).max() < 3
    # At texels, and clipped beyond them.
    ends = texels.look_up(np.array([-5, 0, 3], np.float32), np.array([2, 2, 2], np.float32))
    assert np.array_equal(ends, picture[2, [0, 0, 3]].astype(int) * 256)
    white = Texels.of(Image.new("RGBA", (5, 5), (255, 255, 255, 255)))
    assert (white.look_up(x.astype(np.float32), y.astype(np.float32)) == FULL).all()


def test_scenes_are_rich() -> None:
    images = [scene(seed).image0 for seed in range(20)]
    contrast = [image.std() for image in images]
    assert np.median(contrast) > 30
    colors = np.array([image.mean(axis=(0, 1)) for image in images])
    assert colors.std(axis=0).min() > 15
    layers = [len(layers_of(SMALL, seed, textures())) for seed in range(20)]
    assert min(layers) <= 5
    assert max(layers) >= 9


# Effects


def test_no_effects_are_clean() -> None:
    for seed in range(3):
        assert same(scene(seed, PLAIN), scene(seed, SMALL))


@pytest.mark.parametrize("name", EFFECTS)
def test_each_effect(name: str) -> None:
    config = replace(PLAIN, **{name: 1.0})
    changed = 0
    for seed in range(3):
        shown, clean = scene(seed, config), scene(seed)
        for field in FIELDS[2:]:
            assert getattr(shown, field).tobytes() == getattr(clean, field).tobytes()
        changed += shown.image0.tobytes() != clean.image0.tobytes()
        changed += shown.image1.tobytes() != clean.image1.tobytes()
        # Turned off by one switch.
        assert same(scene(seed, replace(config, clean=True)), clean)
    assert changed >= 4


def test_strength() -> None:
    def change(**fields: float) -> float:
        config = replace(PLAIN, **fields)
        pairs = [(scene(seed, config), scene(seed)) for seed in range(3)]
        return float(np.mean([np.abs(a.image0 - b.image0.astype(float)).mean() for a, b in pairs]))

    for name in ("illumination", "shadow", "fog", "vignette"):
        weak, strong = (change(**{name: 1.0, f"{name}_strength": s}) for s in (0.1, 0.9))
        assert weak < 0.6 * strong, name
    assert change(noise=1, noise_strength=1) < 0.6 * change(noise=1, noise_strength=40)
    assert change(defocus=1, defocus_strength=0.3) < change(defocus=1, defocus_strength=4)


def test_fog_takes_contrast() -> None:
    foggy = replace(PLAIN, fog=1.0, fog_strength=0.9)
    ratios = [scene(s, foggy).image0.std() / scene(s).image0.std() for s in range(6)]
    assert np.mean(ratios) < 0.9


def test_noise_is_unbiased() -> None:
    config = replace(PLAIN, noise=1.0, noise_strength=5.0)
    off = scene(0, config).image0.astype(int) - scene(0).image0
    inner = (scene(0).image0 > 40) & (scene(0).image0 < 215)
    assert abs(off[inner].mean()) < 0.1
    assert 0.3 < off[inner].std() < 8
    other = scene(0, config).image1.astype(int) - scene(0).image1
    assert abs(np.corrcoef(off.ravel(), other.ravel())[0, 1]) < 0.05


def test_both_passes() -> None:
    config = replace(SMALL, clean=False)
    clean, final = render_both(config, 4, textures())
    assert same(clean, scene(4, SMALL))
    assert same(final, scene(4, config))


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
    for name in ("thin", "dull", "elastic", "affine", "still", "procedural"):
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


# Photographs


def save(path: Path, size: tuple[int, int] = (40, 30), mode: str = "RGB") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(len(path.name))
    noise = rng.integers(0, 256, (size[1], size[0], 3), np.uint8)
    Image.fromarray(noise).convert(mode).save(path)
    return path


def test_photographs(tmp_path: Path) -> None:
    save(tmp_path / "b.png")
    save(tmp_path / "below/further/a.JPG")
    save(tmp_path / "c.jpeg", mode="L")
    save(tmp_path / "d.png", mode="RGBA")
    Image.fromarray(np.full((20, 24), 40000, np.uint16)).save(tmp_path / "e.png")
    save(tmp_path / "large.jpg", (3000, 700))
    for other in ("INDEX.tsv", "LICENCES", "film.gif"):
        (tmp_path / other).write_text("no photograph")
    (tmp_path / "folder.png").mkdir()
    found = load_textures(tmp_path)
    names = [texture.name for texture in found.photographs]
    assert names == ["b.png", "a.JPG", "c.jpeg", "d.png", "e.png", "large.jpg"]
    sizes = [texture.levels[0].shape for texture in found.photographs]
    assert sizes[0] == (30, 40, 3)
    assert sizes[-1] == (298, 1280, 3)
    assert (found.photographs[4].levels[0] == 156).all()
    for texture in found.photographs:
        assert all(level.dtype == np.uint8 for level in texture.levels)
        for fine, coarse in zip(texture.levels, texture.levels[1:], strict=False):
            assert coarse.shape == ((fine.shape[0] + 1) // 2, (fine.shape[1] + 1) // 2, 3)
    config = replace(SMALL, procedural_share=0.0)
    shown = render_scene(config, 0, found)
    assert not np.array_equal(shown.image0, scene(0, config).image0)
    # What moves how does not depend on the photographs.
    assert shown.flow.shape == scene(0, config).flow.shape
    assert same(SyntheticDataset(config, tmp_path, seed=3)[0], render_scene(config, [3, 0], found))
    assert found.fingerprint() == load_textures(str(tmp_path)).fingerprint()
    (tmp_path / "b.png").unlink()
    assert found.fingerprint() != load_textures(tmp_path).fingerprint()


def test_bad_photographs(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="holds no photograph"):
        load_textures(tmp_path)
    with pytest.raises(FileError, match="not a folder"):
        load_textures(tmp_path / "absent")
    save(tmp_path / "good.png")
    bad = tmp_path / "bad.jpg"
    bad.write_bytes(b"\xff\xd8\xff\xe0 this is no photograph")
    with pytest.raises(FileError, match=r"bad\.jpg"):
        SyntheticDataset(SMALL, tmp_path)
    bad.unlink()
    save(tmp_path / "tiny.png", (8, 9))
    with pytest.raises(FileError, match=r"tiny\.png: has only 8 × 9"):
        load_textures(tmp_path)


def test_pieces_of_a_picture() -> None:
    texture = procedural_texture(2)
    assert texture.cut((100, 50), 1.0, (0.5, 0.5)).size == (100, 50)
    # Coarser levels where the picture is made smaller.
    assert texture.cut((100, 50), 0.4, (0.0, 0.0)).size == (125, 63)
    wide = np.asarray(texture.cut((1200, 20), 1.0, (0.0, 0.0)))
    assert np.array_equal(wide[:, :512], texture.levels[0][:20])
    assert np.array_equal(wide[:, 512:1024], texture.levels[0][:20, ::-1])
    assert texture.covering((1024, 100)) == 2.0
    assert texture.cut((40, 40), 1e-6, (0.0, 0.0)).size == (50, 50)  # as coarse as there is


@pytest.mark.skipif(not PHOTOGRAPHS.is_dir(), reason="the photographs are not here")
def test_real_photographs(tmp_path: Path) -> None:
    for path in sorted(PHOTOGRAPHS.glob("*.jpg"))[:8]:
        (tmp_path / path.name).symlink_to(path)
    found = load_textures(tmp_path)
    assert len(found.photographs) == 8
    shown = render_scene(replace(SMALL, procedural_share=0), 1, found)
    assert shown.image0.std() > 10

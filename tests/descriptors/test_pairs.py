from __future__ import annotations

import zlib
from typing import Any

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from numpy.typing import NDArray

from _paths import DATA, needs_data
from hamflow.datasets.synthetic import SyntheticConfig, load_textures, render_scene
from hamflow.descriptors import pair_bits
from hamflow.descriptors.pairs import _draw_pairs
from hamflow.errors import InputError
from hamflow.io import read_flow, read_image

MARGIN = 60  # beyond the longest offset and the blur


def noise(*shape: int) -> NDArray[np.uint8]:
    return np.random.default_rng(0).integers(0, 256, shape, np.uint8)


def by_definition(image: NDArray[Any], scales: tuple[int, ...], blur: int) -> list[list[int]]:
    """Pixel by pixel, in Python's integers."""
    height, width = image.shape[:2]
    planes = [image] if image.ndim == 2 else [image[:, :, c] for c in range(3)]

    def at(rows: list[list[int]], y: int, x: int) -> int:
        row: list[int] = rows[min(max(y, 0), height - 1)]
        return row[min(max(x, 0), len(row) - 1)]

    blurred = []
    for plane in planes:
        rows: list[list[int]] = plane.tolist()
        for _ in range(blur):
            rows = [
                [
                    sum(
                        (2 - abs(dy)) * (2 - abs(dx)) * at(rows, y + dy, x + dx)
                        for dy in (-1, 0, 1)
                        for dx in (-1, 0, 1)
                    )
                    for x in range(width)
                ]
                for y in range(height)
            ]
        blurred.append(rows)
    pairs = _draw_pairs(0, scales)
    return [
        [
            sum(
                (
                    at(blurred[k % len(planes)], y + y0, x + x0)
                    > at(blurred[k % len(planes)], y + y1, x + x1)
                )
                << k
                for k, (y0, x0, y1, x1) in enumerate(pairs)
            )
            for x in range(width)
        ]
        for y in range(height)
    ]


@settings(max_examples=25, deadline=None)
@given(
    image=hnp.arrays(
        st.sampled_from([np.uint8, np.uint16]),
        st.tuples(st.integers(1, 6), st.integers(1, 6))
        | st.tuples(st.integers(1, 6), st.integers(1, 6), st.just(3)),
    ),
    scales=st.sampled_from([(3, 6, 11), (1,), (2, 5)]),
    blur=st.integers(0, 3),
)
def test_equals_the_definition(image: NDArray[Any], scales: tuple[int, ...], blur: int) -> None:
    bits = pair_bits(image, scales=scales, blur=blur)
    assert bits.dtype == np.uint64
    assert bits.tolist() == by_definition(image, scales, blur)


def test_the_same_bits_on_every_machine() -> None:
    y, x = np.mgrid[:40, :50]
    image = np.stack([x * x * 7 + y * 13, x * y * 3 + y * y, 31 * x ^ 17 * y], axis=2) % 256
    color = pair_bits(image.astype(np.uint8))
    assert zlib.crc32(color.astype("<u8").tobytes()) == 804772909
    gray = pair_bits(image[:, :, 0].astype(np.uint8), seed=5, scales=(4, 9), blur=2)
    assert zlib.crc32(gray.astype("<u8").tobytes()) == 3159988611


def test_pairs_are_distinct_and_bounded() -> None:
    for scales in ((3, 6, 11), (1,), (64,)):
        pairs = _draw_pairs(0, scales)
        assert len(pairs) == 64
        for y0, x0, y1, x1 in pairs:
            assert (y0, x0) != (y1, x1)
            assert max(abs(y0), abs(x0)) <= 3 * max(scales)
            assert max(abs(y1 - y0), abs(x1 - x0)) <= 3 * max(1, max(scales) // 2)
    assert len(set(_draw_pairs(0, (3, 6, 11)))) == 64


def test_spread_of_the_pairs() -> None:
    offsets = np.array([pair for seed in range(40) for pair in _draw_pairs(seed, (6,))])
    assert np.allclose(offsets[:, :2].std(axis=0), np.sqrt(6 * 7), rtol=0.05)
    assert np.allclose((offsets[:, 2:] - offsets[:, :2]).std(axis=0), np.sqrt(3 * 4), rtol=0.05)
    assert np.abs(offsets.mean(axis=0)).max() < 0.5


@pytest.mark.parametrize("blur", range(4))
def test_types_of_the_same_image_agree(blur: int) -> None:
    image = noise(30, 40, 3)
    expected = pair_bits(image, blur=blur)
    others: list[NDArray[Any]] = [
        image.astype(np.uint16) * 257,
        image.astype(np.uint16) * 2 + 100,  # any rescaling
        image / 255,
        (image / 255).astype(np.float32),
        np.asfortranarray(image),
    ]
    for other in others:
        assert (pair_bits(other, blur=blur) == expected).all()


def test_gray_equals_equal_channels() -> None:
    image = noise(30, 40)
    assert (pair_bits(image) == pair_bits(np.stack([image] * 3, axis=2))).all()


def test_moves_with_the_image() -> None:
    image = noise(160, 180, 3)
    whole, part = pair_bits(image), pair_bits(image[5:, 9:])
    assert (whole[5:, 9:] == part)[MARGIN:-MARGIN, MARGIN:-MARGIN].all()


def test_border_is_replicated() -> None:
    image = noise(20, 25)
    around = pair_bits(np.pad(image, MARGIN, "edge"), blur=0)
    assert (around[MARGIN:-MARGIN, MARGIN:-MARGIN] == pair_bits(image, blur=0)).all()


def test_flat_images_are_zero() -> None:
    for value in (0, 255):
        assert not pair_bits(np.full((9, 9, 3), value, np.uint8)).any()
    assert pair_bits(np.ones((1, 1))).tolist() == [[0]]


def test_every_bit_says_something() -> None:
    bits = pair_bits(noise(200, 200, 3))
    for k in range(64):
        assert 0.45 < ((bits >> np.uint64(k)) & np.uint64(1)).mean() < 0.55


def test_arguments_change_the_bits() -> None:
    image = noise(50, 50, 3)
    variants: list[dict[str, Any]] = [{}, {"seed": 1}, {"scales": (5,)}, {"blur": 0}]
    results = [pair_bits(image, **variant).tobytes() for variant in variants]
    assert len(set(results)) == len(results)
    assert pair_bits(image, seed=np.int64(1)).tobytes() == results[1]  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", range(6))
def test_true_matches_are_near(seed: int) -> None:
    config = SyntheticConfig(height=256, width=384, clean=True, dull_share=0.0, max_displacement=40)
    scene = render_scene(config, seed, load_textures())
    bits0, bits1 = pair_bits(scene.image0), pair_bits(scene.image1)
    y, x = np.nonzero(~scene.occluded)
    u, v = np.rint(scene.flow[y, x]).astype(int).T
    right = np.bitwise_count(bits0[y, x] ^ bits1[y + v, x + u])
    wrong = np.bitwise_count(bits0[y, x] ^ np.roll(bits1, 17, axis=1)[y + v, x + u])
    assert np.median(right) <= 8
    assert np.median(wrong) >= 24


@needs_data
def test_real_images() -> None:
    folder = DATA / "middlebury-flow" / "RubberWhale"
    bits0, bits1 = (pair_bits(read_image(folder / f"frame{i}.png")) for i in (1, 2))
    flow = read_flow(folder / "flow.flo")
    rng = np.random.default_rng(0)
    reach, hits, count = 16, 0, 0
    for y, x in rng.integers(reach, np.array(bits0.shape) - reach, (400, 2)):
        if np.isnan(flow[y, x]).any():
            continue
        window = bits1[y - reach : y + reach + 1, x - reach : x + reach + 1]
        distance = np.bitwise_count(window ^ bits0[y, x])
        v, u = np.unravel_index(distance.argmin(), distance.shape)
        hits += bool(np.hypot(u - reach - flow[y, x, 0], v - reach - flow[y, x, 1]) <= 1.5)
        count += 1
    assert hits > 0.6 * count


@pytest.mark.parametrize("shape", [(3,), (3, 3, 1), (3, 3, 4), (0, 3), (2, 2, 3, 3)])
def test_bad_shapes(shape: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match="shape"):
        pair_bits(np.zeros(shape, np.uint8))


@pytest.mark.parametrize("dtype", [np.int32, np.int8, np.uint32, bool, complex])
def test_bad_types(dtype: Any) -> None:
    with pytest.raises(InputError, match="type"):
        pair_bits(np.zeros((3, 3), dtype))


@pytest.mark.parametrize("value", [-0.1, 1.01, 255.0, np.nan, np.inf])
def test_floats_out_of_range(value: float) -> None:
    image = np.zeros((3, 3), np.float32)
    image[1, 1] = value
    with pytest.raises(InputError, match="from 0 to 1"):
        pair_bits(image)


def test_bad_arguments() -> None:
    image = np.zeros((3, 3), np.uint8)
    for scales in ((), (0,), (65,), (3, -1), (2.5,)):
        with pytest.raises(InputError, match="scales"):
            pair_bits(image, scales=scales)  # type: ignore[arg-type]
    for blur in (-1, 4):
        with pytest.raises(InputError, match="blur"):
            pair_bits(image, blur=blur)

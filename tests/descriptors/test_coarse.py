"""The coarse network: one descriptor for each cell of 4×4 pixels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from _networks import COARSE as TINY
from _networks import padded, random_image, random_weights
from hamflow import load_model
from hamflow.descriptors.architecture import Architecture
from hamflow.descriptors.graph import LOCAL_RADIUS
from hamflow.descriptors.network import NetworkDescriptor
from hamflow.descriptors.weights import Network, read_network, save_weights
from hamflow.errors import InputError

Array = NDArray[Any]
WEIGHTS = random_weights(TINY)


def described(image: Array) -> Array:
    return NetworkDescriptor("tiny", Network(TINY, WEIGHTS)).describe(image)


# --- what it computes, slowly ---------------------------------------------------------------------


def convolved(x: Array, name: str, pad: int, stride: int = 1, dilation: int = 1) -> Array:
    weight = WEIGHTS[f"{name}.weight"].astype(np.float64)
    size = weight.shape[2]
    x = np.pad(x, ((0, 0), (pad, pad), (pad, pad)))
    rows, columns = ((n - dilation * (size - 1) - 1) // stride + 1 for n in x.shape[1:])
    total = np.zeros((len(weight), rows, columns)) + WEIGHTS[f"{name}.bias"][:, None, None]
    for y, x0 in np.ndindex(rows, columns):
        top, left = y * stride, x0 * stride
        reach = dilation * (size - 1) + 1
        seen = x[:, top : top + reach : dilation, left : left + reach : dilation]
        total[:, y, x0] += np.einsum("ocij,cij->o", weight, seen)
    return total


def relu(x: Array) -> Array:
    return np.maximum(x, 0)


def block(x: Array, name: str, dilation: int) -> Array:
    inner = relu(convolved(x, f"{name}.first", dilation, dilation=dilation))
    return relu(x + convolved(inner, f"{name}.second", 1))


def doubled(x: Array) -> Array:
    """Twice the size, linearly between the centers of pixels."""
    for axis in (1, 2):
        count = x.shape[axis]
        at = np.clip((np.arange(2 * count) + 0.5) / 2 - 0.5, 0, count - 1)
        low = np.floor(at).astype(int)
        high = np.minimum(low + 1, count - 1)
        share = (at - low).reshape((-1, 1) if axis == 1 else (-1,))
        x = x.take(low, axis) * (1 - share) + x.take(high, axis) * share
    return x


def reference(image: Array) -> Array:
    """Descriptors of an image in 0..1 whose sides are multiples of 8, in float64."""
    x = image.astype(np.float64).transpose(2, 0, 1)
    centered = x - x.mean()
    colors = centered / (np.sqrt((centered**2).mean()) + 0.02)
    gray = x.mean(axis=0, keepdims=True)
    wide, side = padded(gray, LOCAL_RADIUS), 2 * LOCAL_RADIUS + 1
    windows = np.lib.stride_tricks.sliding_window_view(wide, (side, side), (1, 2))
    mean, variance = windows.mean((3, 4)), windows.var((3, 4))
    local = 0.7 * np.clip((gray - mean) / np.sqrt(variance + 1e-4), -4, 4)
    x = relu(convolved(np.concatenate([colors, local]), "half", 2, 2))
    near = block(relu(convolved(x, "quarter", 1, 2)), "near", 1)
    far = relu(convolved(near, "eighth", 1, 2))
    for number, dilation in enumerate(TINY.dilations):
        far = block(far, f"blocks.{number}", dilation)
    both = relu(doubled(convolved(far, "far", 0)) + convolved(near, "near.last", 1))
    return np.tanh(convolved(both, "head", 0)).transpose(1, 2, 0)


def test_it_computes_what_it_says() -> None:
    image = random_image(24, 32, 3).astype(np.float32) / 255
    image[:, :16] *= 0.3
    assert described(image) == pytest.approx(reference(image), abs=2e-4)


@pytest.mark.parametrize("shape", [(1, 1), (5, 9), (16, 24), (33, 18)])
def test_a_cell_is_4_by_4_pixels(shape: tuple[int, int]) -> None:
    image = random_image(*shape, 3)
    phi = described(image)
    assert phi.shape == (-(-shape[0] // 4), -(-shape[1] // 4), 64)
    model = NetworkDescriptor("tiny", Network(TINY, WEIGHTS))
    bits = model.bits(image)
    assert bits.shape == phi.shape[:2]
    assert ((bits & np.uint64(1)) == (phi[..., 0] > 0)).all()


def test_incomplete_cells_continue_the_image() -> None:
    image = random_image(21, 30, 3)
    whole = np.pad(image, ((0, 3), (0, 2), (0, 0)), mode="edge")
    assert (described(image) == described(whole)[:6, :8]).all()


def test_it_has_no_tiles(tmp_path: Path) -> None:
    save_weights(tmp_path / "c.safetensors", TINY, WEIGHTS)
    image = random_image(33, 70, 3)
    model = load_model(tmp_path / "c.safetensors", tile_pixels=1)
    assert (model.describe(image) == described(image)).all()
    with pytest.raises(InputError, match="no margin"):
        _ = TINY.margin


def test_brightness_and_contrast_hardly_matter() -> None:
    image = random_image(48, 64, 3).astype(np.float32) / 255
    bits, foggy = (described(x) > 0 for x in (image, 0.4 * image + 0.5))
    assert (bits == foggy).mean() > 0.95


def test_a_file_keeps_it(tmp_path: Path) -> None:
    save_weights(tmp_path / "c.safetensors", TINY, WEIGHTS)
    assert read_network(tmp_path / "c.safetensors").architecture == TINY
    image = random_image(16, 16, 3)
    assert (load_model(tmp_path / "c.safetensors").describe(image) == described(image)).all()


def test_numbers_that_float16_holds_take_half_the_bytes(tmp_path: Path) -> None:
    halves = {n: w.astype(np.float16).astype(np.float32) for n, w in WEIGHTS.items()}
    for name, weights in (("full", WEIGHTS), ("half", halves)):
        save_weights(tmp_path / f"{name}.safetensors", TINY, weights)
        read = read_network(tmp_path / f"{name}.safetensors").weights
        assert all((read[n] == weights[n]).all() for n in weights)
    full, half = ((tmp_path / f"{n}.safetensors").stat().st_size for n in ("full", "half"))
    assert half < 0.8 * full


def test_files_of_other_networks_stay_as_they_were() -> None:
    assert not {"widths", "dilations"} & set(Architecture().metadata())
    assert Architecture.of(Architecture().metadata()) == Architecture()


def test_cost_by_counting() -> None:
    # Per 8×8 pixels: 16 cells of 1/2, 4 of 1/4, 1 of 1/8 in each direction.
    a, b, c = TINY.widths
    count = 16 * a * 4 * 36 + 4 * (b * a * 16 + 3 * b * b * 9 + 64 * b)
    count += c * b * 16 + 2 * 2 * c * c * 9 + b * c
    assert TINY.cost() == pytest.approx(count / 64, abs=10)


@pytest.mark.parametrize(
    "wrong", [{"widths": (1, 2)}, {"widths": (1, 2, 0)}, {"dilations": (0,)}, {"kind": "other"}]
)
def test_settings_are_checked(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(wrong))):
        Architecture(**({"kind": "coarse"} | wrong))

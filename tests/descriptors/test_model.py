"""Descriptor models: what they compute, in which pieces, and what they refuse."""

from __future__ import annotations

import os
import pickle
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hamflow
from _networks import SMALL, random_image, random_weights, reference
from _problems import run_python, with_threads
from hamflow import InputError, load_model
from hamflow.descriptors import model as module
from hamflow.descriptors.architecture import Architecture
from hamflow.descriptors.graph import build_model
from hamflow.descriptors.model import Model, NetworkModel, shipped_models
from hamflow.descriptors.onnx_check import Checked, check_onnx
from hamflow.descriptors.quantize import flipped_share, quantize
from hamflow.descriptors.tiles import default_tile_pixels, plan_tiles
from hamflow.descriptors.weights import save_weights
from hamflow.errors import FileError
from hamflow.matching import pack_bits

NETWORKS = pytest.mark.parametrize("network", SMALL.values(), ids=SMALL)
SIZES = [(1, 1), (3, 50), (50, 3), (16, 24), (17, 23)]


def built(network: Architecture) -> Checked:
    return check_onnx("a network", build_model(network, random_weights(network)))


def loaded(network: Architecture, tile_pixels: int | None = None) -> NetworkModel:
    return NetworkModel("a network", built(network), None, tile_pixels)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "net.onnx"
    path.write_bytes(built(SMALL["paper"]).data)
    return path


# --- what is computed ----------------------------------------------------------------------------


@NETWORKS
@pytest.mark.parametrize("size", SIZES)
def test_descriptors(size: tuple[int, int], network: Architecture) -> None:
    image = random_image(*size, 3)
    expected = reference(network, random_weights(network), image / 255)
    model = loaded(network)
    phi = model.describe(image)
    assert phi.shape == (*size, 64)
    assert phi.dtype == np.float32
    np.testing.assert_allclose(phi, expected, atol=2e-5)
    bits = model.bits(image)
    assert (bits == pack_bits(phi)).all()
    for k in range(64):
        clear = abs(expected[..., k]) > 1e-4
        is_set = (bits >> np.uint64(k)) & np.uint64(1) == 1
        assert (is_set == (expected[..., k] > 0))[clear].all()


@NETWORKS
def test_no_bit_is_constant(network: Architecture) -> None:
    # Or the other tests would not test much.
    phi = loaded(network).describe(random_image(24, 24, 3)) > 0
    assert (abs(phi.mean((0, 1)) - 0.5) < 0.5).mean() > 0.8


@NETWORKS
@pytest.mark.parametrize("size", [(17, 23), (1, 1)])
def test_the_network_that_learns(size: tuple[int, int], network: Architecture) -> None:
    torch = pytest.importorskip("torch")
    learning = pytest.importorskip("hamflow.learning.network")
    image = random_image(*size, 3)
    learner = learning.build_network(network)
    learner.load(random_weights(network))
    x = torch.from_numpy(image.transpose(2, 0, 1)[None] / np.float32(255))
    with torch.no_grad():
        expected = learner(x)[0].numpy()
    np.testing.assert_allclose(loaded(network).describe(image), expected, atol=2e-5)


def test_kinds_of_images() -> None:
    model = loaded(SMALL["context"])
    image = random_image(12, 16, 3)
    phi = model.describe(image)
    close = {"atol": 1e-5}
    np.testing.assert_allclose(model.describe(image / 255), phi, **close)
    np.testing.assert_allclose(model.describe((image / 255).astype(np.float32)), phi, **close)
    np.testing.assert_allclose(model.describe(image.astype(np.uint16) * 257), phi, **close)
    np.testing.assert_allclose(model.describe((image / 255).astype(">f8")), phi, **close)
    gray = image[..., 0]
    repeated = np.repeat(gray[..., None], 3, axis=2)
    assert (model.describe(gray) == model.describe(repeated)).all()
    assert (model.bits(image[:, ::-1]) == model.bits(image[:, ::-1].copy())).all()
    assert model.bits([[0.0, 0.5], [1.0, 0.2]]).shape == (2, 2)


@pytest.mark.parametrize(
    "image",
    [
        np.zeros((4, 5, 2)),
        np.zeros((0, 5)),
        np.zeros(3),
        np.zeros((4, 5), np.int64),
        np.zeros((4, 5), bool),
        np.full((4, 5), 1.01),
        np.full((4, 5), -0.01),
        np.full((4, 5), np.nan),
        "image",
        None,
    ],
)
def test_bad_images(image: Any) -> None:
    model = loaded(SMALL["paper"])
    for method in (model.describe, model.bits):
        with pytest.raises(InputError, match=r"^image must "):
            method(image)


def test_bits_need_64() -> None:
    model = loaded(Architecture("paper", layers=3, channels=4, m=16))
    assert model.describe(random_image(5, 6)).shape == (5, 6, 16)
    with pytest.raises(InputError, match=r"16 components, but bits need 64"):
        model.bits(random_image(5, 6))


# --- in which pieces -----------------------------------------------------------------------------


@NETWORKS
@pytest.mark.parametrize("size", [(1, 1), (3, 200), (200, 3), (45, 59)])
def test_tiles_leave_no_trace(size: tuple[int, int], network: Architecture) -> None:
    image = random_image(*size, 3)
    whole = loaded(network, 2**20).describe(image)
    smallest = 2 * network.margin + 4
    for pixels in (smallest**2, 3 * smallest**2):
        model = loaded(network, pixels)
        assert (model.describe(image) == whole).all()
        assert (model.bits(image) == pack_bits(whole)).all()


@NETWORKS
def test_threads_leave_no_trace(network: Architecture) -> None:
    image = random_image(33, 47, 3)
    model = loaded(network)
    first, *others = (
        with_threads(count, lambda: model.describe(image)).tobytes() for count in (1, 2, 3)
    )
    assert all(other == first for other in others)
    fixed = NetworkModel("a network", built(network), 2, None)
    assert fixed.describe(image).tobytes() == first


@settings(max_examples=60, deadline=None)
@given(
    network=st.sampled_from([*SMALL.values(), Architecture("context")]),
    height=st.integers(1, 400),
    width=st.integers(1, 400),
    more=st.integers(0, 50_000),
)
def test_plan(network: Architecture, height: int, width: int, more: int) -> None:
    margin = network.margin
    pixels = (2 * margin + 1) ** 2 + more
    covered = np.zeros((height, width), int)
    for rows, columns in plan_tiles(height, width, network, pixels):
        covered[rows.start : rows.stop, columns.start : columns.stop] += 1
        area = 1
        for span, size in ((rows, height), (columns, width)):
            assert 0 <= span.low <= span.start < span.stop <= span.high <= size
            assert span.start - span.low >= min(margin, span.start)
            assert span.high - span.stop >= min(margin, size - span.stop)
            area *= span.high - span.low
        assert area <= pixels
    assert (covered == 1).all()


def test_plan_of_large_images() -> None:
    for network in (Architecture(), Architecture("context")):
        pixels = default_tile_pixels(network)
        tiles = plan_tiles(2160, 3840, network, pixels)
        read = sum((r.high - r.low) * (c.high - c.low) for r, c in tiles)
        assert read < 1.3 * 2160 * 3840  # little is computed twice
    assert len(plan_tiles(1, 2**27, Architecture(), 2**16)) > 2**11
    assert len(plan_tiles(436, 1024, Architecture("context"), 2**19)) == 1


def test_tiles_that_are_too_small() -> None:
    with pytest.raises(InputError, match=r"tile_pixels must be at least 25 for this network"):
        loaded(SMALL["paper"], 24).bits(random_image(30, 30))


def test_release() -> None:
    model, image = loaded(SMALL["paper"]), random_image(9, 9)
    before = model.bits(image)
    model.release()
    assert (model.bits(image) == before).all()


def test_pickled_models() -> None:
    model, image = loaded(SMALL["paper"]), random_image(9, 9)
    before = model.bits(image)
    assert (pickle.loads(pickle.dumps(model)).bits(image) == before).all()


FORKED = """
import os, sys
import numpy as np
import hamflow
model = hamflow.load_model(sys.argv[1], threads=2)
image = np.random.default_rng(0).random((200, 200))
before = model.bits(image)
child = os.fork()
if child == 0:
    same = (model.bits(image) == before).all()
    model.release()
    del model
    os._exit(0 if same else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs fork")
def test_forked_processes(file: Path) -> None:
    run = run_python("-W", "ignore", "-c", FORKED, str(file), timeout=60)
    assert run.returncode == 0, run.stderr


# --- names and files -----------------------------------------------------------------------------


def test_pairs() -> None:
    model, image = load_model("pairs"), random_image(20, 30, 3)
    assert isinstance(model, Model)
    assert model.architecture is None
    assert model.name == "pairs"
    assert (model.bits(image) == hamflow.pair_bits(image)).all()
    phi = model.describe(image)
    assert phi.dtype == np.float32
    assert (abs(phi) == 1).all()
    assert (pack_bits(phi) == model.bits(image)).all()


def test_files(file: Path) -> None:
    network, image = SMALL["paper"], random_image(9, 8)
    weights = file.with_suffix(".safetensors")
    save_weights(weights, network, random_weights(network), {"note": "x"})
    models = [load_model(file), load_model(str(file)), load_model(weights)]
    for model in models:
        assert model.architecture == network
        assert (model.bits(image) == models[0].bits(image)).all()
    assert models[2].metadata["note"] == "x"
    assert models[1].name == str(file)
    assert repr(models[1]) == f"<hamflow descriptor model {str(file)!r}>"


def test_names(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MODELS", file.parent)
    network, image = SMALL["paper"], random_image(9, 8)
    small = quantize(built(network), [image])
    file.with_name("net.int8.onnx").write_bytes(small.data)
    save_weights(file.with_name("other.safetensors"), network, random_weights(network, 1))
    assert shipped_models() == ["net", "other", "pairs"]
    assert load_model("net").name == "net"
    assert "precision" not in load_model("net", variant="float").metadata
    assert load_model("net", variant="int8").metadata["precision"] == "int8"
    assert load_model("other").architecture == network
    with pytest.raises(InputError, match="'other' has no variant 'int8'"):
        load_model("other", variant="int8")
    with pytest.raises(InputError, match=r"no model 'nets'; choose one of net, other, pairs, or"):
        load_model("nets")


def test_shipped_models() -> None:
    for name in shipped_models():
        assert load_model(name).bits(random_image(20, 20, 3)).shape == (20, 20)


def test_bad_arguments(file: Path) -> None:
    for nothing in (None, 3, b"pairs"):
        with pytest.raises(InputError, match="must be a name or the path of a file"):
            load_model(nothing)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="variant must be float or int8"):
        load_model("pairs", variant="int4")
    with pytest.raises(InputError, match="leave variant out"):
        load_model("pairs", variant="int8")
    with pytest.raises(InputError, match="variant is for models by name"):
        load_model(file, variant="int8")
    for bad in (0, -1, 1.5, True, "2", 10**6):
        with pytest.raises(InputError, match="threads must be a whole number"):
            load_model(file, threads=bad)  # type: ignore[arg-type]
    for bad in (0, -1, 1.5, True, "2"):
        with pytest.raises(InputError, match="tile_pixels must be a whole number"):
            load_model(file, tile_pixels=bad)  # type: ignore[arg-type]


def test_bad_files(file: Path) -> None:
    folder = file.parent
    for path, message in {
        folder / "gone.onnx": "does not exist",
        folder / "gone.safetensors": "does not exist",
        folder / "net": "are .onnx or .safetensors files",
        folder / "net.h5": "are .onnx or .safetensors files",
        folder / "net.pt": "is a pickle",
    }.items():
        with pytest.raises(FileError, match=message) as caught:
            load_model(path)
        assert str(caught.value).startswith(str(path))


def test_safetensors_need_onnx(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "net.safetensors"
    save_weights(path, SMALL["paper"], random_weights(SMALL["paper"]))
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(InputError, match=re.escape("pip install 'hamflow[export]'")):
        load_model(path)


def test_what_onnxruntime_refuses() -> None:
    checked = built(SMALL["paper"])
    broken = checked._replace(data=checked.data[: len(checked.data) // 2])
    with pytest.raises(FileError, match=r"^a network: cannot be run by onnxruntime"):
        NetworkModel("a network", broken, None, None).bits(random_image(4, 4))


def test_same_bytes_for_the_same_weights() -> None:
    network = SMALL["context"]
    weights = random_weights(network)
    assert build_model(network, weights) == build_model(network, dict(reversed(weights.items())))


# --- 8-bit arithmetic ----------------------------------------------------------------------------


@NETWORKS
def test_int8(network: Architecture) -> None:
    images = [random_image(24, 32, 3, seed=seed) for seed in range(3)]
    checked = built(network)
    small = quantize(checked, images[:2])
    assert small.architecture == network
    assert small.metadata == checked.metadata | {"precision": "int8"}
    model = NetworkModel("small", small, None, None)
    assert 0 < flipped_share(loaded(network), model, images[2:]) < 0.08
    # Cut into tiles, with the same result.
    pixels = (2 * network.margin + 2) ** 2
    image = random_image(45, 71, 3)
    tiled = NetworkModel("small", small, None, pixels)
    assert (tiled.bits(image) == model.bits(image)).all()


def test_int8_is_reproducible_and_quiet(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    checked, images = built(SMALL["paper"]), [random_image(300, 400)]
    first, second = quantize(checked, images), quantize(checked, images)
    assert first.data == second.data
    assert len(first.data) < len(checked.data) + 4000
    captured = capfd.readouterr()
    assert (captured.out, captured.err, caplog.text) == ("", "", "")


def test_half_a_step_saves_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    network, images = SMALL["paper"], [random_image(40, 40, 3, seed=seed) for seed in range(2)]
    shares = []
    for shift in (True, False):
        if not shift:
            monkeypatch.setattr("hamflow.descriptors.quantize._shift_last_layers", lambda *_: None)
        model = NetworkModel("small", quantize(built(network), images[:1]), None, None)
        shares.append(flipped_share(loaded(network), model, images[1:]))
    assert shares[0] < shares[1]


def test_what_cannot_be_quantized() -> None:
    checked, image = built(SMALL["paper"]), random_image(9, 9)
    with pytest.raises(InputError, match="at least one image"):
        quantize(checked, [])
    with pytest.raises(InputError, match="quantized already"):
        quantize(quantize(checked, [image]), [image])
    with pytest.raises(InputError, match="image must"):
        quantize(checked, [np.zeros((3, 3), int)])


def test_models_do_not_leave_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    quantize(built(SMALL["paper"]), [random_image(9, 9)])
    assert os.listdir(tmp_path) == []

"""Descriptor models: what they compute, in which pieces, and what they refuse."""

from __future__ import annotations

import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hamflow
from _networks import COARSE, SMALL, random_image, random_weights, reference
from _problems import run_python, with_threads
from hamflow import InputError, load_model
from hamflow.descriptors import Descriptor, pack_bits, session
from hamflow.descriptors import model as module
from hamflow.descriptors.architecture import Architecture
from hamflow.descriptors.graph import build_graph
from hamflow.descriptors.int8 import Scales, quantized_results
from hamflow.descriptors.model import HAND_CRAFTED, find_network, shipped_models
from hamflow.descriptors.network import NetworkDescriptor
from hamflow.descriptors.session import Runner
from hamflow.descriptors.tiles import default_tile_pixels, plan_tiles
from hamflow.descriptors.weights import Network, save_weights
from hamflow.errors import FileError

NETWORKS = pytest.mark.parametrize("network", SMALL.values(), ids=SMALL)
SIZES = [(1, 1), (3, 50), (50, 3), (16, 24), (17, 23)]


def loaded(
    network: Architecture, tile_pixels: int | None = None, threads: int | None = None
) -> NetworkDescriptor:
    whole = Network(network, random_weights(network))
    return NetworkDescriptor("a network", whole, "float", threads, tile_pixels)


def save(path: Path, network: Architecture, seed: int = 0, *, int8: bool = False) -> None:
    count = len(quantized_results(build_graph(network)))
    scales = Scales(np.full(count, 6 / 255, np.float32), np.full(count, 128, np.uint8))
    extra = {"note": "x"} | ({"precision": "int8"} if int8 else {})
    save_weights(path, network, random_weights(network, seed), extra, scales if int8 else None)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "net.safetensors"
    save(path, SMALL["paper"])
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
        with pytest.raises(InputError, match=r"^image (must|is None)"):
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
    fixed = loaded(network, threads=2)
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
    again = hamflow.load_model(sys.argv[1], threads=2)
    same = (model.bits(image) == before).all() and (again.bits(image) == before).all()
    model.release()
    del model
    os._exit(0 if same else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs fork")
@pytest.mark.parametrize("shared", [False, True])
def test_forked_processes(shared: bool, file: Path) -> None:
    name = "fast" if shared else str(file)
    run = run_python("-W", "ignore", "-c", FORKED, name, timeout=60)
    assert run.returncode == 0, run.stderr


# --- names and files -----------------------------------------------------------------------------


def test_pairs() -> None:
    model, image = load_model("pairs"), random_image(20, 30, 3)
    assert isinstance(model, Descriptor)
    assert model.architecture is None
    assert (model.name, model.fingerprint) == ("pairs", "pairs version 1")
    assert (model.bits(image) == hamflow.pair_bits(image)).all()
    phi = model.describe(image)
    assert phi.dtype == np.float32
    assert (abs(phi) == 1).all()
    assert (pack_bits(phi) == model.bits(image)).all()


CENSUS = """
import numpy as np

from hamflow._check import unit_intensities
from hamflow.descriptors.descriptor import HandCraftedDescriptor

OFFSETS = [(y, x) for y in range(-4, 5) for x in range(-4, 5) if y or x][8:72]


class CensusDescriptor(HandCraftedDescriptor):
    name = "census"

    def bits(self, image):
        gray = np.atleast_3d(unit_intensities(image)).mean(axis=2)
        height, width = gray.shape
        padded = np.pad(gray, 4, mode="edge")
        bits = np.zeros((height, width), np.uint64)
        for k, (y, x) in enumerate(OFFSETS):
            brighter = padded[4 + y : 4 + y + height, 4 + x : 4 + x + width] > gray
            bits |= brighter.astype(np.uint64) << np.uint64(k)
        return bits
"""
"""The example of docs/architecture.md, without its annotations."""


def test_a_new_descriptor_is_one_file_and_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "new_census.py").write_text(CENSUS)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(HAND_CRAFTED, "census", "new_census:CensusDescriptor")
    model, image = load_model("census"), random_image(40, 50, 3)
    assert isinstance(model, Descriptor)
    assert model.fingerprint == "census version 1"
    assert (pack_bits(model.describe(image)) == model.bits(image)).all()
    assert shipped_models()[-2:] == ["pairs", "census"]
    with pytest.raises(InputError, match="leave variant out"):
        load_model("census", variant="float")
    moved = hamflow.estimate(image, np.roll(image, 2, axis=1), "fast", model="census").flow
    assert np.allclose(np.median(moved, axis=(0, 1)), [2, 0], atol=0.1)


def test_files(file: Path) -> None:
    image = random_image(9, 8)
    models = [load_model(file), load_model(str(file))]
    for model in models:
        assert isinstance(model, Descriptor)
        assert model.architecture == SMALL["paper"]
        assert model.metadata["note"] == "x"
        exact = load_model(file, variant="float")
        assert (exact.bits(image) == loaded(SMALL["paper"]).bits(image)).all()
    assert models[1].name == str(file)
    assert repr(models[1]) == f"<hamflow descriptor {str(file)!r}>"


def test_variants_of_files(file: Path) -> None:
    image = random_image(40, 40, 3)
    usual, exact, small = (load_model(file, variant=v) for v in (None, "float", "int8"))
    assert (exact.bits(image) == loaded(SMALL["paper"]).bits(image)).all()
    assert (usual.bits(image) == small.bits(image)).all()
    assert (small.bits(image) != exact.bits(image)).any()
    assert "precision" not in exact.metadata
    assert usual.metadata["precision"] == "int8"
    weights = random_weights(SMALL["paper"])
    save_weights(file, SMALL["paper"], weights, {"precision": "float"})
    assert (load_model(file).bits(image) == exact.bits(image)).all()
    # The scales of a coarse network do not follow from its weights.
    save_weights(file, COARSE, random_weights(COARSE))
    assert "precision" not in load_model(file).metadata
    with pytest.raises(InputError, match="has no variant 'int8'; make it with 'hamflow export"):
        load_model(file, variant="int8")


def test_fingerprints(file: Path) -> None:
    other = file.with_name("other.safetensors")
    save(other, SMALL["paper"], 1, int8=True)
    names = [(file, None), (other, "float"), (other, "int8"), ("pairs", None), ("fast", None)]
    found = [load_model(name, variant=v).fingerprint for name, v in names]
    assert len(set(found)) == len(found)
    assert load_model(file).fingerprint == found[0]
    copy = file.parent.joinpath("elsewhere", file.name)
    copy.parent.mkdir()
    assert load_model(file.rename(copy)).fingerprint == found[0]


def test_names(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MODELS", file.parent)
    save(file.with_name("other.safetensors"), SMALL["paper"], 1, int8=True)
    assert shipped_models() == ["net", "other", "pairs"]
    assert load_model("net").name == "net"
    assert load_model("other").metadata["precision"] == "int8"
    assert "precision" not in load_model("other", variant="float").metadata
    with pytest.raises(InputError, match=r"no model 'nets'; choose one of net, other, pairs, or"):
        load_model("nets")
    with pytest.raises(InputError, match=r"no model 'nets'; choose one of net, other, or"):
        find_network("nets")


def test_shipped_networks_are_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = []
    real = session._open_session
    monkeypatch.setattr(session, "_open_session", lambda *a: opened.append(a[2]) or real(*a))
    image = random_image(12, 12)
    load = partial(load_model, "fast", variant="float", threads=1)
    load().bits(image)
    opened.clear()
    for _ in range(3):
        load().bits(image)
    assert opened == []
    with ThreadPoolExecutor(4) as pool:
        found = list(
            pool.map(
                lambda _: load_model("fast", variant="float", threads=1).bits(image), range(16)
            )
        )
    assert all((bits == found[0]).all() for bits in found)
    assert opened == []
    load_model("fast", variant="float", threads=2).bits(image)
    load_model("default", variant="float", threads=1).bits(image)
    assert opened == [2, 1]
    # After a release, the next image opens a session again.
    model = load()
    assert isinstance(model, NetworkDescriptor)
    model.release()
    assert (load().bits(image) == found[0]).all()
    assert opened == [2, 1, 1]


def test_shipped_models() -> None:
    for name in shipped_models():
        side = 5 if name == "coarse" else 20
        assert load_model(name).bits(random_image(20, 20, 3)).shape == (side, side)


def test_bad_arguments(file: Path) -> None:
    for nothing in (None, 3, b"pairs"):
        with pytest.raises(InputError, match="must be a name or the path of a file"):
            load_model(nothing)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="variant must be float or int8"):
        load_model("pairs", variant="int4")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="leave variant out"):
        load_model("pairs", variant="int8")
    for bad in (0, -1, 1.5, True, "2", 10**6):
        with pytest.raises(InputError, match="threads must be a whole number"):
            load_model(file, threads=bad)  # type: ignore[arg-type]
    for bad in (0, -1, 1.5, True, "2"):
        with pytest.raises(InputError, match="tile_pixels must be a whole number"):
            load_model(file, tile_pixels=bad)  # type: ignore[arg-type]


def test_bad_files(file: Path) -> None:
    folder = file.parent
    for path, message in {
        folder / "gone.safetensors": "does not exist",
        folder / "net": "does not end in .safetensors",
        folder / "net.h5": "does not end in .safetensors",
        folder / "net.onnx": "not read by Hamflow; give the .safetensors file",
        folder / "net.pt": "is a pickle",
    }.items():
        with pytest.raises(FileError, match=message) as caught:
            load_model(path)
        assert str(caught.value).startswith(str(path))


def test_what_onnxruntime_refuses() -> None:
    data = Network(SMALL["paper"], random_weights(SMALL["paper"])).onnx()
    with pytest.raises(FileError, match=r"^a network: cannot be run by onnxruntime"):
        Runner("a network", data[: len(data) // 2], None).run(np.zeros((1, 3, 4, 4), np.float32))


def test_floats_need_onnxruntime_and_bits_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    image = np.zeros((8, 8, 3), np.uint8)
    network = Network(SMALL["paper"], random_weights(SMALL["paper"]))
    with pytest.raises(InputError, match=r"^a network: .*pip install 'hamflow\[float\]'\.$"):
        Runner("a network", network.onnx(), None).run(np.zeros((1, 3, 4, 4), np.float32))
    assert load_model("fast").bits(image).shape == (8, 8)

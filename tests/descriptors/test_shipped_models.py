"""The models that come with the package."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

import hamflow
from _paths import ROOT
from hamflow import crf
from hamflow.crf import CrfConfig
from hamflow.datasets import demo_scene
from hamflow.datasets.synthetic import SyntheticScene
from hamflow.descriptors import pack_bits
from hamflow.descriptors.architecture import Architecture
from hamflow.descriptors.int8 import int8_graph
from hamflow.descriptors.model import MODELS, shipped_models
from hamflow.descriptors.weights import read_network, read_weights
from hamflow.matching import local_flow

NAMES = ["context", "default", "fast"]
CARDS = ROOT / "docs" / "models.md"
ARCHITECTURES = {
    "coarse": Architecture("coarse"),
    "context": Architecture("context", layers=5, channels=64),
    "default": Architecture(layers=7),
    "fast": Architecture(layers=5),
}
# SHA-256 of all numbers of the 8-bit ONNX files, which are derived from the float weights.
DERIVED = {
    "context": "2f2b4c318fd287b1",
    "default": "e071503124f97023",
    "fast": "568337c9a7c57679",
}


def test_names() -> None:
    assert shipped_models() == ["coarse", *NAMES, "pairs"]


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_architecture(name: str) -> None:
    model = hamflow.load_model(name)
    weights_of, _, metadata = read_weights(MODELS / f"{name}.safetensors")
    assert model.architecture == weights_of == ARCHITECTURES[name]
    assert metadata["model"] == "fq"
    assert metadata["license"] == "Apache-2.0"


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_bits_are_those_of_torch(name: str) -> None:
    torch = pytest.importorskip("torch")
    network = pytest.importorskip("hamflow.learning.network")
    architecture, weights, _ = read_weights(MODELS / f"{name}.safetensors")
    net = network.build_network(architecture)
    net.load(weights)
    image = demo_scene(160, 224, seed=3).image0
    x = torch.from_numpy(image.astype(np.float32) / 255).permute(2, 0, 1)[None]
    with torch.no_grad():
        phi = net(x)[0].contiguous().numpy()
    model = hamflow.load_model(name, variant="float")
    different = np.bitwise_count(model.bits(image) ^ pack_bits(phi)).mean() / 64
    assert different < 0.001


@pytest.mark.parametrize("name", NAMES)
def test_bits_tell_pixels_apart(name: str) -> None:
    bits = hamflow.load_model(name).bits(demo_scene(160, 224, seed=4).image0)
    signs = np.unpackbits(bits[..., None].view(np.uint8), axis=2, bitorder="little")
    share = signs.reshape(-1, 64).mean(axis=0)
    # No bit is constant, and hardly two pixels are alike.
    assert ((share > 0.02) & (share < 0.98)).all()
    assert len(np.unique(bits)) > 0.9 * bits.size


@pytest.mark.parametrize("name", NAMES)
def test_flow_of_a_rendered_scene(name: str) -> None:
    scene = demo_scene(160, 224, seed=5)
    model = hamflow.load_model(name)
    visible = ~scene.occluded

    def error(flow: np.ndarray) -> float:
        return float(np.hypot(*(flow - scene.flow)[visible].T).mean())

    local = error(local_flow(scene.image0, scene.image1, 64, describe=model.bits))
    result = crf.solve(
        bits0=model.bits(scene.image0),
        bits1=model.bits(scene.image1),
        image=scene.image0,
        window=64,
        config=CrfConfig(tau1=4, tau2=50),
    )
    assert error(result.flow) < local
    assert error(result.flow) < 1.5


@pytest.mark.parametrize("name", NAMES)
def test_identical_frames_do_not_move(name: str) -> None:
    image = demo_scene(64, 96, seed=6).image0
    flow = local_flow(image, image, 32, describe=hamflow.load_model(name).bits)
    assert (flow == 0).all()


def test_every_file_has_a_card() -> None:
    cards = CARDS.read_text(encoding="utf-8")
    for name in ("coarse", *NAMES):
        (file,) = MODELS.glob(f"{name}.*")
        assert hashlib.sha256(file.read_bytes()).hexdigest() in cards, file.name
    assert sum(file.stat().st_size for file in MODELS.iterdir()) < 4.8e6


def cells_of(scene: SyntheticScene) -> tuple[np.ndarray, np.ndarray]:
    """Where the centers of cells are in the second image, in cells, and which are visible."""
    flow, hidden = scene.flow[2::4, 2::4] / 4, scene.occluded[2::4, 2::4]
    return flow, ~hidden


def test_the_coarse_network_finds_cells() -> None:
    scene = demo_scene(160, 224, seed=5)
    model = hamflow.load_model("coarse")
    first, second = (model.bits(image) for image in (scene.image0, scene.image1))
    flow, visible = cells_of(scene)
    distance = np.bitwise_count(first[visible][:, None] ^ second.ravel()).argmin(axis=1)
    y, x = np.nonzero(visible)
    found = np.stack([distance % second.shape[1] - x, distance // second.shape[1] - y], axis=1)
    off = np.abs(found - flow[visible]).max(axis=1)
    # Of 2240 cells the best one is the right one or next to it.
    assert (off < 1.5).mean() > 0.8


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_8_bits(name: str) -> None:
    image = demo_scene(160, 224, seed=7).image0
    exact, small = (hamflow.load_model(name, variant=v).bits(image) for v in ("float", "int8"))
    assert 0 < np.bitwise_count(exact ^ small).mean() / 64 < 0.01
    assert (hamflow.load_model(name).bits(image) == small).all()


@pytest.mark.parametrize("name", NAMES)
def test_derived_numbers_of_8_bits(name: str) -> None:
    # On every machine the same, or a flow would depend on where it is computed.
    network = read_network(MODELS / f"{name}.safetensors")
    assert network.scales is not None
    constants = int8_graph(network.architecture, network.weights, network.scales).constants
    content = hashlib.sha256()
    for key, value in sorted(constants.items()):
        content.update(f"{key} {value.dtype} {value.shape}".encode() + value.tobytes())
    assert content.hexdigest()[:16] == DERIVED[name]

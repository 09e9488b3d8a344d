"""8-bit ONNX files for other programs: scales from images, numbers from the float weights."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest

from _networks import COARSE, SMALL, random_image, random_weights
from hamflow import InputError
from hamflow.descriptors import int8
from hamflow.descriptors.architecture import Architecture
from hamflow.descriptors.graph import build_graph
from hamflow.descriptors.int8 import Scales, int8_graph, last_layers, quantized_layers
from hamflow.descriptors.quantize import _quantizer_tensors, quantize
from hamflow.descriptors.session import Runner
from hamflow.descriptors.tiles import network_input
from hamflow.descriptors.weights import Network

pytest.importorskip("onnx")

NETWORKS = pytest.mark.parametrize("network", SMALL.values(), ids=SMALL)


def built(network: Architecture) -> Network:
    return Network(network, random_weights(network), {"note": "x"})


def flipped(network: Network, image: np.ndarray) -> float:
    """Return the share of signs that differ between the ONNX files."""
    exact, small = (
        Runner("small", network.onnx(variant), None).run(network_input(image)) > 0
        for variant in network.variants
    )
    return float((exact != small).mean())


def test_layers() -> None:
    paper, context = build_graph(SMALL["paper"]), build_graph(SMALL["context"])
    assert quantized_layers(paper) == ["layers.1", "layers.2"]
    assert last_layers(paper) == {"layers.2"}
    assert quantized_layers(context) == ["local.1", "local.2", "wide.0", "wide.1", "wide.2"]
    assert last_layers(context) == {"local.2", "wide.2"}


@NETWORKS
def test_bits_are_nearly_the_same(network: Architecture) -> None:
    images = [random_image(24, 32, 3, seed=seed) for seed in range(3)]
    exact = built(network)
    small = quantize(exact, images[:2])
    assert small.architecture == network
    assert small.notes == {"note": "x", "precision": "int8"}
    assert 0 < flipped(small, images[2]) < 0.08


@NETWORKS
def test_weights_are_those_of_the_quantizer(network: Architecture) -> None:
    # onnxruntime's quantizer rounds weights, too; only half a step in the last layers is ours.
    images = [random_image(24, 32, 3)]
    exact = built(network)
    exact.weights["layers.1.weight" if network.kind == "paper" else "wide.1.weight"][2] = 0
    theirs = _quantizer_tensors(exact, images)
    small = quantize(exact, images)
    assert small.scales is not None
    ours = int8_graph(network, exact.weights, small.scales).constants
    source = build_graph(network)
    for layer in quantized_layers(source):
        assert (ours[f"{layer}.weight.quantized"] == theirs[f"{layer}.weight_quantized"]).all()
        assert (ours[f"{layer}.weight.scale"] == theirs[f"{layer}.weight_scale"]).all()
        assert (ours[f"{layer}.bias.scale"] == theirs[f"{layer}.bias_quantized_scale"]).all()
        shift = ours[f"{layer}.bias.quantized"] - theirs[f"{layer}.bias_quantized"]
        half = theirs[f"{layer}_scale"] / 2 / theirs[f"{layer}.bias_quantized_scale"]
        expected = np.rint(half) if layer in last_layers(source) else 0
        assert (shift == expected).all()


def test_half_a_step_saves_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    images = [random_image(40, 40, 3, seed=seed) for seed in range(2)]
    small = quantize(built(SMALL["paper"]), images[:1])
    with_half = flipped(small, images[1])
    monkeypatch.setattr(int8, "last_layers", lambda _: set())
    assert with_half < flipped(small, images[1])


def test_it_is_reproducible_and_quiet(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    exact, images = built(SMALL["paper"]), [random_image(300, 400)]
    first, second = quantize(exact, images), quantize(exact, images)
    assert first.onnx("int8") == second.onnx("int8")
    captured = capfd.readouterr()
    assert (captured.out, captured.err, caplog.text) == ("", "", "")


def test_what_cannot_be_quantized() -> None:
    exact = built(SMALL["paper"])
    with pytest.raises(InputError, match="at least one image"):
        quantize(exact, [])
    with pytest.raises(InputError, match="image must"):
        quantize(exact, [np.zeros((3, 3), int)])


def test_without_onnx(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(InputError, match=r"pip install 'hamflow\[quantize\]'"):
        quantize(built(SMALL["paper"]), [random_image(9, 9)])


def test_no_files_are_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    quantize(built(SMALL["paper"]), [random_image(9, 9)])
    assert os.listdir(tmp_path) == []


def test_extreme_weights() -> None:
    network = SMALL["paper"]
    weights = random_weights(network)
    weights["layers.1.weight"][0] = 0
    weights["layers.1.weight"][1] = 1e-30
    weights["layers.2.bias"][:] = 1e30
    scales = Scales(np.full(4, 0.01, np.float32), np.full(4, 128, np.uint8))
    constants = int8_graph(network, weights, scales).constants
    assert not constants["layers.1.weight.quantized"][:2].any()
    assert (constants["layers.2.bias.quantized"] == 2**31 - 1).all()


@pytest.mark.parametrize(
    ("scale", "zero_point", "message"),
    [
        (np.full(3, 0.1, np.float32), np.zeros(4, np.uint8), "int8.scale must be an array of 4"),
        (np.full(4, 0.1), np.zeros(4, np.uint8), "float32 numbers"),
        (np.full(4, 0.1, np.float32), np.zeros(4, np.int8), "int8.zero_point must be an array"),
        (np.zeros(4, np.float32), np.zeros(4, np.uint8), "int8.scale must have values from"),
        (np.full(4, np.nan, np.float32), np.zeros(4, np.uint8), "must have values from 1e-06"),
    ],
)
def test_wrong_scales(scale: np.ndarray, zero_point: np.ndarray, message: str) -> None:
    network = SMALL["paper"]
    with pytest.raises(InputError, match=message):
        Network(network, random_weights(network), {}, Scales(scale, zero_point))
    with pytest.raises(InputError, match="variant 'int4', but there is none"):
        Network(network, random_weights(network), {"precision": "int4"})


def test_what_has_no_8_bit_file() -> None:
    scales = Scales(np.full(10, 0.1, np.float32), np.zeros(10, np.uint8))
    coarse = Network(COARSE, random_weights(COARSE), {}, scales)
    for network in (built(SMALL["paper"]), coarse):
        with pytest.raises(InputError, match="no 8-bit ONNX file"):
            network.onnx("int8")

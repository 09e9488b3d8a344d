"""``hamflow export``."""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from _networks import SMALL, random_image, random_weights
from hamflow import load_model
from hamflow.cli import export
from hamflow.cli.main import main
from hamflow.descriptors.model import find_network
from hamflow.descriptors.weights import Network, save_weights

NETWORK = SMALL["paper"]

COMMAND = ("export",)


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    path = tmp_path / "net.safetensors"
    save_weights(path, NETWORK, random_weights(NETWORK), {"note": "x"})
    return path


@pytest.fixture
def few_scenes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "calibration_images", lambda: [random_image(24, 32, 3)])


def test_export(weights: Path, out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = out / "net.onnx"
    assert main(["export", str(weights), "-o", str(file)]) == 0
    data = file.read_bytes()
    assert data == Network(NETWORK, random_weights(NETWORK), {"note": "x"}).onnx()
    printed = capsys.readouterr()
    assert printed.err == ""
    assert f"Wrote {file}: the network {weights}, {len(data)} bytes" in printed.out
    assert hashlib.sha256(data).hexdigest() in printed.out
    assert "%" not in printed.out


@pytest.mark.usefixtures("few_scenes")
@pytest.mark.parametrize("suffix", [".onnx", ".safetensors"])
def test_int8(suffix: str, weights: Path, out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = out / f"small{suffix}"
    assert main(["export", str(weights), "-o", str(file), "--variant", "int8"]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    agreement = re.search(r"([\d.]+)% of the bits are the same", printed.out)
    assert agreement is not None
    assert 90 < float(agreement[1]) < 100
    if suffix == ".onnx":
        onnx = pytest.importorskip("onnx")
        noted = {entry.key: entry.value for entry in onnx.load(file).metadata_props}
    else:
        noted = load_model(file).metadata
        image = random_image(30, 30, 3)
        exact = load_model(file, variant="float").bits(image)
        assert (exact == load_model(weights, variant="float").bits(image)).all()
        assert (exact != load_model(file).bits(image)).any()
    assert (noted["precision"], noted["note"]) == ("int8", "x")


def test_scenes() -> None:
    images = export.calibration_images()
    assert len(images) == 6
    for image in images:
        assert image.dtype == np.uint8
        assert image.shape == (160, 256, 3)
        assert image.std() > 5
    assert len({image.tobytes() for image in images}) == 6


def test_shipped_models_need_no_onnx(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    shipped = find_network("fast")
    for options, variant in (([], "float"), (["--variant", "int8"], "int8")):
        file = out / f"{variant}.onnx"
        assert main(["export", "fast", "-o", str(file), *options]) == 0
        assert file.read_bytes() == shipped.onnx(variant)


def test_the_variant_of_a_file_is_the_one_it_was_written_for(out: Path) -> None:
    image = random_image(30, 30, 3)
    for variant in ("float", "int8"):
        file = out / f"{variant}.safetensors"
        assert main(["export", "fast", "-o", str(file), "--variant", variant]) == 0
        assert find_network(file).usual_variant == variant
        wanted = load_model("fast", variant=variant).bits(image)
        assert (load_model(file).bits(image) == wanted).all()
    # A file that holds the float weights only.
    assert find_network(out / "float.safetensors").scales is None


def test_bad_arguments(weights: Path, out: Path, fails: Callable[..., str]) -> None:
    file = out / "net.onnx"
    assert "must end in .onnx or .safetensors" in fails(weights, "-o", out / "net.pt")
    assert "does not exist; create it first" in fails(weights, "-o", out / "gone" / "net.onnx")
    assert "does not exist" in fails(out / "gone.safetensors", "-o", file)
    assert "is a pickle" in fails(out / "gone.pt", "-o", file)
    assert "not read by Hamflow" in fails(out / "gone.onnx", "-o", file)
    assert "choose one of" in fails("nobody", "-o", file)
    assert "is no network" in fails("pairs", "-o", file)
    assert "are the same file" in fails(weights, "-o", weights)
    assert os.listdir(out) == []


def test_without_onnx(
    weights: Path, out: Path, fails: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    assert "pip install 'hamflow[quantize]'" in fails(
        weights, "-o", out / "net.onnx", "--variant", "int8"
    )
    assert os.listdir(out) == []

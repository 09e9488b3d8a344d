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
from hamflow.descriptors import model as module
from hamflow.descriptors.graph import build_model
from hamflow.descriptors.weights import save_weights

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
    assert data == build_model(NETWORK, random_weights(NETWORK), {"note": "x"})
    printed = capsys.readouterr()
    assert printed.err == ""
    assert f"Wrote {file}: the paper network, {len(data)} bytes" in printed.out
    assert hashlib.sha256(data).hexdigest() in printed.out
    assert "%" not in printed.out
    image = random_image(9, 7, 3)
    assert (load_model(file).bits(image) == load_model(weights).bits(image)).all()


@pytest.mark.usefixtures("few_scenes")
def test_int8(weights: Path, out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = out / "net.int8.onnx"
    assert main(["export", str(weights), "-o", str(file), "--int8"]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    agreement = re.search(r"([\d.]+)% of the bits are those of the network", printed.out)
    assert agreement is not None
    assert 90 < float(agreement[1]) < 100
    assert load_model(file).metadata["precision"] == "int8"
    assert load_model(file).metadata["note"] == "x"


def test_scenes() -> None:
    images = export.calibration_images()
    assert len(images) == 6
    for image in images:
        assert image.dtype == np.uint8
        assert image.shape == (160, 256, 3)
        assert image.std() > 5
    assert len({image.tobytes() for image in images}) == 6


@pytest.mark.usefixtures("few_scenes")
def test_other_sources(weights: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MODELS", weights.parent)
    first, second = out / "a.onnx", out / "b.onnx"
    assert main(["export", "net", "-o", str(first)]) == 0
    assert main(["export", str(first), "-o", str(second), "--int8"]) == 0
    assert load_model(second).metadata["precision"] == "int8"


@pytest.mark.usefixtures("few_scenes")
def test_already_int8(
    weights: Path, out: Path, fails: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    file = out / "a.onnx"
    assert main(["export", str(weights), "-o", str(file), "--int8"]) == 0
    capsys.readouterr()
    assert "quantized already" in fails(file, "-o", out / "b.onnx", "--int8")
    assert os.listdir(out) == ["a.onnx"]


def test_bad_arguments(weights: Path, out: Path, fails: Callable[..., str]) -> None:
    file = out / "net.onnx"
    assert "let it end in .onnx" in fails(weights, "-o", out / "net.pt")
    assert "does not exist; create it first" in fails(weights, "-o", out / "gone" / "net.onnx")
    assert "does not exist" in fails(out / "gone.safetensors", "-o", file)
    assert "is a pickle" in fails(out / "gone.pt", "-o", file)
    assert "choose one of" in fails("nobody", "-o", file)
    assert "is no network" in fails("pairs", "-o", file)
    assert os.listdir(out) == []
    copy = out / "copy.onnx"
    copy.write_bytes(build_model(NETWORK, random_weights(NETWORK)))
    assert "are the same file" in fails(copy, "-o", copy)


def test_without_onnx(
    weights: Path, out: Path, fails: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    assert "pip install 'hamflow[export]'" in fails(weights, "-o", out / "net.onnx")
    assert os.listdir(out) == []

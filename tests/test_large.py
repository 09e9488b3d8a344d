"""From files to files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hamflow
from _problems import same_bytes
from _route import SMALL, texture
from _tiles import apart, scene
from hamflow import Estimator, FileError, InputError
from hamflow.cli.main import main
from hamflow.large import estimate_files
from hamflow.pipeline import needs as needs_module
from hamflow.pipeline import plan as plan_module

pytest.importorskip("tifffile")


@pytest.fixture
def small_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiles of at most 200×200 pixels, and fields on the way in files."""
    monkeypatch.setattr(plan_module, "_LARGEST_TILE", 200 * 200)
    monkeypatch.setattr("hamflow.pipeline.canvas.IN_MEMORY", 1000)
    assert needs_module.IN_MEMORY > 1000


@pytest.fixture
def images(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / f"{k}.npy" for k in range(2)]
    pair = scene(4)
    for path, image in zip(paths, (pair.image0, pair.image1), strict=True):
        np.save(path, image)
    return paths


@pytest.mark.usefixtures("small_tiles")
def test_files(tmp_path: Path, images: list[Path]) -> None:
    """The flow is that of the whole, in both formats; nothing else is left behind."""
    estimator = Estimator("fast", max_memory="118MB")
    told: dict[str, Any] = {}
    for suffix in ("npy", "tif"):
        out = tmp_path / f"flow.{suffix}", tmp_path / f"back.{suffix}"
        told = estimate_files(*images, out[0], backward=out[1], estimator=estimator)
    assert told["tiles"] > 1
    assert told["width"] == 502
    assert json.dumps(told)
    whole = Estimator("fast").estimate(*images)
    for name, expected in (("flow", whole.flow), ("back", whole.backward)):
        found = [hamflow.read_flow(tmp_path / f"{name}.{suffix}") for suffix in ("npy", "tif")]
        assert same_bytes(*found)
        assert expected is not None
        assert (apart(found[0], expected) > 1).mean() < 0.001
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {
        "0.npy",
        "1.npy",
        *(f"{n}.{s}" for n in ("flow", "back") for s in ("npy", "tif")),
    }


@pytest.mark.usefixtures("small_tiles")
def test_the_command(
    tmp_path: Path, images: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    flow, told = tmp_path / "flow.tif", tmp_path / "told.json"
    words = [str(path) for path in (*images, "-o", flow, "--json", told)]
    assert main(["pair", *words, "--preset", "fast", "--max-memory", "118MB"]) == 0
    printed = capsys.readouterr().out
    assert "tiles" in printed
    assert str(flow) in printed
    assert json.loads(told.read_text(encoding="utf-8"))["tiles"] > 1
    assert hamflow.read_flow(flow).shape == (302, 502, 2)
    # With pictures the result is in memory, and written as usual.
    picture = tmp_path / "flow.png"
    words = [str(path) for path in (*images, "-o", tmp_path / "f.flo", "--viz", picture)]
    assert main(["pair", *words, "--preset", "fast", "--max-memory", "118MB"]) == 0
    assert picture.exists()


@pytest.mark.usefixtures("small_tiles")
def test_a_cut(tmp_path: Path) -> None:
    images = texture(300, 400), texture(300, 400, seed=5)
    for suffix in ("npy", "tif"):
        flow = tmp_path / f"flow.{suffix}"
        told = estimate_files(*images, flow, estimator=Estimator("fast"))
        assert told["cut"]
        assert not hamflow.read_flow(flow).any()


def test_interrupted(tmp_path: Path, images: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """No file that looks whole, and nothing else."""

    def stop(*args: Any, **more: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("hamflow.pipeline.tiles.refined", stop)
    with pytest.raises(KeyboardInterrupt):
        estimate_files(*images, tmp_path / "flow.npy", estimator=Estimator("fast"))
    assert {path.name for path in tmp_path.iterdir()} == {"0.npy", "1.npy"}


def test_what_is_refused(tmp_path: Path, images: list[Path]) -> None:
    estimator = Estimator(SMALL)
    with pytest.raises(FileError, match=r"name a \.npy, \.tif or \.flo file"):
        estimate_files(*images, tmp_path / "flow.pfm", estimator=estimator)
    with pytest.raises(InputError, match="backward needs both directions"):
        estimate_files(
            *images,
            tmp_path / "f.npy",
            backward=tmp_path / "b.npy",
            estimator=Estimator("paper"),
        )
    with pytest.raises(InputError, match="must have one size"):
        estimate_files(images[0], texture(20, 30), tmp_path / "f.npy", estimator=estimator)
    with pytest.raises(InputError, match=r"need at least \d+ MB"):
        tight = Estimator("fast", max_memory="30MB")
        estimate_files(*images, tmp_path / "f.npy", estimator=tight)
    assert not (tmp_path / "f.npy").exists()


def test_images_in_npy_files(images: list[Path]) -> None:
    arrays = [np.load(path) for path in images]
    assert same_bytes(
        Estimator(SMALL).estimate(*images).flow, Estimator(SMALL).estimate(*arrays).flow
    )

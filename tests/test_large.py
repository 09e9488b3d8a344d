"""From files to files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hamflow
from _failing import full_disk
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


@pytest.fixture
def tight(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> int:
    """A limit of memory into which results do not fit, as if they were much larger."""
    monkeypatch.setattr(needs_module, "_ASSESSED", 2000)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return hamflow.plan(502, 302, "fast").smallest + 1_000_000


FIELDS = ("flow", "backward", "occlusion", "confidence")


@pytest.mark.usefixtures("small_tiles")
def test_files(tmp_path: Path, images: list[Path]) -> None:
    """Everything is as in the whole, in all formats; nothing else is left behind."""
    estimator = Estimator("fast", max_memory="122MB")
    told: dict[str, Any] = {}
    for suffix in ("npy", "tif"):
        paths = {name: tmp_path / f"{name}.{suffix}" for name in FIELDS}
        told = estimate_files(*images, **paths, estimator=estimator)
    assert told["tiles"] > 1
    assert told["width"] == 502
    assert json.dumps(told)
    whole = Estimator("fast").estimate(*images)
    for name, expected in (("flow", whole.flow), ("backward", whole.backward)):
        found = [hamflow.read_flow(tmp_path / f"{name}.{suffix}") for suffix in ("npy", "tif")]
        assert same_bytes(*found)
        assert expected is not None
        assert (apart(found[0], expected) > 1).mean() < 0.001
    hidden, certain = (np.load(tmp_path / f"{name}.npy") for name in FIELDS[2:])
    assert (hidden.dtype, certain.dtype) == (np.bool_, np.float32)
    assert (hidden != whole.occlusion).mean() < 0.001
    assert (np.abs(certain - whole.confidence) > 0.1).mean() < 0.002
    # In TIFF files they are the pictures that write_image makes.
    for name, values in (("occlusion", hidden), ("confidence", certain)):
        hamflow.write_image(tmp_path / "picture.png", values)
        pictures = [hamflow.read_image(tmp_path / f) for f in (f"{name}.tif", "picture.png")]
        assert same_bytes(*pictures)
    (tmp_path / "picture.png").unlink()
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"0.npy", "1.npy", *(f"{n}.{s}" for n in FIELDS for s in ("npy", "tif"))}


@pytest.mark.usefixtures("small_tiles")
def test_only_what_is_asked_for(tmp_path: Path, images: list[Path]) -> None:
    """A field that others are computed from is not kept; and .flo files have the usual bytes."""
    estimator = Estimator("fast", max_memory="122MB")
    flow, mask, usual = tmp_path / "flow.flo", tmp_path / "mask.npy", tmp_path / "usual.flo"
    told = estimate_files(*images, flow, occlusion=mask, estimator=estimator)
    assert "assessment" in told["seconds"]
    assert {path.name for path in tmp_path.iterdir()} == {"0.npy", "1.npy", flow.name, mask.name}
    hamflow.write_flow(usual, hamflow.read_flow(flow))
    assert usual.read_bytes() == flow.read_bytes()
    told = estimate_files(*images, flow, estimator=estimator)
    assert "assessment" not in told["seconds"]


def test_a_result_that_does_not_fit(
    tmp_path: Path, images: list[Path], tight: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is in temporary files that nobody sees."""
    monkeypatch.setattr("hamflow.pipeline.canvas.IN_MEMORY", 1000)
    estimator = Estimator("fast", max_memory=tight)
    assert estimator.plan((302, 502)).mapped
    told: list[int] = []
    result = estimator.estimate(
        *images, progress=lambda *_: told.append(len(list(tmp_path.iterdir())))
    )
    assert max(told) > 3  # a file for each field
    assert {path.name for path in tmp_path.iterdir()} == {"0.npy", "1.npy"}
    whole = Estimator("fast").estimate(*images)
    assert (apart(result.flow, whole.flow) > 1).mean() < 0.001
    assert (result.occlusion != whole.occlusion).mean() < 0.001
    for name in FIELDS:
        array = getattr(result, name)
        assert type(array) is np.ndarray
        array[0, 0] = 1  # as any other array
    assert result.flow[0, 0, 0] == 1


def test_a_full_disk(
    tmp_path: Path, images: list[Path], tight: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is known before anything is written, and no file is left."""
    monkeypatch.setattr("os.posix_fallocate", full_disk, raising=False)
    for suffix in ("npy", "tif", "flo"):
        with pytest.raises(FileError, match=rf"flow\.{suffix}: .* because the disk is full"):
            estimate_files(*images, tmp_path / f"flow.{suffix}", estimator=Estimator("fast"))
    with pytest.raises(FileError, match=r"No space left.*TMPDIR"):
        Estimator("fast", max_memory=tight).estimate(*images)
    assert {path.name for path in tmp_path.iterdir()} == {"0.npy", "1.npy"}


@pytest.mark.usefixtures("small_tiles")
def test_the_command(
    tmp_path: Path, images: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    flow, told = tmp_path / "flow.tif", tmp_path / "told.json"
    words = [str(path) for path in (*images, "-o", flow, "--json", told)]
    assert main(["pair", *words, "--preset", "fast", "--max-memory", "122MB"]) == 0
    printed = capsys.readouterr().out
    assert "tiles" in printed
    assert str(flow) in printed
    assert json.loads(told.read_text(encoding="utf-8"))["tiles"] > 1
    assert hamflow.read_flow(flow).shape == (302, 502, 2)
    # With pictures the result is in memory, and written as usual.
    picture = tmp_path / "flow.png"
    words = [str(path) for path in (*images, "-o", tmp_path / "f.flo", "--viz", picture)]
    assert main(["pair", *words, "--preset", "fast", "--max-memory", "122MB"]) == 0
    assert picture.exists()


def test_the_command_with_masks(
    tmp_path: Path, images: list[Path], tight: int, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [str(path) for path in (*images, "-o", tmp_path / "f.flo", "--viz")]
    limit = ["--preset", "fast", "--max-memory", str(tight)]
    assert main(["pair", *words, str(tmp_path / "flow.png"), *limit]) == 1
    said = capsys.readouterr().err
    assert "flow.png cannot be written part by part" in said.replace("\n", " ")
    masks = ["--occlusion", str(tmp_path / "mask.tif"), "--confidence", str(tmp_path / "c.npy")]
    assert main(["pair", *words[:-1], *masks, *limit]) == 0
    assert hamflow.read_image(tmp_path / "mask.tif").shape[:2] == (302, 502)
    # Values of a mask can be written without a limit, too.
    words = [str(path) for path in (*images, "-o", tmp_path / "g.npy", "--confidence")]
    assert main(["pair", *words, str(tmp_path / "d.npy"), "--preset", "fast"]) == 0
    assert np.abs(np.load(tmp_path / "c.npy") - np.load(tmp_path / "d.npy")).mean() < 0.01


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

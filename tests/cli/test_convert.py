"""``hamflow convert``."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import hamflow
from hamflow.cli import convert as module
from hamflow.cli.main import main
from hamflow.io import FLOW_SUFFIXES

pytest.importorskip("h5py")

COMMAND = ("convert",)


@pytest.fixture
def flow() -> NDArray[np.float32]:
    # Multiples of 1/64, which KITTI's files keep.
    vectors = np.random.default_rng(0).integers(-999, 999, (5, 6, 2)).astype(np.float32) / 64
    vectors[2, 3] = np.nan
    return vectors


@pytest.fixture
def folder(tmp_path: Path, flow: NDArray[np.float32]) -> Path:
    """Three flow files in two folders, and something else."""
    root = tmp_path / "in"
    (root / "deep" / "er").mkdir(parents=True)
    hamflow.write_flow(root / "a.flo", flow)
    hamflow.write_flow(root / "deep" / "b.v2.NPY", flow + 1)
    hamflow.write_flow(root / "deep" / "er" / "c.pfm", flow + 2)
    (root / "deep" / "notes.txt").write_text("hello")
    return root


def run(*args: object) -> int:
    return main(["convert", *map(str, args)])


def same(path: Path, flow: NDArray[np.float32]) -> bool:
    return np.array_equal(hamflow.read_flow(path), flow, equal_nan=True)


def files(root: Path) -> list[str]:
    return sorted(str(p.relative_to(root)) for p in root.rglob("*") if p.is_file())


# --- one file ------------------------------------------------------------------------------------


@pytest.mark.parametrize("old", FLOW_SUFFIXES)
def test_every_format_to_every_other(
    tmp_path: Path, flow: NDArray[np.float32], old: str, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / f"in{old}"
    hamflow.write_flow(source, flow)
    for new in FLOW_SUFFIXES:
        target = tmp_path / f"out{new}"
        assert run(source, target) == 0
        assert same(target, flow)
        assert capsys.readouterr().out == f"Wrote {target}.\n"


def test_existing_file(
    tmp_path: Path, folder: Path, flow: NDArray[np.float32], fails: Callable[..., str]
) -> None:
    target = tmp_path / "out.npz"
    hamflow.write_flow(target, flow + 9)
    assert "--overwrite" in fails(folder / "a.flo", target)
    assert same(target, flow + 9)
    assert run(folder / "a.flo", target, "--overwrite") == 0
    assert same(target, flow)


def test_kitti_range(
    tmp_path: Path,
    flow: NDArray[np.float32],
    fails: Callable[..., str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    source, target = tmp_path / "in.flo", tmp_path / "out.kitti.png"
    flow[0, 0], flow[1, 1], flow[4, 5] = (512, 0), (0, -512.5), (-512, 511.984375)
    hamflow.write_flow(source, flow)
    message = fails(source, target)
    assert str(source) in message
    assert "--clip-invalid" in message
    assert not target.exists()
    assert run(source, target, "--clip-invalid") == 0
    assert "2 pixels outside of KITTI's range" in capsys.readouterr().out
    flow[0, 0] = flow[1, 1] = np.nan
    assert same(target, flow)


def test_clipping_is_for_kitti_alone(
    tmp_path: Path, folder: Path, fails: Callable[..., str]
) -> None:
    target = tmp_path / "out.npy"
    assert "--clip-invalid is for KITTI's format" in fails(
        folder / "a.flo", target, "--clip-invalid"
    )
    args = (folder, tmp_path / "out", "--to", ".npy", "--clip-invalid")
    assert "--clip-invalid is for KITTI's format" in fails(*args)
    assert sorted(os.listdir(tmp_path)) == ["in"]


def test_wrong_single_files(tmp_path: Path, folder: Path, fails: Callable[..., str]) -> None:
    source = folder / "a.flo"
    before = source.read_bytes()
    assert "suffix '.xyz'" in fails(source, tmp_path / "out.xyz")
    assert "does not exist" in fails(folder / "gone.flo", tmp_path / "out.npy")
    assert "create it first" in fails(source, tmp_path / "missing" / "out.npy")
    assert "is a folder" in fails(source, tmp_path)
    assert "same file" in fails(source, source, "--overwrite")
    link = tmp_path / "link.flo"
    link.symlink_to(source)
    assert "same file" in fails(source, link, "--overwrite")
    assert "are for folders" in fails(source, tmp_path / "out.npy", "--to", ".npy")
    assert source.read_bytes() == before
    assert sorted(os.listdir(tmp_path)) == ["in", "link.flo"]


# --- a folder ------------------------------------------------------------------------------------


@pytest.mark.parametrize("to", [".flo5", "flo5", ".FLO5"])
def test_folder(
    tmp_path: Path,
    folder: Path,
    flow: NDArray[np.float32],
    to: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "new" / "out"
    assert run(folder, out, "--to", to) == 0
    assert files(out) == ["a.flo5", "deep/b.v2.flo5", "deep/er/c.flo5"]
    assert same(out / "a.flo5", flow)
    assert same(out / "deep" / "b.v2.flo5", flow + 1)
    assert same(out / "deep" / "er" / "c.flo5", flow + 2)
    printed = capsys.readouterr()
    assert printed.out == f"Wrote 3 files to {out}.\n"
    assert printed.err == ""


def test_existing_files_are_skipped(
    tmp_path: Path, folder: Path, flow: NDArray[np.float32], capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "a.npz").write_text("mine")
    assert run(folder, out, "--to", ".npz") == 0
    assert (out / "a.npz").read_text() == "mine"
    assert "Wrote 2 files" in (said := capsys.readouterr().out)
    assert "1 file already existed" in said
    assert run(folder, out, "--to", ".npz", "--overwrite") == 0
    assert same(out / "a.npz", flow)


def test_broken_files_do_not_stop_the_rest(
    tmp_path: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "bad.flo").write_bytes(b"PIEH")
    far = np.full((2, 2, 2), 600, np.float32)
    hamflow.write_flow(folder / "far.npy", far)
    out = tmp_path / "out"
    assert run(folder, out, "--to", "kitti.png") == 1
    assert files(out) == ["a.kitti.png", "deep/b.v2.kitti.png", "deep/er/c.kitti.png"]
    printed = capsys.readouterr()
    assert printed.out == f"Wrote 3 files to {out}.\n"
    lines = printed.err.splitlines()
    assert len(lines) == 3
    assert lines[0].startswith(f"{folder / 'bad.flo'}: ")
    assert lines[1].startswith(f"{folder / 'far.npy'}: ")
    assert lines[2] == "hamflow: 2 of 5 files could not be converted; the reasons are above."
    # What can be mended is mended, and nothing is done twice.
    (folder / "bad.flo").unlink()
    assert run(folder, out, "--to", ".kitti.png", "--clip-invalid") == 0
    assert np.isnan(hamflow.read_flow(out / "far.kitti.png")).all()
    assert "4 pixels outside" in (said := capsys.readouterr().out)
    assert "3 files already existed" in said


def test_two_files_of_one_name(
    tmp_path: Path, folder: Path, flow: NDArray[np.float32], fails: Callable[..., str]
) -> None:
    hamflow.write_flow(folder / "a.png", flow + 3, format="kitti")
    out = tmp_path / "out"
    assert "would both become" in fails(folder, out, "--to", ".npy")
    assert not out.exists()
    assert run(folder, out, "--to", ".npy", "--from", "png") == 0
    assert files(out) == ["a.npy"]
    assert same(out / "a.npy", flow + 3)


def test_kitti_by_its_own_names(
    tmp_path: Path, folder: Path, flow: NDArray[np.float32], fails: Callable[..., str]
) -> None:
    """A plain .png is written only if KITTI's format is asked for by name."""
    target, out = tmp_path / "000000_10.png", tmp_path / "out"
    message = fails(folder / "a.flo", target)
    assert f"{tmp_path / '000000_10'}.kitti.png" in message
    assert "--to must be one of .flo, .kitti.png" in fails(folder, out, "--to", "png")
    assert sorted(os.listdir(tmp_path)) == ["in"]
    assert run(folder / "a.flo", target, "--to", "kitti") == 0
    assert same(target, flow)
    assert "needs the suffix .png" in fails(folder / "a.flo", tmp_path / "b.npy", "--to", "kitti")
    assert "only --to kitti" in fails(folder / "a.flo", tmp_path / "b.npy", "--to", "npy")
    assert run(folder, out, "--to", "kitti", "--clip-invalid") == 0
    assert files(out) == ["a.png", "deep/b.v2.png", "deep/er/c.png"]
    # And back, from both kinds of names.
    hamflow.write_flow(out / "d.kitti.png", flow)
    back = tmp_path / "back"
    assert run(out, back, "--to", "flo", "--from", "png") == 0
    assert files(back) == ["a.flo", "d.flo", "deep/b.v2.flo", "deep/er/c.flo"]
    assert same(back / "d.flo", flow)


def test_in_place(folder: Path, flow: NDArray[np.float32]) -> None:
    before = (folder / "a.flo").read_bytes()
    for option in ([], ["--overwrite"]):
        assert run(folder, folder, "--to", ".flo", *option) == 0
        assert (folder / "a.flo").read_bytes() == before
        assert same(folder / "deep" / "b.v2.flo", flow + 1)
        (folder / "deep" / "b.v2.flo").unlink()
        (folder / "deep" / "er" / "c.flo").unlink()


def test_output_inside_the_input(folder: Path) -> None:
    for _ in range(2):
        assert run(folder, folder / "npy", "--to", ".npy") == 0
        assert files(folder / "npy") == ["a.npy", "deep/b.v2.npy", "deep/er/c.npy"]


def test_wrong_folders(tmp_path: Path, folder: Path, fails: Callable[..., str]) -> None:
    out = tmp_path / "out"
    assert "with --to: one of .flo, " in fails(folder, out)
    assert "--to must be one of" in fails(folder, out, "--to", ".xyz")
    assert "--from must be one of" in fails(folder, out, "--to", ".flo", "--from", "xyz")
    assert "contains no flow files" in fails(folder, out, "--to", ".flo", "--from", ".flo5")
    assert not out.exists()
    out.write_text("")
    assert "is a file" in fails(folder, out, "--to", ".flo")
    assert "cannot be created as a folder" in fails(folder, out / "deeper", "--to", ".flo")


def test_without_h5py(
    tmp_path: Path,
    folder: Path,
    fails: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def never(*_: object) -> None:
        raise AssertionError("too late")

    monkeypatch.setitem(sys.modules, "h5py", None)
    monkeypatch.setattr(module, "read_flow", never)
    assert "hamflow[flo5]" in fails(folder / "a.flo", tmp_path / "a.flo5")
    assert "hamflow[flo5]" in fails(folder, tmp_path / "out", "--to", ".flo5")

"""What the operating system refuses is a FileError and an OSError at once."""

from __future__ import annotations

import copy
import errno
import io
import os
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import hamflow
from hamflow._tables import config_of_file
from hamflow.crf import CrfConfig
from hamflow.datasets.folder import FolderDataset
from hamflow.datasets.sintel import SintelDataset
from hamflow.datasets.synthetic import load_textures
from hamflow.errors import FileAccessError, FileError, InputError, MissingFileError, file_access
from hamflow.io import FLOW_SUFFIXES, _reading, check_flow_path
from hamflow.io._text import read_rows
from hamflow.io.video import open_frames
from hamflow.motion.tracks import read_points

IMAGE = np.zeros((16, 16, 3), np.uint8)
READERS: dict[str, Callable[[Path], object]] = {
    "read_image": hamflow.read_image,
    **{f"read_flow {s}": lambda p, s=s: hamflow.read_flow(p.with_suffix(s)) for s in FLOW_SUFFIXES},
    "load_model": lambda p: hamflow.load_model(p.with_suffix(".safetensors")),
    "estimate, first": lambda p: hamflow.estimate(p, IMAGE),
    "estimate, second": lambda p: hamflow.estimate(IMAGE, p),
    "FolderDataset": FolderDataset,
    "SintelDataset": SintelDataset,
    "load_textures": load_textures,
    "open_frames": open_frames,
    "Estimator, TOML": lambda p: hamflow.Estimator(p.with_suffix(".toml")),
    "config_of_file": lambda p: config_of_file(p, dict),
    "CrfConfig.updated": lambda p: CrfConfig().updated(p),
    "read_rows": read_rows,
    "read_points": read_points,
}


@pytest.mark.parametrize("name", READERS)
def test_missing_files(tmp_path: Path, name: str) -> None:
    path = tmp_path / "gone"
    with pytest.raises(FileNotFoundError) as caught:
        READERS[name](path)
    error = caught.value
    assert isinstance(error, MissingFileError)
    assert isinstance(error, FileError)
    assert isinstance(error, ValueError)  # as before
    assert error.errno == errno.ENOENT
    assert error.filename is not None
    assert error.filename.startswith(str(path))
    assert str(error).startswith(f"{error.filename}: does not exist; ")
    assert "\n" not in str(error)


def test_folder_to_write_to_is_missing(tmp_path: Path) -> None:
    for write in (lambda p: hamflow.write_flow(p, np.zeros((1, 1, 2))), check_flow_path):
        with pytest.raises(FileNotFoundError, match="does not exist; create it first"):
            write(tmp_path / "gone" / "a.flo")


def test_missing_part_of_a_pair(tmp_path: Path) -> None:
    hamflow.write_image(tmp_path / "frame1.png", IMAGE)
    with pytest.raises(FileNotFoundError, match=r"frame2.png: does not exist; expected is a tree"):
        FolderDataset(tmp_path)


def test_frame_that_vanished(tmp_path: Path) -> None:
    hamflow.write_image(tmp_path / "a.png", IMAGE)
    frames = iter(open_frames(tmp_path))
    (tmp_path / "a.png").unlink()
    with pytest.raises(FileNotFoundError, match=r"a.png: frame 1: does not exist"):
        next(frames)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_forbidden(tmp_path: Path) -> None:
    path = tmp_path / "a.flo"
    hamflow.write_flow(path, np.zeros((1, 1, 2)))
    path.chmod(0)
    with pytest.raises(OSError, match=r"a.flo: cannot be read \(Permission denied\)") as caught:
        hamflow.read_flow(path)
    assert caught.value.errno == errno.EACCES


@pytest.mark.parametrize("suffix", [".flo", ".kitti.png", ".pfm", ".npy"])
def test_failing_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str) -> None:
    class Failing(io.FileIO):
        def read(self, size: int | None = -1, /) -> bytes:
            raise OSError(errno.EIO, "Input/output error")

    path = tmp_path / f"f{suffix}"
    hamflow.write_flow(path, np.zeros((1, 1, 2)))
    monkeypatch.setattr(_reading, "open", Failing, raising=False)
    with pytest.raises(FileError, match=r"cannot be read \(Input/output error\); ") as caught:
        hamflow.read_flow(path)
    assert isinstance(caught.value, OSError)
    assert caught.value.errno == errno.EIO
    assert caught.value.filename == str(path)


def test_damage_is_no_matter_of_the_operating_system(tmp_path: Path) -> None:
    (tmp_path / "a.flo").write_bytes(b"nothing")
    for path in (tmp_path / "a.flo", tmp_path, tmp_path / "a.tiff"):
        with pytest.raises(FileError) as caught:
            hamflow.read_flow(path)
        assert not isinstance(caught.value, OSError)


def test_errors_of_hamflow_pass_through() -> None:
    for error in (
        MissingFileError("a: does not exist.", "a"),
        FileError("b: is bad."),
        InputError(),
    ):
        with pytest.raises(type(error)) as caught, file_access("c"):
            raise error
        assert caught.value is error


def test_other_operating_system_errors_get_a_sentence() -> None:
    with pytest.raises(FileAccessError) as caught, file_access("a", "cannot be moved", "stop."):
        raise IsADirectoryError(errno.EISDIR, "Is a directory", "b")
    assert str(caught.value) == "a: cannot be moved (Is a directory); stop."
    assert caught.value.strerror == "Is a directory"
    assert isinstance(caught.value.__cause__, IsADirectoryError)


@pytest.mark.parametrize(
    "error",
    [
        MissingFileError("a: does not exist.", Path("a")),
        FileAccessError("b: cannot be read.", "b", errno.EIO),
        FileAccessError("c: cannot be read."),
        FileError("d: is bad."),
        InputError("e is bad."),
    ],
)
def test_errors_can_be_pickled_and_copied(error: Exception) -> None:
    for other in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(other) is type(error)
        assert str(other) == str(error) == error.args[0]
        for name in ("errno", "strerror", "filename"):
            assert getattr(other, name, None) == getattr(error, name, None)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no pipes with names")
@pytest.mark.parametrize("read", [read_rows, read_points])
def test_tables_from_pipes(tmp_path: Path, read: Callable[[Path], object]) -> None:
    """Opening one would wait forever."""
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(FileError, match=r"pipe.csv: is not a regular file"):
        read(tmp_path / "pipe.csv")

"""What is given on the command line: images, folders, videos, results, and their truth."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import hamflow
from _videos import write_video
from _viewer import moving
from hamflow import FileError, FlowResult, InputError, Window
from hamflow.io.video import open_frames
from hamflow.viewer.limits import Limits
from hamflow.viewer.opening import Opened, open_given
from hamflow.viewer.refusals import Refusal


@pytest.fixture
def images(tmp_path: Path) -> list[Path]:
    paths = []
    for k, frame in enumerate(moving(4)):
        paths.append(tmp_path / "frames" / f"f{k + 8}.png")  # f10 comes after f9
        paths[-1].parent.mkdir(exist_ok=True)
        hamflow.write_image(paths[-1], frame)
    return paths


def saved(path: Path, height: int = 60, width: int = 80) -> Path:
    path.parent.mkdir(exist_ok=True)
    flow = np.zeros((height, width, 2), np.float32)
    FlowResult(flow, None, None, None, None, None, None, Window.of(2), 1).save(path)
    return path


def given(tmp_path: Path, *paths: Path, truth: Path | None = None, frames: int = 9) -> list[Opened]:
    def new_folder() -> Path:
        folder = tmp_path / "kept"
        folder.mkdir()
        return folder

    return open_given(paths, truth, new_folder, Limits(frames=frames))


def test_nothing(tmp_path: Path) -> None:
    assert given(tmp_path) == []


def test_a_pair(tmp_path: Path, images: list[Path]) -> None:
    (opened,) = given(tmp_path, *images[:2])
    source = opened.source
    assert (source.kind, source.name, source.size) == ("pair", "f8, f9", (80, 60))
    assert source.shared
    assert (source.frame(1) == hamflow.read_image(images[1])).all()


def test_images_keep_their_order(tmp_path: Path, images: list[Path]) -> None:
    (opened,) = given(tmp_path, *reversed(images))
    assert (opened.source.kind, opened.source.names) == ("sequence", ["f11", "f10", "f9", "f8"])


def test_a_folder(tmp_path: Path, images: list[Path]) -> None:
    (opened,) = given(tmp_path, images[0].parent)
    assert opened.source.name == "frames"
    assert opened.source.frames == images  # in the natural order of their names


def test_a_folder_with_results_beside_the_frames(tmp_path: Path, images: list[Path]) -> None:
    file = saved(images[0].parent / "f10.npz")
    (opened,) = given(tmp_path, images[0].parent)
    assert opened.results == {2: file}


def test_a_folder_of_results(tmp_path: Path, images: list[Path]) -> None:
    files = [saved(tmp_path / "results" / f"{name}.npz") for name in ("f8", "f10", "other")]
    frames, alone = given(tmp_path, images[0].parent, tmp_path / "results")
    assert frames.results == {0: files[0], 2: files[1]}
    assert (alone.source.kind, alone.results) == ("result", {0: files[2]})


def test_a_result_of_a_pair(tmp_path: Path, images: list[Path]) -> None:
    file = saved(tmp_path / "any.npz")
    (opened,) = given(tmp_path, *images[:2], file)
    assert opened.results == {0: file}
    (alone,) = given(tmp_path, file)
    assert (alone.source.kind, alone.source.name) == ("result", "any.npz")


def test_a_folder_of_a_pair_with_truth(tmp_path: Path) -> None:
    for name, frame in zip(("frame1.png", "frame2.png"), moving(2), strict=True):
        hamflow.write_image(tmp_path / name, frame)
    hamflow.write_flow(tmp_path / "flow.flo", np.ones((60, 80, 2), np.float32))
    (opened,) = given(tmp_path, tmp_path)
    assert opened.source.kind == "pair"
    truth = opened.source.truth(0)
    assert truth is not None
    assert (truth == 1).all()
    assert opened.source.truth(1) is None


@pytest.mark.parametrize("frames", [9, 3])
def test_a_video(tmp_path: Path, frames: int) -> None:
    path = write_video(tmp_path / "clip.mp4", moving(5, height=64))
    (opened,) = given(tmp_path, path, frames=frames)
    source = opened.source
    assert source.loading
    assert opened.decode is not None
    opened.decode()
    assert not source.loading
    assert len(source.frames) == min(frames, 5)
    assert (source.note is None) == (frames > 5)
    assert source.size == (80, 64)
    assert source.times == pytest.approx([k / 30 for k in range(min(frames, 5))], abs=1e-3)
    for frame in open_frames(path).read(stop=frames):
        assert (source.frame(frame.position) == frame.image).all()


def test_a_folder_of_truths(tmp_path: Path, images: list[Path]) -> None:
    for k in range(3):
        path = tmp_path / "truth" / f"{k + 8}.flo"
        path.parent.mkdir(exist_ok=True)
        hamflow.write_flow(path, np.full((60, 80, 2), k, np.float32))
    (opened,) = given(tmp_path, images[0].parent, truth=tmp_path / "truth")
    for k in range(3):
        truth = opened.source.truth(k)
        assert truth is not None
        assert (truth == k).all()


def test_wrong_paths(tmp_path: Path, images: list[Path]) -> None:
    (tmp_path / "empty").mkdir()
    text = tmp_path / "notes.txt"
    text.write_text("hello")
    broken = tmp_path / "broken.png"
    broken.write_bytes(b"hello")
    small = tmp_path / "small.flo"
    hamflow.write_flow(small, np.zeros((5, 6, 2), np.float32))
    for paths, truth, error, message in (
        ([tmp_path / "no.mp4"], None, FileError, "no.mp4: does not exist; check the path"),
        ([tmp_path / "no.png", images[0]], None, FileError, "no.png: does not exist"),
        ([images[0]], None, InputError, "f8: is one image, but a flow needs two"),
        ([broken, images[0]], None, FileError, "broken.png: is not an image that Hamflow reads"),
        ([tmp_path / "empty"], None, FileError, "empty: holds no images"),
        ([text], None, FileError, "notes.txt: is not a video that Hamflow reads"),
        ([], small, InputError, "--truth needs images"),
        (images, tmp_path / "no.flo", FileError, "no.flo: does not exist"),
        (images, small, Refusal, "The truth has 6×5 vectors, but the images have 80×60 pixels"),
    ):
        folder = tmp_path / f"case {message[:9]} {len(paths)}"
        folder.mkdir(exist_ok=True)
        with pytest.raises(error, match=message):
            given(folder, *paths, truth=truth)

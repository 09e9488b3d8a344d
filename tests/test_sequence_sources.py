"""`hamflow.video`: frames that are at hand; files are tested with the command."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hamflow
from _problems import same_bytes
from _route import SMALL, error, texture
from _videos import write_video
from hamflow import Estimator, FileError, InputError
from hamflow.io.video import open_frames
from hamflow.sequence import video


def moving(count: int) -> list[Any]:
    """Frames of a texture that moves by (3, 1) from each to the next."""
    scene = texture(90, 110)
    return [
        np.ascontiguousarray(scene[15 - k : 75 - k, 20 - 3 * k : 100 - 3 * k]) for k in range(count)
    ]


def test_arrays() -> None:
    names = []
    frames = moving(4)
    for index, item in enumerate(video(frames, SMALL)):
        names.append(item.name)
        assert item.index == index
        assert item.time is None
        assert error(item.flow, 3, 1) < 0.05
        assert np.array_equal(item.frame, frames[index])
        assert np.array_equal(item.next_frame, frames[index + 1])
        result = item.result
        assert item.flow is result.flow
        assert item.backward is result.backward
        assert item.occlusion is result.occlusion
        assert item.confidence is result.confidence
        assert item.cut is False
    assert names == ["0", "1", "2"]


def test_frames_come_one_at_a_time() -> None:
    """Two frames are enough for the first pair: a live camera can be the source."""
    given = 0

    def camera() -> Iterator[Any]:
        nonlocal given
        for frame in moving(4):
            given += 1
            yield frame

    pairs = video(camera(), SMALL)
    assert given == 0
    next(pairs)
    assert given == 2


def test_a_folder_by_its_path(tmp_path: Path) -> None:
    frames = moving(3)
    for k, frame in enumerate(frames):
        hamflow.write_image(tmp_path / f"frame{k}.png", frame)
    by_path = list(video(tmp_path, SMALL))
    by_array = list(video(frames, Estimator(SMALL)))
    assert [item.name for item in by_path] == ["frame0", "frame1"]
    for one, other in zip(by_path, by_array, strict=True):
        assert same_bytes(one.flow, other.flow)
        assert one.frame.dtype == np.uint8
    # Names of files are images, too.
    files = sorted(tmp_path.iterdir())
    assert [pair.name for pair in video(files, replace(SMALL, scale=4))] == ["0", "1"]


def test_an_array_that_is_used_again() -> None:
    """As some readers of cameras do it."""
    frames = moving(3)
    array = np.empty_like(frames[0])

    def camera() -> Iterator[Any]:
        for frame in frames:
            array[:] = frame
            yield array

    for index, item in enumerate(video(camera(), SMALL)):
        assert np.array_equal(item.frame, frames[index])
        assert np.array_equal(item.next_frame, frames[index + 1])
        assert error(item.flow, 3, 1) < 0.1


def test_gray_frames_get_three_channels() -> None:
    (item,) = video([frame[:, :, 0] for frame in moving(2)], SMALL)
    assert item.frame.shape == (60, 80, 3)


def test_open_frames_and_streams(tmp_path: Path) -> None:
    frames = moving(3)
    path = write_video(tmp_path / "in.avi", frames)
    for source in (path, str(path), open_frames(path), open_frames(path).read()):
        items = list(video(source, SMALL))
        assert [item.name for item in items] == ["frame_0001", "frame_0002"]
        assert [item.time for item in items] == pytest.approx([0, 1 / 30])
    with path.open("rb") as file:
        assert len(list(video(file, SMALL))) == 2
    raw = io.BytesIO(b"".join(frame.tobytes() for frame in frames))
    items = list(video(open_frames(raw, size=(60, 80), fps=10).read(1), SMALL))
    assert [(item.index, item.name, item.time) for item in items] == [(1, "frame_000002", 0.1)]


def test_a_frame_of_another_size() -> None:
    frames = [*moving(2), texture(50, 60)]
    with pytest.raises(FileError, match=r"source: frame 2 has 60×50 pixels, but 80×60"):
        list(video(frames, SMALL))
    told: list[FileError] = []
    assert [item.name for item in video(frames, SMALL, broken=told.append)] == ["0"]
    assert len(told) == 1


def test_a_frame_that_is_no_image() -> None:
    with pytest.raises(InputError, match="frame 1 must have the shape"):
        list(video([*moving(1), np.zeros(3)], SMALL))


def test_a_preset_that_does_not_exist() -> None:
    with pytest.raises(InputError, match="There is no preset 'quick'"):
        video(moving(2), "quick")


@pytest.mark.parametrize("source", [3.5, True, None])
def test_no_source(source: Any) -> None:
    with pytest.raises(InputError, match="source must be a video file, a folder, the number"):
        video(source, SMALL)


def test_the_number_of_a_camera_as_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileError, match="0: does not exist; a camera is called camera:0"):
        video("0", SMALL)


def test_items_are_shown_in_a_line() -> None:
    (item,) = video(moving(2), SMALL)
    shown = repr(item)  # without its arrays
    assert shown.startswith("<VideoItem 0: <FlowResult 80×60")
    assert len(shown) < 100


@pytest.mark.parametrize("count", [0, 1])
def test_too_few_frames(count: int) -> None:
    with pytest.raises(InputError, match="source has fewer than two frames"):
        list(video(moving(count), SMALL))

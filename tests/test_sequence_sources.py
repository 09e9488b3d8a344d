"""`hamflow.video`: frames that are at hand; files are tested with the command."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hamflow
from _problems import same_bytes
from _route import SMALL, error, texture
from hamflow import Estimator, FileError, InputError
from hamflow.sequence import video


def moving(count: int) -> list[Any]:
    """Frames of a texture that moves by (3, 1) from each to the next."""
    scene = texture(90, 110)
    return [
        np.ascontiguousarray(scene[15 - k : 75 - k, 20 - 3 * k : 100 - 3 * k]) for k in range(count)
    ]


def test_arrays() -> None:
    names = []
    for name, result in video(moving(4), SMALL):
        names.append(name)
        assert result is not None
        assert error(result.flow, 3, 1) < 0.05
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
    by_path = dict(video(tmp_path, SMALL))
    by_array = dict(video(frames, Estimator(SMALL)))
    assert list(by_path) == ["frame0", "frame1"]
    for one, other in zip(by_path.values(), by_array.values(), strict=True):
        assert one is not None
        assert other is not None
        assert same_bytes(one.flow, other.flow)
    # Names of files are images, too.
    files = sorted(tmp_path.iterdir())
    assert [pair.name for pair in video(files, replace(SMALL, scale=4))] == ["0", "1"]


@pytest.mark.parametrize("count", [0, 1])
def test_too_few_frames(count: int) -> None:
    assert list(video(moving(count), SMALL)) == []


def test_a_frame_of_another_size() -> None:
    frames = [*moving(2), texture(50, 60)]
    with pytest.raises(FileError, match=r"The frames: frame 3 \(2\) has 60×50 pixels, but 80×60"):
        list(video(frames, SMALL))
    told: list[FileError] = []
    assert [name for name, _ in video(frames, SMALL, broken=told.append)] == ["0"]
    assert len(told) == 1


def test_a_frame_that_is_no_image() -> None:
    with pytest.raises(InputError, match="frame 1 must have the shape"):
        list(video([*moving(1), np.zeros(3)], SMALL))


def test_a_preset_that_does_not_exist() -> None:
    with pytest.raises(InputError, match="There is no preset 'quick'"):
        video(moving(2), "quick")

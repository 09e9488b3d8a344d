"""`hamflow.sequence`: pair after pair of a video."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path
from typing import Any

import pytest

import hamflow
from _video_calls import Calls
from _videos import moving, write_folder
from hamflow import Estimator, FileError, KnownPair, VideoItem
from hamflow.io.video import open_frames
from hamflow.pipeline.frame import Frame
from hamflow.sequence import video


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """im1.png to im5.png."""
    return write_folder(tmp_path / "in", moving(5))


def test_at_most_two_frames_are_alive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_folder(tmp_path / "in", moving(6))
    frames: weakref.WeakSet[Frame] = weakref.WeakSet()
    images: list[weakref.ref[Any]] = []
    described: list[int] = []
    true_frame = Estimator.frame

    def frame(self: Estimator, image: Any, name: str = "image") -> Frame:
        gc.collect()
        assert len(frames) <= 1, "the frame before, and the one that is to be made"
        assert sum(ref() is not None for ref in images) <= 2, "those of the item before"
        images.append(weakref.ref(image))
        made = true_frame(self, image, name)
        frames.add(made)
        return made

    estimator = Estimator("fast", model="pairs")
    true_bits = estimator._descriptor.bits
    monkeypatch.setattr(
        estimator._descriptor, "bits", lambda image: (described.append(1), true_bits(image))[1]
    )
    monkeypatch.setattr(Estimator, "frame", frame)
    for item in video(open_frames(folder).read(), estimator):
        assert item.frame.shape == (48, 64, 3)
        gc.collect()
        assert len(frames) <= 2
    assert len(images) == 6
    # At 48×64 there are two scales, but only the first pair and cuts look at the coarse one.
    assert len(described) <= 2 * 6
    gc.collect()
    assert len(frames) == 0
    del item
    assert not any(ref() is not None for ref in images)


def test_state_is_handed_on(folder: Path, calls: Calls) -> None:
    estimator = Estimator("fast", model="pairs")
    pairs = list(video(open_frames(folder).read(), estimator))
    assert [item.name for item in pairs] == ["im1", "im2", "im3", "im4"]
    assert calls.pairs == [("im1", "im2"), ("im2", "im3"), ("im3", "im4"), ("im4", "im5")]
    assert calls.fresh == ["im1"]


def test_known_pairs(folder: Path, calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    true_read = hamflow.read_image
    monkeypatch.setattr(
        "hamflow.io._frames.read_image", lambda p: (read.append(Path(p).stem), true_read(p))[1]
    )
    estimator = Estimator("fast", model="pairs")
    known = {"im1", "im2", "im4"}
    reader = open_frames(folder).read()
    pairs = list(video(reader, estimator, known=known.__contains__))
    assert [type(item) for item in pairs] == [KnownPair, KnownPair, VideoItem, KnownPair]
    assert [item.name for item in pairs] == ["im1", "im2", "im3", "im4"]
    assert calls.pairs == [("im3", "im4")]
    assert calls.fresh == ["im3"]
    assert read == ["im3", "im4", "im5"]


def test_broken_frames_break_the_sequence(folder: Path, calls: Calls) -> None:
    (folder / "im2.png").write_bytes(b"")
    hamflow.write_image(folder / "im6.png", moving(1, 40, 64)[0])
    for number in (7, 8):
        hamflow.write_image(folder / f"im{number}.png", moving(1)[0])
    estimator = Estimator("fast", model="pairs")
    with pytest.raises(FileError, match=r"im2\.png: frame 2"):
        list(video(open_frames(folder).read(), estimator))
    told: list[FileError] = []
    pairs = list(video(open_frames(folder).read(), estimator, broken=told.append))
    assert [item.name for item in pairs] == ["im3", "im4", "im7"]
    assert calls.fresh == ["im3", "im7"]
    assert len(told) == 2
    assert "frame 6 (im6) has 64×40 pixels, but 64×48 are expected" in str(told[1])


def test_given_size(folder: Path, calls: Calls) -> None:
    hamflow.write_image(folder / "im1.png", moving(1, 40, 64)[0])
    told: list[FileError] = []
    reader = open_frames(folder).read()
    estimator = Estimator("fast", model="pairs")
    pairs = list(video(reader, estimator, broken=told.append, size=(48, 64)))
    assert [item.name for item in pairs] == ["im2", "im3", "im4"]
    assert len(told) == 1

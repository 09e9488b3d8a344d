"""Frames from videos and folders, and writing of videos."""

from __future__ import annotations

import errno
import os
import sys
import weakref
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from PIL import Image

import hamflow
from _problems import run_python
from _videos import all_of, damage_packet, moving, write_folder, write_video
from hamflow import FileError, InputError
from hamflow.io import _decoding
from hamflow.io import video as module
from hamflow.io._frames import natural_key
from hamflow.io.video import FrameReader, VideoWriter, open_frames


def difference(first: Any, second: Any) -> float:
    return float(np.abs(np.asarray(first, np.float64) - second).mean())


# --- folders -------------------------------------------------------------------------------------


def test_natural_order(tmp_path: Path) -> None:
    frame = moving(1, 4, 6)[0]
    names = ["Frame_9", "frame2", "frame10", "frame1", "frame1b3", "frame1b12", "0100", "20"]
    for name in names:
        hamflow.write_image(tmp_path / f"{name}.png", frame)
    hamflow.write_image(tmp_path / ".hidden.png", frame)
    (tmp_path / "notes.txt").write_text("hello")
    (tmp_path / "sub.png").mkdir()
    frames = open_frames(tmp_path)
    expected = ["20", "0100", "frame1", "frame1b3", "frame1b12", "frame2", "frame10", "Frame_9"]
    assert [frame.name for frame in frames] == expected
    assert frames.name == str(tmp_path)
    assert frames.count == len(names)
    assert frames.fps is None


def test_natural_key_is_a_total_order() -> None:
    names = ["a01", "a1", "A1", "a1.5", "a", "1a", "", "01"]
    assert sorted(names, key=natural_key) == sorted(reversed(names), key=natural_key)


def test_folder_gives_the_pixels(tmp_path: Path) -> None:
    pictures = moving(3)
    folder = write_folder(tmp_path / "in", pictures)
    for number, (index, name, image, time) in enumerate(open_frames(folder)):
        assert index == number
        assert name == f"im{number + 1}"
        assert np.array_equal(image, pictures[number])
        assert time is None


def test_16_bits_are_kept(tmp_path: Path) -> None:
    deep = np.arange(48, dtype=np.uint16).reshape(6, 8) * 1000
    Image.fromarray(deep).save(tmp_path / "a.png")
    (frame,) = open_frames(tmp_path)
    assert frame.image.dtype == np.uint16
    assert np.array_equal(frame.image[..., 1], deep)


def test_damaged_image_is_passed(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "in", moving(4))
    (folder / "im2.png").write_bytes(b"nonsense")
    found = all_of(open_frames(folder).read())
    assert found[::2] == ["im1", "im3"]
    assert found[3] == "im4"
    assert found[1].startswith(f"{folder / 'im2.png'}: frame 2: ")
    # As long as nobody wants it, it does no harm.
    assert all_of(open_frames(folder).read(0, None, 2)) == ["im1", "im3"]


def test_images_are_read_when_they_are_reached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_folder(tmp_path / "in", moving(5, 4, 6))
    read: list[str] = []
    true_read = hamflow.read_image

    def spy(path: str) -> Any:
        read.append(Path(path).stem)
        return true_read(path)

    monkeypatch.setattr("hamflow.io._frames.read_image", spy)
    reader = open_frames(folder).read()
    assert reader.upcoming == "im1"
    next(reader)
    assert reader.upcoming == "im2"
    reader.skip()
    assert next(reader).name == "im3"
    assert read == ["im1", "im3"]
    assert reader.index == 3


@pytest.mark.parametrize("kind", ["folder", "video"])
@pytest.mark.parametrize("chosen", [(0, None, 1), (2, None, 1), (1, 6, 2), (3, 3, 1), (0, 99, 4)])
def test_selection(tmp_path: Path, kind: str, chosen: tuple[int, int | None, int]) -> None:
    pictures = moving(7)
    if kind == "folder":
        path = write_folder(tmp_path / "in", pictures)
    else:
        path = write_video(tmp_path / "in.avi", pictures)
    found = list(open_frames(path).read(*chosen))
    assert [frame.position for frame in found] == list(range(7))[slice(*chosen)]
    for frame in found:
        assert difference(frame.image, pictures[frame.position]) < 8


def test_wrong_selection(tmp_path: Path) -> None:
    frames = open_frames(write_folder(tmp_path / "in", moving(1)))
    for chosen in ((-1, None, 1), (0, None, 0)):
        with pytest.raises(InputError):
            frames.read(*chosen)


def test_wrong_folders(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="holds no images"):
        open_frames(tmp_path)
    hamflow.write_image(tmp_path / "a.png", moving(1)[0])
    hamflow.write_image(tmp_path / "a.bmp", moving(1)[0])
    with pytest.raises(FileError, match=r"a\.bmp and a\.png would be frames of the same"):
        open_frames(tmp_path)
    with pytest.raises(FileError, match="does not exist"):
        open_frames(tmp_path / "gone")


# --- video files ---------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".avi", ".mp4", ".mkv"])
def test_video_gives_the_pixels(tmp_path: Path, suffix: str) -> None:
    pictures = moving(5)
    frames = open_frames(write_video(tmp_path / f"in{suffix}", pictures))
    assert frames.fps == 30
    assert frames.count == (None if suffix == ".mkv" else 5)
    digits = 6 if suffix == ".mkv" else 4
    for _ in range(2):  # each iteration starts anew
        found = list(frames)
        assert [frame.name for frame in found] == [f"frame_{k:0{digits}}" for k in range(1, 6)]
        for frame, picture in zip(found, pictures, strict=True):
            assert frame.image.dtype == np.uint8
            assert difference(frame.image, picture) < 8
            assert frame.time == pytest.approx(frame.position / 30, abs=1e-3)


def test_more_than_8_bits(tmp_path: Path) -> None:
    pictures = moving(2)
    path = write_video(tmp_path / "in.mkv", pictures, "libx264", "yuv444p10le")
    for frame, picture in zip(open_frames(path), pictures, strict=True):
        assert frame.image.dtype == np.uint16
        assert difference(frame.image / 257, picture) < 8


@pytest.mark.parametrize(
    ("matrix", "turn"),
    [
        ((0, 1, -1, 0), lambda a: a[::-1].swapaxes(0, 1)),  # x to below, y to the left: clockwise
        ((0, -1, 1, 0), lambda a: a[:, ::-1].swapaxes(0, 1)),
        ((-1, 0, 0, -1), lambda a: a[::-1, ::-1]),
    ],
)
def test_rotation(tmp_path: Path, matrix: tuple[int, ...], turn: Callable[[Any], Any]) -> None:
    pictures = moving(2)
    path = write_video(tmp_path / "in.mp4", pictures)
    content = path.read_bytes()
    # The matrix in the header of the track: a b u, c d v, x y w, where w is 2^30.
    one = [(k * 2**16).to_bytes(4, "big", signed=True) for k in (1, *matrix)]
    zero, last = bytes(4), (2**30).to_bytes(4, "big")
    unity = one[0] + 3 * zero + one[0] + 3 * zero + last
    turned = one[1] + one[2] + zero + one[3] + one[4] + 3 * zero + last
    track = content.index(b"tkhd")
    path.write_bytes(content[:track] + content[track:].replace(unity, turned, 1))
    assert path.read_bytes() != content
    for frame, picture in zip(open_frames(path), pictures, strict=True):
        assert difference(frame.image, turn(picture)) < 8
        assert frame.image.flags.c_contiguous


@pytest.mark.parametrize("number", [0, 3, 6])
def test_damaged_packet_is_passed(tmp_path: Path, number: int) -> None:
    # Every frame on its own, so that the others can be decoded.
    path = write_video(tmp_path / "in.avi", moving(7), "mjpeg", "yuvj420p")
    damage_packet(path, number)
    found = all_of(open_frames(path).read())
    assert len(found) == 7
    sentence = found.pop(number)
    assert sentence.startswith(f"{path}: frame {number + 1} cannot be decoded")
    names = [f"frame_{k:04}" for k in range(1, 8)]
    del names[number]
    assert found == names


def test_lost_frames_count_where_they_would_be_shown(tmp_path: Path) -> None:
    # H.264 with B-frames: packets come in another order than frames.
    path = write_video(tmp_path / "in.mp4", moving(12), "libx264")
    with av.open(str(path)) as container:
        times = [p.pts for p in container.demux(video=0) if p.size]
    packet = 4
    place = sorted(times).index(times[packet])
    assert times != sorted(times)
    damage_packet(path, packet)
    found = all_of(open_frames(path).read())
    assert len(found) == 12
    assert f"frame {place + 1} cannot be decoded" in found[place]
    assert sum("cannot" in name for name in found) == 1


def test_file_that_breaks_off(tmp_path: Path) -> None:
    path = write_video(tmp_path / "in.avi", moving(7))
    with av.open(str(path)) as container:
        place = [p.pos for p in container.demux(video=0) if p.size][4]
    path.write_bytes(path.read_bytes()[: place + 12])
    found = all_of(open_frames(path).read())
    assert found[:4] == [f"frame_{k:04}" for k in range(1, 5)]
    assert all("frame 5" in sentence for sentence in found[4:])


def test_read_error_on_the_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_video(tmp_path / "in.avi", moving(5))
    reader = open_frames(path).read()
    packets = reader._pass._packets  # type: ignore[attr-defined]

    def failing() -> Any:
        yield next(packets)
        yield next(packets)
        raise av.error.InvalidDataError(errno.EIO, "Input/output error")

    monkeypatch.setattr(reader._pass, "_packets", failing())
    found = all_of(reader)
    assert found[:2] == ["frame_0001", "frame_0002"]
    assert "frame 3" in found[2]
    assert "is truncated: Input/output error" in found[2]
    assert len(found) == 3


def test_no_videos(tmp_path: Path) -> None:
    playlist = b"#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:9,\nother.ts\n#EXT-X-ENDLIST\n"
    concat = f"ffconcat version 1.0\nfile {write_video(tmp_path / 'other.mp4', moving(2))}\n"
    for content in (b"", b"hello", bytes(5000), playlist, concat.encode()):
        path = tmp_path / "in.mp4"
        path.write_bytes(content)
        with pytest.raises(FileError, match="is not a video") as caught:
            open_frames(path)
        assert str(caught.value).startswith(f"{path}: ")
        assert "\n" not in str(caught.value)
    with pytest.raises(FileError, match="is not a video"):
        open_frames(write_folder(tmp_path / "f", moving(1)) / "im1.png")


def test_sound_alone(tmp_path: Path) -> None:
    path = tmp_path / "in.mkv"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("pcm_s16le", rate=8000, layout="mono")
        sound = av.AudioFrame.from_ndarray(np.zeros((1, 800), np.int16), layout="mono")
        sound.sample_rate = 8000
        container.mux(stream.encode(sound))
    with pytest.raises(FileError, match="has no video stream"):
        open_frames(path)


def test_too_many_pixels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_video(tmp_path / "in.avi", moving(2))
    monkeypatch.setattr(_decoding, "MAX_PIXELS", 1000)
    monkeypatch.setattr("hamflow.io._reading.MAX_PIXELS", 1000)
    with pytest.raises(FileError):
        next(open_frames(path).read())


def test_colon_in_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_video(tmp_path / "in.avi", moving(2)).rename(tmp_path / "concat:in.avi")
    monkeypatch.chdir(tmp_path)
    assert len(list(open_frames("concat:in.avi"))) == 2


def test_without_av(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_video(tmp_path / "in.avi", moving(2))
    monkeypatch.setitem(sys.modules, "av", None)
    for use in (lambda: open_frames(path), lambda: VideoWriter(tmp_path / "out.mp4")):
        with pytest.raises(FileError, match=r"pip install 'hamflow\[video\]'"):
            use()
    assert len(list(open_frames(write_folder(tmp_path / "in", moving(2))))) == 2


def test_av_is_imported_when_it_is_needed() -> None:
    code = "import sys, hamflow.io.video, hamflow.cli.video; assert 'av' not in sys.modules"
    assert run_python("-c", code).returncode == 0


@pytest.mark.parametrize("kind", ["folder", "video"])
def test_no_frame_is_kept(tmp_path: Path, kind: str) -> None:
    if kind == "folder":
        path = write_folder(tmp_path / "in", moving(6))
    else:
        path = write_video(tmp_path / "in.avi", moving(6))
    reader: FrameReader = open_frames(path).read()
    alive: list[weakref.ref[Any]] = []
    for frame in reader:
        alive.append(weakref.ref(frame.image))
        assert sum(ref() is not None for ref in alive) <= 2
    del frame
    assert not any(ref() is not None for ref in alive)


# --- writing -------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", module.VIDEO_SUFFIXES)
@pytest.mark.parametrize("size", [(48, 64), (47, 63)])
def test_round_trip(tmp_path: Path, suffix: str, size: tuple[int, int]) -> None:
    pictures = moving(5, *size)
    path = tmp_path / f"out{suffix.upper()}"
    with VideoWriter(path, Fraction(30000, 1001)) as writer:
        for picture in pictures:
            writer.add(picture)
        assert not path.exists()
    assert os.listdir(tmp_path) == [path.name]
    frames = open_frames(path)
    assert frames.fps is not None
    assert abs(frames.fps - Fraction(30000, 1001)) < Fraction(1, 10)
    found = list(frames)
    assert len(found) == 5
    for frame, picture in zip(found, pictures, strict=True):
        assert frame.image.shape == (48, 64, 3)
        assert difference(frame.image[: size[0], : size[1]], picture) < 8


def test_without_x264(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    true_codec = av.codec.Codec

    def codec(name: str, mode: str) -> Any:
        if name == "libx264":
            raise ValueError(name)
        return true_codec(name, mode)

    monkeypatch.setattr(av.codec, "Codec", codec)
    path = tmp_path / "out.mp4"
    with VideoWriter(path) as writer:
        writer.add(moving(1)[0])
    with av.open(str(path)) as container:
        assert container.streams.video[0].codec_context.name == "mpeg4"
    monkeypatch.setattr(av.codec, "Codec", lambda name, mode: codec("libx264", mode))
    with pytest.raises(FileError, match="cannot encode"):
        VideoWriter(path)


@pytest.mark.parametrize("fps", [0.1, 12.5, 59.94, 239.76, 1000, 1 / 3])
def test_rates(tmp_path: Path, fps: float) -> None:
    for suffix in (".mp4", ".avi"):
        path = tmp_path / f"out{suffix}"
        with VideoWriter(path, fps) as writer:
            for picture in moving(3):
                writer.add(picture)
        assert open_frames(path).count == 3
        assert float(open_frames(path).fps or 0) == pytest.approx(fps, rel=0.01)


def test_failure_leaves_nothing_half_written(tmp_path: Path) -> None:
    path = tmp_path / "out.mp4"
    path.write_text("before")
    for error in (RuntimeError, KeyboardInterrupt):
        with pytest.raises(error), VideoWriter(path) as writer:
            writer.add(moving(1)[0])
            raise error
    with pytest.raises(InputError, match="no images"), VideoWriter(path):
        pass
    with pytest.raises(InputError, match="one size"), VideoWriter(path) as writer:
        writer.add(moving(1)[0])
        writer.add(moving(1, 40)[0])
    with pytest.raises(InputError, match="uint8"), VideoWriter(path) as writer:
        writer.add(moving(1)[0] / 255)
    assert path.read_text() == "before"
    assert os.listdir(tmp_path) == ["out.mp4"]


def test_full_disk(tmp_path: Path) -> None:
    path = tmp_path / "out.mp4"
    with pytest.raises(FileError, match=r"out\.mp4: .*disk is full"), VideoWriter(path) as writer:
        writer.add(moving(1)[0])

        class Full:
            def encode(self, _: object) -> list[Any]:
                raise av.error.OSError(errno.ENOSPC, "No space left on device")

        writer._stream = Full()
        writer.add(moving(1)[0])
    assert os.listdir(tmp_path) == []


def test_wrong_writers(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"suffix '\.gif'"):
        VideoWriter(tmp_path / "out.gif")
    with pytest.raises(FileError, match="create it first"):
        VideoWriter(tmp_path / "gone" / "out.mp4")
    for fps in (0, -1, float("nan"), float("inf")):
        with pytest.raises(InputError, match="fps"):
            VideoWriter(tmp_path / "out.mp4", fps)
    assert os.listdir(tmp_path) == []


def test_a_forged_number_of_frames(tmp_path: Path) -> None:
    """A list of two billion names would fill the memory."""
    path = write_video(tmp_path / "a.avi", moving(3))
    assert open_frames(path).count == 3
    data = bytearray(path.read_bytes())
    place = data.index(b"strh") + 8 + 32
    assert int.from_bytes(data[place : place + 4], "little") == 3
    data[place : place + 4] = b"\xff\xff\xff\x7f"
    path.write_bytes(data)
    assert open_frames(path).count is None
    assert len(list(open_frames(path))) == 3


def test_unknown_codec(tmp_path: Path) -> None:
    path = write_video(tmp_path / "a.avi", moving(2))
    data = path.read_bytes()
    assert b"FMP4" in data
    path.write_bytes(data.replace(b"FMP4", b"ZZ9Z"))
    with pytest.raises(FileError, match=r"a\.avi: is encoded in a way that FFmpeg does not know"):
        open_frames(path)

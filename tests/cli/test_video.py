"""``hamflow video`` and `hamflow.sequence`."""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hamflow.frame import Frame

import hamflow
from _videos import damage_packet, moving, write_folder, write_video
from hamflow import Estimator, FileError, FlowResult, Window
from hamflow.cli import video as module
from hamflow.cli.main import main
from hamflow.io import video as video_io
from hamflow.io.video import open_frames
from hamflow.sequence import flow_sequence

QUICK = ("--preset", "fast", "--model", "pairs")
COMMAND = ("video", *QUICK)


class Calls:
    """Stands in for `Estimator.between`, quickly, and remembers what it was asked.

    The flow is (k, 0) everywhere for the k-th call of all, from 1, if `grows`, or else (3, 4).
    """

    def __init__(self) -> None:
        self.names: weakref.WeakKeyDictionary[Frame, str] = weakref.WeakKeyDictionary()
        self.pairs: list[tuple[str, str]] = []
        self.fresh: list[str] = []
        self.grows = False
        self.before_call: Callable[[str], object] = lambda name: None

    def between(
        self, frame0: Frame, frame1: Frame, *, previous: Any = None, **_: Any
    ) -> tuple[FlowResult, Any]:
        first, second = self.names[frame0], self.names[frame1]
        self.before_call(first)
        self.pairs.append((first, second))
        if previous is None:
            self.fresh.append(first)
        vector = (len(self.pairs), 0) if self.grows else (3, 4)
        flow = np.broadcast_to(np.float32(vector), (*frame0.shape, 2)).copy()
        result = FlowResult(
            flow=flow,
            backward=-flow,
            occlusion=flow[..., 0] > 100,
            confidence=np.full(frame0.shape, 0.4, np.float32),
            energy=1.0,
            bound=1.0,
            gap=0.0,
            window=Window(0, 1, 0, 1),
            scale=1,
        )
        return result, object()


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    spy = Calls()
    true_frame = Estimator.frame

    def frame(self: Estimator, image: Any, name: str = "image") -> Frame:
        made = true_frame(self, image, name)
        spy.names[made] = name
        return made

    monkeypatch.setattr(Estimator, "frame", frame)
    monkeypatch.setattr(Estimator, "between", lambda self, *a, **k: spy.between(*a, **k))
    return spy


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """im1.png to im5.png."""
    return write_folder(tmp_path / "in", moving(5))


def run(*args: object) -> int:
    return main(["video", *map(str, args), *QUICK])


def files(root: Path) -> list[str]:
    return sorted(str(p.relative_to(root)) for p in root.rglob("*") if p.is_file())


def firsts(calls: Calls) -> list[str]:
    return [first for first, _ in calls.pairs]


# --- end to end ----------------------------------------------------------------------------------


def test_folder_to_folder(tmp_path: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "im5.png").rename(folder / "im10.png")
    out = tmp_path / "new" / "out"
    extras = {name: tmp_path / name for name in ("backward", "occlusion", "confidence", "viz")}
    options = [word for name, path in extras.items() for word in (f"--{name}", path)]
    assert run(folder, "-o", out, *options) == 0
    names = ["im1", "im2", "im3", "im4"]
    assert files(out) == [*(f"{name}.flo" for name in names), "run.json"]
    assert files(extras["backward"]) == files(out)
    for kind in ("occlusion", "confidence", "viz"):
        assert files(extras[kind]) == [*(f"{name}.png" for name in names), "run.json"]
    for name in names:
        flow = hamflow.read_flow(out / f"{name}.flo")
        back = hamflow.read_flow(extras["backward"] / f"{name}.flo")
        # The outermost pixels leave the picture.
        assert np.abs(np.median(flow, axis=(0, 1)) - (2, 0)).max() < 0.2
        assert np.abs(np.median(-back, axis=(0, 1)) - (2, 0)).max() < 0.2
        hidden = hamflow.read_image(extras["occlusion"] / f"{name}.png")
        assert set(np.unique(hidden)) <= {0, 255}
        assert hamflow.read_image(extras["confidence"] / f"{name}.png").max() > 128
    printed = capsys.readouterr()
    assert printed.out.startswith("4 pairs done, ")
    assert f" s per pair: {out}; full color is " in printed.out
    assert printed.out.count("\n") == 1
    assert printed.err == ""


def test_same_results_as_pair_by_pair(tmp_path: Path, folder: Path) -> None:
    assert run(folder, "-o", tmp_path / "out") == 0
    estimator = Estimator("fast", model="pairs")
    images = [hamflow.read_image(folder / f"im{k}.png") for k in range(1, 6)]
    state = None
    for k in range(4):
        pair = estimator.frame(images[k]), estimator.frame(images[k + 1])
        result, state = estimator.between(*pair, previous=state)
        assert np.array_equal(hamflow.read_flow(tmp_path / "out" / f"im{k + 1}.flo"), result.flow)


@pytest.mark.parametrize("suffix", [".mp4", ".webm"])
def test_video_to_color_video(
    tmp_path: Path, suffix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    source = write_video(tmp_path / "in.mp4", moving(4))
    out = tmp_path / f"out{suffix}"
    assert run(source, "-o", out, "--max-flow", 4) == 0
    assert sorted(os.listdir(tmp_path)) == ["in.mp4", out.name]
    frames = open_frames(out)
    assert frames.fps == 30
    pictures = [frame.image for frame in frames]
    assert len(pictures) == 3
    # The wheel has its seam at v = 0: either side of it is right.
    seam = np.array([[[2, 1e-6], [2, -1e-6]]], np.float32)
    expected = hamflow.flow_to_color(seam, max_flow=4)[0].astype(np.float64)
    for picture in pictures:
        off = np.abs(np.median(picture, axis=(0, 1)) - expected).max(axis=1)
        assert off.min() < 12
    assert "full color is 4 px (--max-flow 4)" in capsys.readouterr().out


# --- the sequence --------------------------------------------------------------------------------


def test_at_most_two_frames_are_alive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_folder(tmp_path / "in", moving(6))
    frames: weakref.WeakSet[Frame] = weakref.WeakSet()
    images: list[weakref.ref[Any]] = []
    described: list[int] = []
    true_frame = Estimator.frame

    def frame(self: Estimator, image: Any, name: str = "image") -> Frame:
        gc.collect()
        assert len(frames) <= 1, "the frame before, and the one that is to be made"
        assert sum(ref() is not None for ref in images) == 0
        images.append(weakref.ref(image))
        made = true_frame(self, image, name)
        frames.add(made)
        return made

    estimator = Estimator("fast", model="pairs")
    true_bits = estimator._model.bits
    monkeypatch.setattr(
        estimator._model, "bits", lambda image: (described.append(1), true_bits(image))[1]
    )
    monkeypatch.setattr(Estimator, "frame", frame)
    for _name, result in flow_sequence(estimator, open_frames(folder).read()):
        assert result is not None
        gc.collect()
        assert len(frames) <= 2
    assert len(images) == 6
    # At 48×64 there are two scales, but only the first pair and cuts look at the coarse one.
    assert len(described) <= 2 * 6
    gc.collect()
    assert len(frames) == 0


def test_state_is_handed_on(folder: Path, calls: Calls) -> None:
    estimator = Estimator("fast", model="pairs")
    pairs = list(flow_sequence(estimator, open_frames(folder).read()))
    assert [name for name, _ in pairs] == ["im1", "im2", "im3", "im4"]
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
    pairs = list(flow_sequence(estimator, reader, known=known.__contains__))
    assert [(name, result is None) for name, result in pairs] == [
        ("im1", True),
        ("im2", True),
        ("im3", False),
        ("im4", True),
    ]
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
        list(flow_sequence(estimator, open_frames(folder).read()))
    told: list[FileError] = []
    pairs = list(flow_sequence(estimator, open_frames(folder).read(), broken=told.append))
    assert [name for name, _ in pairs] == ["im3", "im4", "im7"]
    assert calls.fresh == ["im3", "im7"]
    assert len(told) == 2
    assert "frame 6 (im6) has 64×40 pixels, but 64×48 are expected" in str(told[1])


def test_given_size(folder: Path, calls: Calls) -> None:
    hamflow.write_image(folder / "im1.png", moving(1, 40, 64)[0])
    told: list[FileError] = []
    reader = open_frames(folder).read()
    estimator = Estimator("fast", model="pairs")
    pairs = list(flow_sequence(estimator, reader, broken=told.append, size=(48, 64)))
    assert [name for name, _ in pairs] == ["im2", "im3", "im4"]
    assert len(told) == 1


# --- broken frames -------------------------------------------------------------------------------


def test_broken_frame(
    tmp_path: Path,
    folder: Path,
    calls: Calls,
    fails: Callable[..., str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    good = (folder / "im3.png").read_bytes()
    (folder / "im3.png").write_bytes(good[:50])
    out = tmp_path / "out"
    message = fails(folder, "-o", out)
    assert f"{folder / 'im3.png'}: frame 3: " in message
    assert "--on-broken skip" in message
    assert files(out) == ["im1.flo", "run.json"]
    assert run(folder, "-o", out, "--on-broken", "skip") == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("1 pair done, 1 there already, 1 frame skipped, ")
    assert printed.err.startswith(f"Skipped: {folder / 'im3.png'}: frame 3: ")
    assert files(out) == ["im1.flo", "im4.flo", "run.json"]
    # Mended, it gets its pairs.
    (folder / "im3.png").write_bytes(good)
    assert run(folder, "-o", out) == 0
    assert firsts(calls) == ["im1", "im4", "im2", "im3"]


def test_broken_frame_of_a_video(
    tmp_path: Path, calls: Calls, fails: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    source = write_video(tmp_path / "in.avi", moving(7), "mjpeg", "yuvj420p")
    damage_packet(source, 3)
    out = tmp_path / "out.mp4"
    assert f"{source}: frame 4 cannot be decoded" in fails(source, "-o", out)
    assert sorted(os.listdir(tmp_path)) == ["in.avi", "out.mp4.parts"]
    assert run(source, "-o", out, "--on-broken", "skip") == 0
    assert "2 pairs done, 2 there already, 1 frame skipped" in capsys.readouterr().out
    assert calls.pairs[-2:] == [("frame_0005", "frame_0006"), ("frame_0006", "frame_0007")]
    assert open_frames(out).count == 4
    assert sorted(os.listdir(tmp_path)) == ["in.avi", "out.mp4"]


def test_many_broken_frames(
    tmp_path: Path, calls: Calls, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_folder(tmp_path / "in", [*moving(2), *moving(15, 20)])
    assert run(folder, "-o", tmp_path / "out", "--on-broken", "skip") == 0
    printed = capsys.readouterr()
    assert "15 frames skipped" in printed.out
    assert printed.err.count("\n") == 11


def test_too_few_frames(tmp_path: Path, folder: Path, fails: Callable[..., str]) -> None:
    one = write_folder(tmp_path / "one", moving(1))
    out = tmp_path / "out"
    assert "fewer than two frames" in fails(one, "-o", out)
    assert "fewer than two frames" in fails(folder, "-o", out, "--start", 5)
    assert "fewer than two frames" in fails(folder, "-o", out, "--every", 5)
    film = write_video(tmp_path / "one.avi", moving(1))
    assert "fewer than two frames" in fails(film, "-o", out)
    assert "--stop must leave at least two frames" in fails(folder, "-o", out, "--stop", 1)
    assert not out.exists()


def test_no_two_good_frames(
    tmp_path: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in (2, 4):
        (folder / f"im{number}.png").write_bytes(b"")
    assert run(folder, "-o", tmp_path / "out", "--on-broken", "skip") == 1
    assert "no two good frames" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_announced_frames_are_missing(
    tmp_path: Path, calls: Calls, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    frames = open_frames(write_video(tmp_path / "in.avi", moving(4)))
    frames.count = 9
    monkeypatch.setattr(module, "open_frames", lambda _: frames)
    assert run(tmp_path / "in.avi", "-o", tmp_path / "out") == 0
    assert "announces 9 frames, but has 4." in capsys.readouterr().out


# --- continuing ----------------------------------------------------------------------------------


def interrupt_at(calls: Calls, name: str) -> None:
    def interrupt(first: str) -> None:
        if first == name:
            calls.before_call = lambda _: None
            raise KeyboardInterrupt

    calls.before_call = interrupt


def test_continue_a_folder(
    tmp_path: Path, folder: Path, calls: Calls, capsys: pytest.CaptureFixture[str]
) -> None:
    out, viz = tmp_path / "out", tmp_path / "viz"
    interrupt_at(calls, "im3")
    calls.grows = True
    assert run(folder, "-o", out, "--viz", viz) == 130
    printed = capsys.readouterr().out
    assert printed.startswith("Stopped early after 2 pairs; ")
    assert "the same command continues" in printed
    assert files(out) == ["im1.flo", "im2.flo", "run.json"]
    before = (out / "im1.flo").read_bytes()
    assert run(folder, "-o", out, "--viz", viz) == 0
    assert firsts(calls) == ["im1", "im2", "im3", "im4"]
    assert calls.fresh == ["im1", "im3"]
    assert "2 pairs done, 2 there already" in (printed := capsys.readouterr().out)
    # The scale stays that of the very first pair.
    assert "--max-flow 1)" in printed
    assert (out / "im1.flo").read_bytes() == before
    # Nothing left to do; then something that got lost.
    assert run(folder, "-o", out, "--viz", viz) == 0
    assert "0 pairs done, 4 there already: " in capsys.readouterr().out
    (viz / "im2.png").unlink()
    assert run(folder, "-o", out, "--viz", viz) == 0
    assert firsts(calls)[4:] == ["im2"]


def test_continue_a_color_video(
    tmp_path: Path, folder: Path, calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out.mp4"
    interrupt_at(calls, "im3")
    assert run(folder, "-o", out) == 130
    parts = tmp_path / "out.mp4.parts"
    assert files(parts) == ["im1.png", "im2.png", "run.json"]
    assert not out.exists()
    with monkeypatch.context() as patch:
        # Interrupted once more, while the video is written.
        def stop(*_: object) -> None:
            raise KeyboardInterrupt

        patch.setattr(video_io.VideoWriter, "add", stop)
        assert run(folder, "-o", out) == 130
    assert sorted(os.listdir(tmp_path)) == ["in", "out.mp4.parts"]
    assert run(folder, "-o", out) == 0
    assert firsts(calls) == ["im1", "im2", "im3", "im4"]
    assert sorted(os.listdir(tmp_path)) == ["in", "out.mp4"]
    assert open_frames(out).count == 4
    assert open_frames(out).fps == 25


def test_more_frames_and_another_stop(tmp_path: Path, folder: Path, calls: Calls) -> None:
    out = tmp_path / "out"
    assert run(folder, "-o", out, "--stop", 3) == 0
    assert run(folder, "-o", out) == 0
    hamflow.write_image(folder / "im6.png", moving(1)[0])
    assert run(folder, "-o", out) == 0
    assert firsts(calls) == [f"im{k}" for k in range(1, 6)]


def test_selection(tmp_path: Path, folder: Path, calls: Calls, fails: Callable[..., str]) -> None:
    options = ("--start", 2, "--every", 2)
    assert run(folder, "-o", tmp_path / "a", *options) == 0
    assert calls.pairs == [("im2", "im4")]
    source = write_video(tmp_path / "in.mkv", moving(8))
    assert run(source, "-o", tmp_path / "b.mkv", *options, "--stop", 7) == 0
    assert calls.pairs[1:] == [
        ("frame_000002", "frame_000004"),
        ("frame_000004", "frame_000006"),
    ]
    assert open_frames(tmp_path / "b.mkv").fps == 15
    assert "--start" in fails(folder, "-o", tmp_path / "c", "--start", 0)
    assert "--every" in fails(folder, "-o", tmp_path / "c", "--every", 0)


def test_sigterm(tmp_path: Path, folder: Path, calls: Calls) -> None:
    if not hasattr(os, "kill") or sys.platform == "win32":
        pytest.skip("the system has no SIGTERM of that kind")
    before = signal.getsignal(signal.SIGTERM)

    def terminate(first: str) -> None:
        if first == "im2":
            os.kill(os.getpid(), signal.SIGTERM)

    calls.before_call = terminate
    assert run(folder, "-o", tmp_path / "out") == 130
    assert files(tmp_path / "out") == ["im1.flo", "run.json"]
    assert signal.getsignal(signal.SIGTERM) is before


def test_other_settings_are_refused(
    tmp_path: Path, folder: Path, calls: Calls, fails: Callable[..., str]
) -> None:
    out = tmp_path / "out"
    interrupt_at(calls, "im3")
    assert run(folder, "-o", out) == 130
    before = {path: path.read_bytes() for path in out.iterdir()}
    message = fails(folder, "-o", out, "--window", 16)
    assert "window was auto, not [-8, 16, -8, 16]" in message
    assert "--overwrite" in message
    assert "every was 1, not 2" in fails(folder, "-o", out, "--every", 2)
    assert "scale was 0, not 2" in fails(folder, "-o", out, "--scale", 2)
    other = write_folder(tmp_path / "other", moving(4))
    assert f"another input than {other}" in fails(other, "-o", out)
    os.utime(folder / "im1.png", (1, 1))
    assert "as it is now" in fails(folder, "-o", out)
    assert {path: path.read_bytes() for path in out.iterdir()} == before
    # Begun anew, even if that is interrupted, nothing of the old run is taken for the new one's.
    interrupt_at(calls, "im2")
    assert run(folder, "-o", out, "--window", 16, "--overwrite") == 130
    assert files(out) == ["im1.flo", "run.json"]
    assert run(folder, "-o", out, "--window", 16) == 0
    assert firsts(calls) == ["im1", "im2", "im1", "im2", "im3", "im4"]


def test_overwriting_leaves_other_files(tmp_path: Path, folder: Path, calls: Calls) -> None:
    out = tmp_path / "out"
    assert run(folder, "-o", out) == 0
    mine = ["im1.txt", "other.flo", "im1.npy"]
    for name in mine:
        (out / name).write_text("mine")
    assert run(folder, "-o", out, "--overwrite", "--stop", 2) == 0
    assert files(out) == sorted([*mine, "im1.flo", "run.json"])


def test_foreign_files_are_not_touched(
    tmp_path: Path, folder: Path, calls: Calls, fails: Callable[..., str]
) -> None:
    out, viz = tmp_path / "out", tmp_path / "viz"
    for place, name in ((out, "im2.flo"), (viz, "im3.png")):
        place.mkdir()
        (place / name).write_text("mine")
        message = fails(folder, "-o", out, "--viz", viz)
        assert f"{place}: holds files of these names, and no run.json" in message
        assert (place / name).read_text() == "mine"
        (place / name).unlink()
    (out / "run.json").write_text('{"maker": "me"}')
    assert "is not from 'hamflow video'" in fails(folder, "-o", out)
    (out / "run.json").write_text("{")
    assert "is not from 'hamflow video'" in fails(folder, "-o", out)
    assert calls.pairs == []
    assert run(folder, "-o", out, "--overwrite") == 0


def test_existing_video(
    tmp_path: Path, folder: Path, calls: Calls, fails: Callable[..., str]
) -> None:
    out = tmp_path / "out.mp4"
    out.write_text("mine")
    assert "is there already; add --overwrite" in fails(folder, "-o", out)
    assert calls.pairs == []
    # It stays until the new one is complete, which may take two runs.
    interrupt_at(calls, "im2")
    assert run(folder, "-o", out, "--overwrite") == 130
    assert out.read_text() == "mine"
    assert run(folder, "-o", out) == 0
    assert open_frames(out).count == 4
    assert firsts(calls) == ["im1", "im2", "im3", "im4"]


def test_nothing_half_written(
    tmp_path: Path,
    folder: Path,
    calls: Calls,
    monkeypatch: pytest.MonkeyPatch,
    fails: Callable[..., str],
) -> None:
    out, viz = tmp_path / "out", tmp_path / "viz"

    def full(*_: object) -> None:
        raise FileError("viz: the disk is full.")

    with monkeypatch.context() as patch:
        patch.setattr("hamflow.cli._video_store.write_image", full)
        assert "disk is full" in fails(folder, "-o", out, "--viz", viz)
    assert files(out) == ["run.json"]
    assert files(viz) == ["run.json"]
    assert run(folder, "-o", out, "--viz", viz) == 0
    assert files(out) == ["im1.flo", "im2.flo", "im3.flo", "im4.flo", "run.json"]


# --- colors -------------------------------------------------------------------------------------


def test_one_scale_for_all_frames(
    tmp_path: Path, folder: Path, calls: Calls, capsys: pytest.CaptureFixture[str]
) -> None:
    calls.grows = True
    viz = tmp_path / "viz"
    assert run(folder, "-o", tmp_path / "a", "--viz", viz, "--max-flow", 8) == 0
    for k in range(1, 5):
        flow = hamflow.read_flow(tmp_path / "a" / f"im{k}.flo")
        assert np.all(flow == (k, 0))
        expected = hamflow.flow_to_color(flow, max_flow=8)
        assert np.array_equal(hamflow.read_image(viz / f"im{k}.png"), expected)
    assert "--max-flow 8)" in capsys.readouterr().out
    record = json.loads((viz / "run.json").read_bytes())
    assert record["max_flow"] == 8
    assert record["size"] == [64, 48]


def test_the_first_pair_sets_the_scale(
    tmp_path: Path, folder: Path, calls: Calls, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.mkv"
    assert run(folder, "-o", out, "--viz", tmp_path / "viz") == 0
    assert "full color is 5 px (--max-flow 5)" in capsys.readouterr().out
    flow = np.full((48, 64, 2), (3, 4), np.float32)
    pictures = [hamflow.read_image(tmp_path / "viz" / f"im{k}.png") for k in range(1, 5)]
    for picture in pictures:
        assert np.array_equal(picture, hamflow.flow_to_color(flow, max_flow=5))


def test_another_scale_is_refused(
    tmp_path: Path, folder: Path, calls: Calls, fails: Callable[..., str]
) -> None:
    out, viz = tmp_path / "out", tmp_path / "viz"
    interrupt_at(calls, "im3")
    assert run(folder, "-o", out, "--viz", viz) == 130
    message = fails(folder, "-o", out, "--viz", viz, "--max-flow", 9)
    assert f"{viz}: holds results of other settings (max_flow was 5.0, not 9.0)" in message
    # Flow files do not depend on it.
    assert run(folder, "-o", out, "--viz", tmp_path / "viz2", "--max-flow", 9) == 0


# --- options -------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".png", "npz", ".PFM"])
def test_formats(tmp_path: Path, folder: Path, calls: Calls, suffix: str) -> None:
    out = tmp_path / "out"
    assert run(folder, "-o", out, "--format", suffix, "--backward", tmp_path / "back") == 0
    ending = f".{suffix.lower().removeprefix('.')}"
    assert (hamflow.read_flow(out / f"im1{ending}") == (3, 4)).all()
    assert (hamflow.read_flow(tmp_path / "back" / f"im1{ending}") == (-3, -4)).all()


def test_wrong_options(
    tmp_path: Path, folder: Path, calls: Calls, fails: Callable[..., str]
) -> None:
    out, film = tmp_path / "out", tmp_path / "out.mp4"
    assert "--format must be one of" in fails(folder, "-o", out, "--format", ".xyz")
    assert "--format is for" in fails(folder, "-o", film, "--format", ".flo")
    assert "--fps is for" in fails(folder, "-o", out, "--fps", 9)
    assert "--fps must be" in fails(folder, "-o", film, "--fps", 0)
    assert "--max-flow is for" in fails(folder, "-o", out, "--max-flow", 9)
    assert "--max-flow must be" in fails(folder, "-o", film, "--max-flow", 0)
    assert "--output must be a folder, or a video" in fails(folder, "-o", tmp_path / "a.flo")
    assert "are the same file" in fails(folder, "-o", folder)
    assert "are the same file" in fails(folder, "-o", out, "--viz", out)
    assert "are the same file" in fails(folder, "-o", film, "--viz", tmp_path / "out.mp4.parts")
    assert "does not exist" in fails(tmp_path / "gone.mp4", "-o", out)
    assert "create it first" in fails(folder, "-o", tmp_path / "gone" / "out.mp4")
    assert "--window" in fails(folder, "-o", out, "--window", "wide")
    assert "is a file, but is to be a folder" in fails(folder, "-o", folder / "im1.png" / "out")
    assert calls.pairs == []
    assert os.listdir(tmp_path) == ["in"]


def test_one_direction(tmp_path: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    args = ("video", folder, "-o", tmp_path / "out", "--preset", "paper", "--model", "pairs")
    for option in ("--backward", "--occlusion", "--confidence"):
        assert main([*map(str, args), option, str(tmp_path / "x")]) == 1
        assert f"{option} needs a preset" in capsys.readouterr().err
    assert os.listdir(tmp_path) == ["in"]


def test_beyond_the_range_of_a_format(
    tmp_path: Path, folder: Path, calls: Calls, monkeypatch: pytest.MonkeyPatch, fails: Any
) -> None:
    true_between = Estimator.between

    def far(self: Estimator, *args: Any, **options: Any) -> Any:
        result, state = true_between(self, *args, **options)
        result.flow[0, 0] = 999
        return result, state

    monkeypatch.setattr(Estimator, "between", far)
    message = fails(folder, "-o", tmp_path / "out", "--format", ".png")
    assert str(tmp_path / "out" / "im1.png") in message
    assert "choose another --format" in message
    assert files(tmp_path / "out") == ["run.json"]


def test_without_av(
    tmp_path: Path,
    folder: Path,
    calls: Calls,
    monkeypatch: pytest.MonkeyPatch,
    fails: Callable[..., str],
) -> None:
    source = write_video(tmp_path / "in.avi", moving(2))
    monkeypatch.setitem(sys.modules, "av", None)
    assert "hamflow[video]" in fails(source, "-o", tmp_path / "out")
    assert "hamflow[video]" in fails(folder, "-o", tmp_path / "out.mp4")
    assert run(folder, "-o", tmp_path / "out") == 0


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_info:
        main(["video", "--help"])
    assert exit_info.value.code == 0
    printed = capsys.readouterr().out
    for words in ("IN", "--output", "--max-flow", "--on-broken", "--format", "run.json"):
        assert words in printed

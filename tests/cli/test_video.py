"""``hamflow video``."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hamflow
from _video_calls import QUICK, Calls, files, firsts, run
from _videos import damage_packet, moving, write_folder, write_video
from hamflow import Estimator
from hamflow.cli import _video_frames as module
from hamflow.cli.main import main
from hamflow.io.video import open_frames
from hamflow.visualize import RunningScale, render

COMMAND = ("video", *QUICK)


# --- end to end ----------------------------------------------------------------------------------


def test_folder_to_folder(tmp_path: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "im5.png").rename(folder / "im10.png")
    out = tmp_path / "new" / "out"
    extras = {name: tmp_path / name for name in ("backward", "occlusion", "confidence", "viz")}
    options = [word for name, path in extras.items() for word in (f"--{name}", path)]
    assert run(folder, "-o", out, *options) == 0
    names = ["im1", "im2", "im3", "im4"]
    assert files(out) == [*(f"{name}.flo" for name in names), "run.jsonl"]
    assert files(extras["backward"]) == files(out)
    for kind in ("occlusion", "confidence", "viz"):
        assert files(extras[kind]) == [*(f"{name}.png" for name in names), "run.jsonl"]
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
    assert f" s per pair: {out}, " in printed.out
    assert all(f"{path}" in printed.out for path in extras.values())
    assert printed.out.count("\n") == 1
    assert printed.err == ""


def test_same_results_as_pair_by_pair(tmp_path: Path, folder: Path) -> None:
    assert run(folder, "-o", tmp_path / "out") == 0
    estimator = Estimator("fast", model="pairs")
    frames = [estimator.frame(folder / f"im{k}.png") for k in range(1, 6)]
    state = None
    for k in range(4):
        result, state = estimator.between(frames[k], frames[k + 1], previous=state)
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
    assert files(out) == ["im1.flo", "run.jsonl"]
    assert run(folder, "-o", out, "--on-broken", "skip") == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("1 pair done, 1 done before, 1 frame skipped, ")
    assert printed.err.startswith(f"Skipped: {folder / 'im3.png'}: frame 3: ")
    assert files(out) == ["im1.flo", "im4.flo", "run.jsonl"]
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
    assert "2 pairs done, 2 done before, 1 frame skipped" in capsys.readouterr().out
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
    assert "--stop must be at least 2" in fails(folder, "-o", out, "--stop", 1)
    assert not out.exists()


def test_no_two_good_frames(
    tmp_path: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in (2, 4):
        (folder / f"im{number}.png").write_bytes(b"")
    assert run(folder, "-o", tmp_path / "out", "--on-broken", "skip") == 1
    assert "no two intact frames" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_announced_frames_are_missing(
    tmp_path: Path, calls: Calls, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    frames = open_frames(write_video(tmp_path / "in.avi", moving(4)))
    frames.count = 9
    monkeypatch.setattr(module, "open_frames", lambda _, **__: frames)
    assert run(tmp_path / "in.avi", "-o", tmp_path / "out") == 0
    assert "claims 9 frames, but has 4." in capsys.readouterr().out


def test_selection(tmp_path: Path, folder: Path, calls: Calls, fails: Callable[..., str]) -> None:
    options = ("--start", 2, "--every", 2)
    assert run(folder, "-o", tmp_path / "a", *options) == 0
    assert calls.pairs == [("im2", "im4")]
    source = write_video(tmp_path / "in.mkv", moving(8))
    assert run(source, "-o", tmp_path / "b.mkv", *options, "--stop", 7) == 0
    assert calls.pairs[1:] == [("frame_000002", "frame_000004"), ("frame_000004", "frame_000006")]
    assert open_frames(tmp_path / "b.mkv").fps == 15
    assert "--start" in fails(folder, "-o", tmp_path / "c", "--start", 0)
    assert "--every" in fails(folder, "-o", tmp_path / "c", "--every", 0)


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
        expected = render(None, flow, "color", 8, key=True)
        assert np.array_equal(hamflow.read_image(viz / f"im{k}.png"), expected)
    assert "full color is 8 px (--max-flow 8)" in capsys.readouterr().out
    record = json.loads((viz / "run.jsonl").read_text().splitlines()[1])
    assert record["max_flow"] == 8
    assert record["size"] == [64, 48]


def test_the_scale_follows_the_motion(
    tmp_path: Path, folder: Path, calls: Calls, capsys: pytest.CaptureFixture[str]
) -> None:
    calls.grows = True
    viz = tmp_path / "viz"
    assert run(folder, "-o", tmp_path / "out.mkv", "--viz", viz, "--no-key") == 0
    running = RunningScale()
    scales = [running.add(length) for length in (1, 2, 3, 4)]
    assert (
        f"full color is 1 to {scales[-1]:.4g} px (the same for all with --max-flow 3.85)"
        in capsys.readouterr().out
    )
    for k, scale in enumerate(scales, 1):
        flow = np.full((48, 64, 2), (k, 0), np.float32)
        picture = hamflow.read_image(viz / f"im{k}.png")
        assert np.array_equal(picture, hamflow.flow_to_color(flow, max_flow=scale))


def test_the_same_scale_if_nothing_changes(
    tmp_path: Path, folder: Path, calls: Calls, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(folder, "-o", tmp_path / "out.mkv") == 0
    assert "full color is 5 px (--max-flow 5)" in capsys.readouterr().out


def test_cuts(
    tmp_path: Path, folder: Path, calls: Calls, capsys: pytest.CaptureFixture[str]
) -> None:
    calls.grows = True
    calls.cuts = {"im2"}
    args = (folder, "-o", tmp_path / "out", "--viz", tmp_path / "viz")
    assert run(*args) == 0
    assert "; 1 cut (after im2)." in (printed := capsys.readouterr().out)
    # Another scene begins with im3, and the scale anew.
    lines = (tmp_path / "viz" / "run.jsonl").read_text().splitlines()[1:]
    records = [json.loads(line) for line in lines]
    assert [record["max_flow"] for record in records][:3] == [1, 1, 3]
    assert [record["cut"] for record in records] == [False, True, False, False]
    # The same is known without computing.
    assert run(*args) == 0
    assert capsys.readouterr().out.partition("; ")[2] == printed.partition("; ")[2]


# --- options -------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".kitti.png", "npz", ".PFM"])
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
    assert "No output is given" in fails(folder)
    assert "--video must be a video" in fails(folder, "-o", out, "--video", tmp_path / "x")
    assert "--viz must be a folder, not" in fails(folder, "-o", out, "--viz", "a.mp4")
    assert "--occlusion must be a folder, or a video" in fails(folder, "--occlusion", "-")
    assert "leave --video out" in fails(folder, "-o", film, "--video", tmp_path / "b.mp4")
    assert "--style is for" in fails(folder, "-o", out, "--style", "arrows")
    assert "--no-key is for" in fails(folder, "-o", out, "--no-key")
    assert "--size is for raw frames" in fails(folder, "-o", out, "--size", "64x48")
    assert "--size must be width and height" in fails("-", "-o", out, "--size", "64")
    assert "--fps must be" in fails(folder, "-o", film, "--fps", 0)
    assert "--max-flow is for" in fails(folder, "-o", out, "--max-flow", 9)
    assert "--max-flow must be" in fails(folder, "-o", film, "--max-flow", 0)
    assert "--output must be a folder, or a video" in fails(folder, "-o", tmp_path / "a.flo")
    assert "are the same file" in fails(folder, "-o", folder)
    assert "are the same file" in fails(folder, "-o", out, "--viz", out)
    assert "are the same file" in fails(folder, "--occlusion", film, "--video", film)
    assert "are the same file" in fails(folder, "-o", film, "--viz", tmp_path / "out.mp4.parts")
    assert "does not exist" in fails(tmp_path / "gone.mp4", "-o", out)
    assert "create it first" in fails(folder, "-o", tmp_path / "gone" / "out.mp4")
    assert "--window" in fails(folder, "-o", out, "--window", "wide")
    assert "cannot be created as a folder" in fails(folder, "-o", folder / "im1.png" / "out")
    assert calls.pairs == []
    assert os.listdir(tmp_path) == ["in"]


def test_one_direction(tmp_path: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    args = ("video", folder, "-o", tmp_path / "out", "--preset", "paper", "--model", "pairs")
    for option in ("--backward", "--occlusion", "--confidence"):
        assert main([*map(str, args), option, str(tmp_path / "x")]) == 1
        assert f"{option} needs the flow in both directions" in capsys.readouterr().err
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
    message = fails(folder, "-o", tmp_path / "out", "--format", ".kitti.png")
    assert str(tmp_path / "out" / "im1.kitti.png") in message
    assert "choose another --format" in message
    assert not (tmp_path / "out").exists()


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

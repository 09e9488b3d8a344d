"""``hamflow video`` interrupted, continued, and with something changed in between."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import hamflow
from _video_calls import QUICK, Calls, files, firsts, interrupt_at, run
from _videos import moving, write_folder, write_video
from hamflow import FileError
from hamflow.io import video as video_io
from hamflow.io.video import open_frames
from hamflow.visualize import RunningScale

COMMAND = ("video", *QUICK)


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
    assert files(out) == ["im1.flo", "im2.flo", "run.jsonl"]
    before = (out / "im1.flo").read_bytes()
    assert run(folder, "-o", out, "--viz", viz) == 0
    assert firsts(calls) == ["im1", "im2", "im3", "im4"]
    assert calls.fresh == ["im1", "im3"]
    assert "2 pairs done, 2 done before" in (printed := capsys.readouterr().out)
    # The scale goes on from where it was.
    running = RunningScale()
    scales = [running.add(length) for length in (1, 2, 3, 4)]
    assert f"full color is 1 to {scales[-1]:.4g} px" in printed
    lines = (viz / "run.jsonl").read_text().splitlines()[1:]
    assert [json.loads(line)["max_flow"] for line in lines] == scales
    assert (out / "im1.flo").read_bytes() == before
    # Nothing left to do; then something that got lost.
    assert run(folder, "-o", out, "--viz", viz) == 0
    assert "0 pairs done, 4 done before: " in capsys.readouterr().out
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
    assert files(parts) == ["im1.png", "im2.png", "run.jsonl"]
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


def test_sigterm(tmp_path: Path, folder: Path, calls: Calls) -> None:
    if not hasattr(os, "kill") or sys.platform == "win32":
        pytest.skip("the system has no SIGTERM of that kind")
    before = signal.getsignal(signal.SIGTERM)

    def terminate(first: str) -> None:
        if first == "im2":
            os.kill(os.getpid(), signal.SIGTERM)

    calls.before_call = terminate
    assert run(folder, "-o", tmp_path / "out") == 130
    assert files(tmp_path / "out") == ["im1.flo", "run.jsonl"]
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
    assert "input.folder was in, not other" in fails(other, "-o", out)
    assert {path: path.read_bytes() for path in out.iterdir()} == before
    # Begun anew, even if that is interrupted, nothing of the old run is taken for the new one's.
    interrupt_at(calls, "im2")
    assert run(folder, "-o", out, "--window", 16, "--overwrite") == 130
    assert files(out) == ["im1.flo", "run.jsonl"]
    assert run(folder, "-o", out, "--window", 16) == 0
    assert firsts(calls) == ["im1", "im2", "im1", "im2", "im3", "im4"]


def test_a_changed_frame(tmp_path: Path, folder: Path, calls: Calls) -> None:
    out = tmp_path / "out"
    assert run(folder, "-o", out) == 0
    for number in range(1, 6):
        os.utime(folder / f"im{number}.png", (1, 1))  # as after copying
    hamflow.write_image(folder / "im3.png", moving(9)[8])
    assert run(folder, "-o", out) == 0
    assert calls.pairs[4:] == [("im2", "im3"), ("im3", "im4")]
    # With every other frame, the one in between does not matter.
    assert run(folder, "-o", tmp_path / "two", "--every", 2) == 0
    hamflow.write_image(folder / "im2.png", moving(9)[7])
    assert run(folder, "-o", tmp_path / "two", "--every", 2) == 0
    assert calls.pairs[6:] == [("im1", "im3"), ("im3", "im5")]


def test_another_video_of_the_same_name(
    tmp_path: Path, calls: Calls, fails: Callable[..., str]
) -> None:
    source = write_video(tmp_path / "in.avi", moving(3))
    assert run(source, "-o", tmp_path / "out") == 0
    os.utime(source, (1, 1))
    assert run(source, "-o", tmp_path / "out") == 0
    write_video(source, moving(3, step=3))
    assert "other settings (input.sha256 was " in fails(source, "-o", tmp_path / "out")
    assert len(calls.pairs) == 2


def test_a_planted_file(tmp_path: Path, folder: Path, calls: Calls) -> None:
    out, viz = tmp_path / "out", tmp_path / "viz"
    interrupt_at(calls, "im2")
    assert run(folder, "-o", out, "--viz", viz) == 130
    (out / "im1.flo").write_bytes(b"PI")
    (out / "im3.flo").write_bytes(b"PI")
    assert run(folder, "-o", out, "--viz", viz) == 0
    assert firsts(calls) == ["im1", "im1", "im2", "im3", "im4"]
    for number in range(1, 5):
        assert (hamflow.read_flow(out / f"im{number}.flo") == (3, 4)).all()
    damaged = bytearray((viz / "im4.png").read_bytes())
    damaged[-20] ^= 1
    (viz / "im4.png").write_bytes(damaged)
    assert run(folder, "-o", out, "--viz", viz) == 0
    assert firsts(calls)[5:] == ["im4"]


def test_two_at_a_time(
    tmp_path: Path, folder: Path, calls: Calls, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("fcntl")
    out, viz = tmp_path / "out", tmp_path / "viz"
    said: list[str] = []

    def meanwhile(first: str) -> None:
        if first == "im2":
            calls.before_call = lambda _: None
            capsys.readouterr()
            for options in (("-o", out), ("-o", out, "--overwrite"), ("-o", viz)):
                assert run(folder, *options, "--window", 16) == 1
                said.append(capsys.readouterr().err)
            assert run(folder, "-o", tmp_path / "a", "--viz", viz) == 1

    calls.before_call = meanwhile
    assert run(folder, "-o", out, "--viz", viz) == 0
    assert len(said) == 3
    for message in said:
        assert f"is in use by another run (process {os.getpid()} on " in message
    assert firsts(calls) == ["im1", "im2", "im3", "im4"]
    assert sorted(os.listdir(tmp_path)) == ["in", "out", "viz"]


def test_overwriting_leaves_other_files(tmp_path: Path, folder: Path, calls: Calls) -> None:
    out = tmp_path / "out"
    assert run(folder, "-o", out) == 0
    mine = ["im1.txt", "other.flo", "im1.npy"]
    for name in mine:
        (out / name).write_text("mine")
    assert run(folder, "-o", out, "--overwrite", "--stop", 2) == 0
    assert files(out) == sorted([*mine, "im1.flo", "run.jsonl"])


def test_foreign_files_are_not_touched(
    tmp_path: Path, folder: Path, calls: Calls, fails: Callable[..., str]
) -> None:
    out, viz = tmp_path / "out", tmp_path / "viz"
    for place, name in ((out, "im2.flo"), (viz, "im3.png")):
        place.mkdir()
        (place / name).write_text("mine")
        for overwrite in ((), ("--overwrite",)):
            message = fails(folder, "-o", out, "--viz", viz, *overwrite)
            assert f"{place}: holds files, but no run.jsonl that tells" in message
        assert (place / name).read_text() == "mine"
        (place / name).unlink()
    for text in ('{"work": "me", "settings": {}}\n', "{"):
        (out / "run.jsonl").write_text(text)
        assert "is not the log of an earlier video" in fails(folder, "-o", out, "--overwrite")
    assert calls.pairs == []
    (out / "run.jsonl").unlink()
    assert run(folder, "-o", out) == 0


def test_existing_video(
    tmp_path: Path, folder: Path, calls: Calls, fails: Callable[..., str]
) -> None:
    out = tmp_path / "out.mp4"
    out.write_text("mine")
    assert "already exists; add --overwrite" in fails(folder, "-o", out)
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
        patch.setattr("hamflow.cli._video_outputs.write_image", full)
        assert "disk is full" in fails(folder, "-o", out, "--viz", viz)
    assert not out.exists()
    assert not viz.exists()
    assert run(folder, "-o", out, "--viz", viz) == 0
    assert files(out) == ["im1.flo", "im2.flo", "im3.flo", "im4.flo", "run.jsonl"]


def test_another_scale_is_refused(
    tmp_path: Path, folder: Path, calls: Calls, fails: Callable[..., str]
) -> None:
    out, viz = tmp_path / "out", tmp_path / "viz"
    interrupt_at(calls, "im3")
    assert run(folder, "-o", out, "--viz", viz) == 130
    message = fails(folder, "-o", out, "--viz", viz, "--max-flow", 9)
    assert (
        f"{viz / 'run.jsonl'}: holds results of other settings (max_flow was running, not 9"
        in message
    )
    message = fails(folder, "-o", out, "--viz", viz, "--style", "overlay")
    assert "(style was color, not overlay)" in message
    # Flow files do not depend on it.
    assert run(folder, "-o", out, "--viz", tmp_path / "viz2", "--max-flow", 9) == 0

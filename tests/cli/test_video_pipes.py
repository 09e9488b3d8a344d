"""``hamflow video`` with several outputs, with streams on both ends, and with cameras."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import av
import numpy as np
import pytest

import hamflow
from _video_calls import QUICK, Calls, files, firsts, interrupt_at, run
from _videos import moving, write_video
from hamflow.io import _live
from hamflow.io.video import open_frames
from hamflow.visualize import render

FRAMES = moving(5)
RAW = b"".join(frame.tobytes() for frame in FRAMES)
NAMES = [f"frame_{k:06}" for k in range(1, 5)]
FLOW = np.full((48, 64, 2), (3, 4), np.float32)
needs_ffmpeg = pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="needs the program ffmpeg")


@pytest.fixture
def stdin(monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], None]:
    """Set what comes from the standard input."""

    def put(content: bytes) -> None:
        fake = SimpleNamespace(buffer=io.BytesIO(content), isatty=lambda: False)
        monkeypatch.setattr("sys.stdin", fake)

    return put


# --- several outputs -----------------------------------------------------------------------------


def test_everything_at_once(tmp_path: Path, folder: Path, calls: Calls) -> None:
    paths = {
        "--output": "flows",
        "--video": "colors.mp4",
        "--viz": "pictures",
        "--occlusion": "masks.mkv",
        "--confidence": "confidence",
        "--backward": "back",
    }
    options = [word for option, name in paths.items() for word in (option, tmp_path / name)]
    interrupt_at(calls, "im3")
    assert run(folder, *options) == 130
    assert (tmp_path / "colors.mp4.parts").is_dir()
    assert (tmp_path / "masks.mkv.parts").is_dir()
    assert run(folder, *options) == 0
    assert firsts(calls) == ["im1", "im2", "im3", "im4"]
    assert sorted(os.listdir(tmp_path)) == sorted([*paths.values(), "in"])
    assert files(tmp_path / "flows")[0] == "im1.flo"
    assert files(tmp_path / "back")[3] == "im4.flo"
    assert open_frames(tmp_path / "colors.mp4").count == 4
    masks = [frame.image for frame in open_frames(tmp_path / "masks.mkv")]
    assert len(masks) == 4
    assert max(mask.max() for mask in masks) < 20
    picture = hamflow.read_image(tmp_path / "confidence" / "im2.png")
    assert (picture == round(0.4 * 255)).all()


def test_a_video_beside_a_new_folder(
    tmp_path: Path, folder: Path, calls: Calls, fails: Callable[..., str]
) -> None:
    """The folders above that of the flow files are made by the same run."""
    new = tmp_path / "new"
    films = ("--video", new / "a.mp4", "--occlusion", new / "more" / "b.mp4")
    assert "more does not exist; create it first" in fails(folder, "-o", new / "out", *films)
    assert not new.exists()
    assert run(folder, "-o", new / "more" / "out", *films) == 0
    assert open_frames(new / "a.mp4").count == 4
    assert open_frames(new / "more" / "b.mp4").count == 4


def test_masks_alone(tmp_path: Path, folder: Path, calls: Calls) -> None:
    assert run(folder, "--occlusion", tmp_path / "masks") == 0
    assert sorted(os.listdir(tmp_path)) == ["in", "masks"]
    assert len(files(tmp_path / "masks")) == 5


@pytest.mark.parametrize("style", ["color", "overlay", "arrows", "side-by-side"])
def test_styles(tmp_path: Path, folder: Path, calls: Calls, style: Any) -> None:
    viz, film = tmp_path / "viz", tmp_path / "out.mkv"
    assert run(folder, "--viz", viz, "--video", film, "--style", style, "--stop", 3) == 0
    shown = [frame.image for frame in open_frames(film)]
    result = hamflow.FlowResult(
        flow=FLOW,
        backward=-FLOW,
        occlusion=FLOW[..., 0] > 100,
        confidence=np.full((48, 64), 0.4, np.float32),
        energy=None,
        bound=None,
        gap=None,
        window=hamflow.Window(0, 1, 0, 1),
        scale=1,
    )
    for k in range(2):
        picture = hamflow.read_image(viz / f"im{k + 1}.png")
        assert np.array_equal(picture, render(FRAMES[k], result, style, 5, key=True))
        assert np.abs(picture.astype(int) - shown[k]).mean() < 12


# --- from the standard input ---------------------------------------------------------------------


def test_raw_frames_from_stdin(
    tmp_path: Path, calls: Calls, stdin: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    out, film = tmp_path / "out", tmp_path / "out.mkv"
    stdin(RAW)
    assert run("-", "-o", out, "--video", film, "--size", "64x48", "--fps", 10) == 0
    assert files(out) == [*(f"{name}.flo" for name in NAMES), "run.jsonl"]
    assert open_frames(film).fps == 10
    lines = [json.loads(line) for line in (out / "run.jsonl").read_text().splitlines()[1:]]
    assert [line["time"] for line in lines] == [0, 0.1, 0.2, 0.3]
    assert capsys.readouterr().out.startswith("4 pairs done, ")


def test_a_stream_cannot_be_continued(
    tmp_path: Path, calls: Calls, stdin: Any, fails: Callable[..., str]
) -> None:
    out = tmp_path / "out"
    stdin(RAW)
    assert run("-", "-o", out, "--size", "64x48", "--stop", 3) == 0
    before = files(out)
    stdin(RAW)
    message = fails("-", "-o", out, "--size", "64x48")
    assert "which frames from stdin cannot continue" in message
    assert files(out) == before
    stdin(RAW)
    assert run("-", "-o", out, "--size", "64x48", "--overwrite") == 0
    assert len(files(out)) == 5


COMMAND = ("video", *QUICK)


def test_ctrl_c_completes_what_came(
    tmp_path: Path, calls: Calls, stdin: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    stdin(RAW)
    interrupt_at(calls, NAMES[2])
    out, film = tmp_path / "out", tmp_path / "out.mp4"
    assert run("-", "-o", out, "--video", film, "--size", "64x48") == 0
    assert open_frames(film).count == 2
    assert files(out) == ["frame_000001.flo", "frame_000002.flo", "run.jsonl"]
    printed = capsys.readouterr().out
    assert printed.startswith("2 pairs done, ")
    assert "; ended by Ctrl-C, and stdin cannot be continued." in printed
    assert sorted(os.listdir(tmp_path)) == ["out", "out.mp4"]


def test_ctrl_c_between_two_files_of_a_pair(
    tmp_path: Path, calls: Calls, stdin: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last pair has a mask, but no picture: it is not part of the video."""
    stdin(RAW)
    written: list[str] = []
    true_write = hamflow.write_image

    def write(path: Path, picture: Any) -> None:
        if path.stem == NAMES[2]:
            raise KeyboardInterrupt
        written.append(path.name)
        true_write(path, picture)

    monkeypatch.setattr("hamflow.cli._video_outputs.write_image", write)
    film, masks = tmp_path / "out.mp4", tmp_path / "masks"
    assert run("-", "-o", film, "--occlusion", masks, "--size", "64x48") == 0
    assert written == [f"{name}.png" for name in NAMES[:2]]
    assert len(files(masks)) == 4
    assert open_frames(film).count == 2


def test_a_truncated_stream(
    tmp_path: Path, calls: Calls, stdin: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    stdin(RAW[:-9])
    film = tmp_path / "out.mp4"
    assert run("-", "-o", film, "--size", "64x48") == 1
    printed = capsys.readouterr()
    assert printed.out.startswith("3 pairs done, ")
    assert "stdin: frame 5 cannot be decoded" in printed.err
    # One bracket after the other, or what does not come, would confuse.
    assert printed.err.endswith("the stream was cut off; --on-broken skip leaves it out.\n")
    assert open_frames(film).count == 3
    stdin(RAW[:-9])
    args = ("-", "-o", film, "--size", "64x48", "--on-broken", "skip", "--overwrite")
    assert run(*args) == 0
    assert "3 pairs done, 1 frame skipped" in capsys.readouterr().out


@pytest.mark.parametrize("content", [b"", b"hello", RAW])
def test_no_stream(
    tmp_path: Path, calls: Calls, stdin: Any, fails: Callable[..., str], content: bytes
) -> None:
    stdin(content)
    assert "stdin: " in fails("-", "-o", tmp_path / "out")
    assert os.listdir(tmp_path) == []


# --- to the standard output ----------------------------------------------------------------------


def test_to_stdout(
    tmp_path: Path, folder: Path, calls: Calls, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    masks = tmp_path / "masks"
    for _ in range(2):  # the second time, the masks are there; the stream is whole again
        assert run(folder, "-o", "-", "--occlusion", masks, "--fps", 12, "--no-key") == 0
        printed = capfdbinary.readouterr()
        assert printed.err.startswith(b"4 pairs done, ")
        assert printed.out.startswith(b"YUV4MPEG2 W64 H48 F12:1 ")
        shown = [frame.image for frame in open_frames(io.BytesIO(printed.out))]
        assert len(shown) == 4
        expected = hamflow.flow_to_color(FLOW, max_flow=5)
        for picture in shown:
            assert np.abs(picture.astype(int) - expected).max() < 6
    assert len(files(masks)) == 5


def test_interrupted_stream(
    folder: Path, calls: Calls, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    interrupt_at(calls, "im3")
    assert run(folder, "--video", "-") == 130
    printed = capfdbinary.readouterr()
    assert printed.err.startswith(b"Stopped early after 2 pairs.\n")
    assert len(list(open_frames(io.BytesIO(printed.out)))) == 2


def test_terminal(folder: Path, calls: Calls, monkeypatch: Any, fails: Callable[..., str]) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert "The standard output is a terminal" in fails(folder, "-o", "-")


def test_the_other_program_ends(
    folder: Path, calls: Calls, monkeypatch: pytest.MonkeyPatch, fails: Callable[..., str]
) -> None:
    class Closed(io.RawIOBase):
        def write(self, _: Any) -> int:
            raise BrokenPipeError(32, "Broken pipe")

    class Out(io.StringIO):
        buffer = SimpleNamespace(raw=Closed())

    monkeypatch.setattr("sys.stdout", Out())
    message = fails(folder, "-o", "-")
    assert "stdout: the program behind the pipe has ended; look at its messages." in message


@needs_ffmpeg
def test_between_two_ffmpegs(tmp_path: Path) -> None:
    """The whole line, with real processes."""
    source = write_video(tmp_path / "in.avi", FRAMES)
    quiet = "ffmpeg -nostdin -v error"
    line = (
        f"set -o pipefail; {quiet} -i {source} -f image2pipe -c:v png - | "
        f"{sys.executable} -m hamflow video - -o - --style overlay --occlusion {tmp_path}/masks "
        f"{' '.join(QUICK)} | {quiet} -i - {tmp_path}/out.mp4"
    )
    done = subprocess.run(["bash", "-c", line], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == b""
    assert done.stderr.startswith(b"4 pairs done, ")
    with av.open(str(tmp_path / "out.mp4")) as container:
        stream = container.streams.video[0]
        assert (stream.width, stream.height, stream.pix_fmt) == (64, 48, "yuv420p")
    assert open_frames(tmp_path / "out.mp4").count == 4
    assert len(files(tmp_path / "masks")) == 5


# --- cameras -------------------------------------------------------------------------------------


def test_camera(tmp_path: Path, calls: Calls, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    recorded = write_video(tmp_path / "in.avi", FRAMES)
    true_open = av.open

    def fake(file: str, *args: Any, **options: Any) -> Any:
        camera = file == "/dev/video2" and options["format"] == "v4l2"
        return true_open(str(recorded)) if camera else true_open(file, *args, **options)

    monkeypatch.setattr(av, "open", fake)
    monkeypatch.setattr(_live, "sys", SimpleNamespace(platform="linux"))
    interrupt_at(calls, NAMES[3])
    assert run("camera:2", "-o", tmp_path / "out.mp4") == 0
    assert open_frames(tmp_path / "out.mp4").count == 3
    assert "ended by Ctrl-C, and camera:2 cannot be continued" in capsys.readouterr().out


def test_no_camera(tmp_path: Path, fails: Callable[..., str]) -> None:
    message = fails("camera:987", "-o", tmp_path / "out")
    assert "camera:987: cannot be opened" in message

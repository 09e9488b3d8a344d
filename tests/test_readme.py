"""The examples of README.md and of pages of the documentation run, and what they name exists."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import hamflow
from _paths import ROOT
from _videos import write_video
from hamflow._tables import tomllib
from hamflow.cli.app import COMMANDS
from hamflow.cli.main import main
from hamflow.config import preset_config
from hamflow.datasets import demo_scene
from hamflow.io.video import open_frames

README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGE = (ROOT / "docs" / "estimator.md").read_text(encoding="utf-8")
VIDEO_PAGE = (ROOT / "docs" / "video.md").read_text(encoding="utf-8")
API = README.split("## The API\n")[1].split("\n## ")[0]


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def run_examples(text: str, **names: object) -> dict[str, object]:
    """Run the Python code of a page, one block after the other; return the names it defines."""
    for code in blocks(text, "python"):
        if "video(0" in code:  # there may be no camera
            compile(code, "example", "exec")
        else:
            exec(code, names)
    return names


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files that the examples use, in the working directory."""
    monkeypatch.chdir(tmp_path)
    scene = demo_scene(64, 96)
    frames = [scene.image0, scene.image1, np.roll(scene.image1, 2, axis=1)]
    (tmp_path / "frames").mkdir()
    for number, image in enumerate(frames):
        hamflow.write_image(f"frames/{number}.png", image)
    hamflow.write_image("frame1.png", frames[0])
    hamflow.write_image("frame2.png", frames[1])
    write_video(tmp_path / "clip.mp4", frames)
    return tmp_path


def test_the_api(files: Path) -> None:
    names = run_examples(API)
    assert {"flow.flo", "flow.png", "frame_0001.flo", "frame_0002.flo"} <= {
        path.name for path in files.iterdir()
    }
    assert np.shape(names["warped"]) == (64, 96, 3)


@pytest.mark.parametrize(
    ("name", "needs"),
    [
        ("quickstart", None),
        ("direction", None),
        ("howto/confidence", None),
        ("howto/from-opencv", "cv2"),
        ("howto/from-raft", "torch"),
    ],
)
@pytest.mark.usefixtures("files")
def test_examples(name: str, needs: str | None) -> None:
    if needs is not None:
        pytest.importorskip(needs)
    assert run_examples((ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8"))


@pytest.mark.usefixtures("files")
def test_the_loops_over_a_video(capsys: pytest.CaptureFixture[str]) -> None:
    run_examples(PAGE, hamflow=hamflow)
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["0", "1"]


def test_the_examples_of_pictures(files: Path, caplog: pytest.LogCaptureFixture) -> None:
    pytest.importorskip("tqdm")
    caplog.set_level("INFO", "hamflow")
    text = (ROOT / "docs" / "pictures.md").read_text(encoding="utf-8")
    run_examples(text, hamflow=hamflow)
    for name in ("flow.png", "overlay.png"):
        assert hamflow.read_image(files / name).shape == (64, 96, 3)
    # The line of the log is as the page shows it.
    (shown,) = re.findall("^# INFO:hamflow:(.*)", text, re.MULTILINE)
    said = caplog.messages[-1]
    assert re.sub(r"[\d.]+", "N", said) == re.sub(r"[\d.]+", "N", shown)


def test_the_page_of_videos(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_examples(VIDEO_PAGE)
    printed = capsys.readouterr().out.splitlines()
    assert printed == ["0 0.0", "0 3", "1 3"]
    assert open_frames(files / "overlay.mp4").count == 2


def commands_of_videos() -> list[str]:
    return [line for block in blocks(VIDEO_PAGE, "bash") for line in block.splitlines()]


@pytest.mark.parametrize("line", [c for c in commands_of_videos() if "ffmpeg" not in c])
@pytest.mark.usefixtures("files")
def test_the_commands_of_videos(line: str) -> None:
    assert main(shlex.split(line)[1:]) == 0


@pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="needs the program ffmpeg")
def test_the_pipes_of_videos(files: Path) -> None:
    lines = [line for line in commands_of_videos() if "ffmpeg" in line]
    assert len(lines) == 3
    start = f'set -euo pipefail; hamflow() {{ {sys.executable} -m hamflow "$@"; }}'
    done = subprocess.run(
        ["bash", "-c", "\n".join([start, *lines])],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("2 pairs done, ") == 2
    assert done.stderr.count("2 pairs done, ") == 1
    assert len(list((files / "small").iterdir())) == 3
    for name in ("a.mp4", "b.mp4"):
        frames = open_frames(files / name)
        assert (frames.count, frames.fps) == (2, 30)


def test_the_toml_file(tmp_path: Path) -> None:
    (text,) = blocks(PAGE, "toml")
    (tmp_path / "mine.toml").write_text(text, encoding="utf-8")
    config = preset_config(tmp_path / "mine.toml")
    assert (config.levels, config.completion.method) == (3, "none")


def test_extras() -> None:
    table = README.split("| extra | for |\n")[1].split("\n\n")[0]
    named = {name for row in table.splitlines() for name in re.findall("`(.*?)`", row)}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert named == set(project["optional-dependencies"]) - {"fuzz", "lint", "test"}


def test_commands() -> None:
    table = README.split("| command | what it does |\n")[1].split("\n\n")[0]
    first = [row.split("|")[1] for row in table.splitlines()[1:]]
    named = [name for cell in first for name in re.findall(r"`(?:hamflow )?([a-z]+)", cell)]
    assert sorted(named) == sorted(command.name for command in COMMANDS)

"""``hamflow track``, ``interpolate``, ``stabilize`` and ``mask``."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import hamflow
from _video_calls import QUICK
from _videos import moving, write_folder, write_video
from hamflow.cli.main import main
from hamflow.io.video import open_frames

COMMANDS = ("track", "interpolate", "stabilize", "mask")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """im1.png to im4.png: a texture that moves to the right by 2 pixels."""
    return write_folder(tmp_path / "in", moving(4))


def run(command: str, *words: object) -> int:
    return main([command, *map(str, words), *QUICK])


def target(command: str, folder: Path) -> Path:
    return folder / ("out.csv" if command == "track" else "out")


def test_track(tmp_path: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "points.csv").write_text("id, x, y\n7, 20, 24\n9, 30.5, 12\n")
    out, picture, film = (tmp_path / name for name in ("t.csv", "t.png", "t.mp4"))
    words = ("--points", tmp_path / "points.csv", "--picture", picture, "--film", film)
    assert run("track", folder, "-o", out, *words) == 0
    with out.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["frame"], row["id"]) for row in rows[:3]] == [("0", "0"), ("0", "1"), ("1", "0")]
    assert len(rows) == 8
    for row in rows:
        start = (20, 24) if row["id"] == "0" else (30.5, 12)
        assert float(row["x"]) == pytest.approx(start[0] + 2 * int(row["frame"]), abs=0.3)
        assert float(row["y"]) == pytest.approx(start[1], abs=0.3)
        assert row["visible"] == "1"
    assert hamflow.read_image(picture).shape == (48, 64, 3)
    assert open_frames(film).count == 4
    assert capsys.readouterr().out == (
        f"2 points through 4 frames, 100% visible in the last one: {out}, {picture}, {film}.\n"
    )


def test_track_a_grid_to_arrays(tmp_path: Path, folder: Path) -> None:
    out, film = tmp_path / "t.npz", tmp_path / "film"
    words = ("--grid", 8, "--film", film, "--start", 2, "--every", 2)
    assert run("track", folder, "-o", out, *words) == 0
    with np.load(out) as arrays:
        assert arrays["positions"].shape == (2, 48, 2)
        assert arrays["frames"].tolist() == [1, 3]
    assert sorted(os.listdir(film)) == ["000001.png", "000003.png"]


@pytest.mark.parametrize(("slow", "fps"), [(False, 60), (True, 30)])
def test_interpolate(
    tmp_path: Path, slow: bool, fps: int, capsys: pytest.CaptureFixture[str]
) -> None:
    source = write_video(tmp_path / "in.mp4", moving(3))
    out = tmp_path / "out.mp4"
    assert run("interpolate", source, "-o", out, *(["--slow"] if slow else [])) == 0
    frames = open_frames(out)
    assert frames.fps == fps
    assert frames.count == 5
    assert capsys.readouterr().out == f"3 frames became 5, {fps} per second: {out}.\n"


def test_interpolate_a_folder(tmp_path: Path, folder: Path) -> None:
    out = tmp_path / "out"
    assert run("interpolate", folder, "-o", out, "--factor", 3, "--stop", 2) == 0
    assert sorted(os.listdir(out)) == [f"{k:06d}.png" for k in range(4)]
    for name, number in (("000000.png", 1), ("000003.png", 2)):
        same = hamflow.read_image(out / name), hamflow.read_image(folder / f"im{number}.png")
        assert np.array_equal(*same)


def test_stabilize(tmp_path: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert run("stabilize", folder, "-o", out, "--strength", 3, "--motion", "similarity") == 0
    assert sorted(os.listdir(out)) == ["im1.png", "im2.png", "im3.png", "im4.png"]
    assert hamflow.read_image(out / "im1.png").shape == (48, 64, 3)
    printed = capsys.readouterr().out
    assert printed.startswith("4 frames, ")
    assert printed.endswith(f"% of width and height kept: {out}.\n")


def test_mask(tmp_path: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, overlay = tmp_path / "out", tmp_path / "overlay.mp4"
    assert run("mask", folder, "-o", out, "--overlay", overlay) == 0
    assert sorted(os.listdir(out)) == ["im1.png", "im2.png", "im3.png"]
    assert not hamflow.read_image(out / "im2.png")[8:40, 12:52].any()  # the camera moves alone
    assert open_frames(overlay).count == 3
    printed = capsys.readouterr().out
    ending = f"is a homography in 3 frames, a fundamental matrix in 0: {out}, {overlay}.\n"
    assert printed.endswith(ending)


@pytest.mark.parametrize("command", COMMANDS)
def test_existing_files(
    tmp_path: Path, folder: Path, command: str, fails: Callable[..., str]
) -> None:
    out = target(command, tmp_path)
    assert run(command, folder, "-o", out) == 0
    message = fails(command, folder, "-o", out, *QUICK)
    assert message.startswith(f"hamflow: {out}: ")
    assert "--overwrite" in message
    assert run(command, folder, "-o", out, "--overwrite") == 0


@pytest.mark.parametrize("command", COMMANDS)
def test_one_frame(tmp_path: Path, command: str, fails: Callable[..., str]) -> None:
    folder = write_folder(tmp_path / "one", moving(1))
    message = fails(command, folder, "-o", target(command, tmp_path), *QUICK)
    assert "has fewer than two frames" in message


@pytest.mark.parametrize("command", COMMANDS)
def test_one_direction(
    tmp_path: Path, folder: Path, command: str, fails: Callable[..., str]
) -> None:
    message = fails(command, folder, "-o", target(command, tmp_path), "--preset", "paper")
    assert "only one direction" in message


@pytest.mark.parametrize(
    ("command", "words", "message"),
    [
        ("track", ("--start", 0), "--start must be at least 1"),
        ("track", ("--every", 0), "--every must be at least 1"),
        ("track", ("--stop", 1), "--stop must be at least 2"),
        ("track", ("--fps", 0), "--fps must be a number from 0.001"),
        ("track", ("--trail", -1), "--trail must be 0"),
        ("track", ("--grid", 0), "hamflow: --grid must be from 1"),
        ("track", ("--anchor", -1), "hamflow: --anchor must be 0"),
        ("interpolate", ("--factor", 1), "--factor must be at least 2"),
        ("stabilize", ("--strength", 0), "hamflow: --strength must be above 0"),
        ("stabilize", ("--crop", 2), "hamflow: --crop must be a share"),
        ("mask", ("--least", 0), "hamflow: --least must be a positive number"),
    ],
)
def test_wrong_options(
    folder: Path, command: str, words: tuple[object, ...], message: str, fails: Callable[..., str]
) -> None:
    assert message in fails(command, folder, "-o", target(command, folder.parent), *words, *QUICK)


def test_wrong_track_file(tmp_path: Path, folder: Path, fails: Callable[..., str]) -> None:
    assert "tracks are written to one of .csv, .npz" in fails("track", folder, "-o", "t.txt")


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("name", ["out.gif", "out.png", "out.flo", "out.csv"])
def test_no_folder_with_the_name_of_a_file(
    folder: Path, command: str, name: str, fails: Callable[..., str]
) -> None:
    film = ("-o", folder / "t.csv", "--film")
    words, named = (film, "--film") if command == "track" else (("-o",), "--output")
    said = fails(command, folder, *words, folder / name)
    assert f"{named} must be a video ending in one of .mp4, .mov, .mkv, .avi, .webm, or a f" in said
    assert not (folder / name).exists()


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("source", ["-", "camera:0"])
def test_neither_streams_nor_cameras(
    tmp_path: Path, command: str, source: str, fails: Callable[..., str]
) -> None:
    said = fails(command, source, "-o", target(command, tmp_path))
    assert "only hamflow video reads a stream or a camera" in said


def test_output_and_input_are_the_same(folder: Path, fails: Callable[..., str]) -> None:
    assert "are the same file" in fails("stabilize", folder, "-o", folder, "--overwrite")

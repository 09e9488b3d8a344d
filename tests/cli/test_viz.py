"""``hamflow viz`` and ``hamflow warp``."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hamflow
from hamflow.cli.main import main
from hamflow.datasets import demo_scene
from hamflow.visualize import error_map, render, typical_length

SCENE = demo_scene(64, 96)
WRONG = SCENE.flow + np.float32(2)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    hamflow.write_flow(folder / "flow.flo", WRONG)
    hamflow.write_flow(folder / "truth.npy", SCENE.flow)
    hamflow.write_flow(folder / "kitti.png", SCENE.flow, format="kitti")
    hamflow.write_image(folder / "frame1.png", SCENE.image0)
    hamflow.write_image(folder / "frame2.png", SCENE.image1)
    return folder


def run(*args: object) -> int:
    return main([str(arg) for arg in args])


# --- viz -----------------------------------------------------------------------------------------


def test_colors(data: Path, out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scale = typical_length(WRONG)
    assert run("viz", data / "flow.flo", "-o", out / "a.png") == 0
    assert f"96×64 pixels, full color is {scale:.3g} px" in capsys.readouterr().out
    keyed = render(None, WRONG, "color", key=True)
    assert (hamflow.read_image(out / "a.png") == keyed).all()
    assert run("viz", data / "flow.flo", "-o", out / "b.png", "--max-flow", 30, "--no-key") == 0
    expected = hamflow.flow_to_color(WRONG, max_flow=30)
    assert (hamflow.read_image(out / "b.png") == expected).all()


def test_arrows(data: Path, out: Path) -> None:
    args = ("viz", data / "flow.flo", "--style", "arrows", "-o")
    assert run(*args, out / "a.png") == 0
    assert (hamflow.read_image(out / "a.png") == render(None, WRONG, "arrows", key=True)).all()
    options = ("--image", data / "frame1.png", "--step", 12, "--max-flow", 9, "--no-key")
    assert run(*args, out / "b.png", *options) == 0
    expected = render(SCENE.image0, WRONG, "arrows", 9, step=12)
    assert (hamflow.read_image(out / "b.png") == expected).all()


@pytest.mark.parametrize("style", ["overlay", "side-by-side"])
def test_styles_with_an_image(data: Path, out: Path, style: Any, fails: Callable[..., str]) -> None:
    args = ("viz", data / "flow.flo", "-o", out / "a.png", "--style", style)
    assert f"--style {style} needs the first image" in fails(*args)
    assert run(*args, "--image", data / "frame1.png") == 0
    expected = render(SCENE.image0, WRONG, style, key=True)
    assert (hamflow.read_image(out / "a.png") == expected).all()


def test_a_whole_result_side_by_side(data: Path, out: Path) -> None:
    """With occlusion and confidence, if the file holds them."""
    confidence = np.linspace(0, 1, 64 * 96, dtype=np.float32).reshape(64, 96)
    result = hamflow.FlowResult(
        flow=SCENE.flow,
        backward=None,
        occlusion=SCENE.occluded,
        confidence=confidence,
        energy=None,
        bound=None,
        gap=None,
        window=hamflow.Window.of(8),
        scale=1,
    )
    result.save(data / "result.npz")
    hamflow.write_flow(data / "flow.npz", SCENE.flow)
    for name, shown in (("result.npz", result), ("flow.npz", SCENE.flow)):
        args = ("viz", data / name, "--style", "side-by-side", "--image", data / "frame1.png")
        assert run(*args, "-o", out / "a.png", "--overwrite") == 0
        expected = render(SCENE.image0, shown, "side-by-side", key=True)
        assert (hamflow.read_image(out / "a.png") == expected).all()
    result.part((10, 5, 60, 40)).save(data / "part.npz")
    args = ("viz", data / "part.npz", "--style", "overlay", "--image", data / "frame1.png")
    assert run(*args, "-o", out / "c.png") == 0
    expected = render(SCENE.image0[5:45, 10:70], SCENE.flow[5:45, 10:70], "overlay", key=True)
    assert (hamflow.read_image(out / "c.png") == expected).all()
    assert run("viz", data / "result.npz", "-o", out / "b.png", "--no-key") == 0
    assert (hamflow.read_image(out / "b.png") == hamflow.flow_to_color(SCENE.flow)).all()


def test_errors(data: Path, out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    args = ("--style", "error", "--truth", data / "truth.npy", "-o", out / "a.png")
    assert run("viz", data / "flow.flo", *args) == 0
    assert (hamflow.read_image(out / "a.png") == error_map(WRONG, SCENE.flow)).all()
    assert f"mean error {2 * 2**0.5:.3f} px" in capsys.readouterr().out


def test_flows_of_unknown_pixels(data: Path, out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hamflow.write_flow(data / "flow.flo", np.full_like(WRONG, np.nan))
    assert run("viz", data / "flow.flo", "-o", out / "a.png", "--no-key") == 0
    assert (hamflow.read_image(out / "a.png") == 0).all()
    args = ("--style", "error", "--truth", data / "truth.npy", "-o", out / "b.png")
    assert run("viz", data / "flow.flo", *args) == 0
    assert "no pixel is known" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("style", "option"),
    [
        ("color", ["--truth", "truth.npy"]),
        ("arrows", ["--truth", "truth.npy"]),
        ("color", ["--image", "frame1.png"]),
        ("error", ["--image", "frame1.png"]),
        ("color", ["--step", "8"]),
        ("error", ["--step", "8"]),
        ("error", ["--max-flow", "8"]),
        ("error", ["--no-key"]),
    ],
)
def test_options_of_other_modes(
    data: Path, out: Path, style: str, option: list[str], fails: Callable[..., str]
) -> None:
    args = ("viz", data / "flow.flo", "-o", out / "a.png", "--style", style)
    assert f"{option[0]} is for --style" in fails(*args, *option)
    assert os.listdir(out) == []


def test_wrong_viz(data: Path, out: Path, fails: Callable[..., str]) -> None:
    args = ("viz", data / "flow.flo", "-o", out / "a.png")
    assert "with --truth" in fails(*args, "--style", "error")
    assert "hamflow: --max-flow must be" in fails(*args, "--max-flow", "0")
    assert "hamflow: --max-flow must be" in fails(*args, "--max_flow=-3")
    assert "step must be" in fails(*args, "--style", "arrows", "--step", "0")
    hamflow.write_flow(data / "small.flo", WRONG[:9])
    assert "same shape" in fails(*args, "--style", "error", "--truth", data / "small.flo")
    assert "rows and columns" in fails(
        "viz", data / "small.flo", "-o", out / "a.png", "--style=arrows", "--image",
        data / "frame1.png",
    )  # fmt: skip
    gone = data / "gone.flo"
    assert str(gone) in fails("viz", gone, "-o", out / "a.png")
    assert str(gone) in fails(*args, "--style", "error", "--truth", gone)
    assert os.listdir(out) == []


def test_viz_looks_at_the_output_first(data: Path, out: Path, fails: Callable[..., str]) -> None:
    gone = data / "gone.flo"
    assert "suffix '.flo'" in fails("viz", gone, "-o", out / "a.flo")
    assert "create it first" in fails("viz", gone, "-o", out / "missing" / "a.png")


def test_viz_does_not_replace_what_it_reads(
    data: Path, out: Path, fails: Callable[..., str]
) -> None:
    kitti, frame = data / "kitti.png", data / "frame1.png"
    before = kitti.read_bytes(), frame.read_bytes()
    assert "same file" in fails("viz", kitti, "-o", kitti)
    (out / "link.png").symlink_to(kitti)
    assert "same file" in fails("viz", kitti, "-o", out / "link.png")
    flow = data / "flow.flo"
    assert "same file" in fails("viz", flow, "-o", kitti, "--style", "error", "--truth", kitti)
    assert "same file" in fails("viz", flow, "-o", frame, "--style", "arrows", "--image", frame)
    assert (kitti.read_bytes(), frame.read_bytes()) == before


# --- warp ----------------------------------------------------------------------------------------


def test_warp(data: Path, out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    args = ("warp", data / "frame2.png", data / "truth.npy", "-o", out / "a.png")
    assert run(*args, "--fill", 200, "--mask", out / "mask.png") == 0
    warped, inside = hamflow.warp(SCENE.image1, SCENE.flow, fill=200, return_mask=True)
    assert (hamflow.read_image(out / "a.png") == warped).all()
    mask = hamflow.read_image(out / "mask.png")
    assert (mask == 255 * inside[..., None]).all()
    assert 0.5 < inside.mean() < 1
    assert f"{inside.mean():.1%} of the pixels" in capsys.readouterr().out
    # It is the first image, where that is visible in the second.
    seen = inside & ~SCENE.occluded
    assert np.abs(warped[seen].astype(int) - SCENE.image0[seen]).mean() < 5


def test_warp_without_a_mask(data: Path, out: Path) -> None:
    assert run("warp", data / "frame2.png", data / "truth.npy", "-o", out / "a.bmp") == 0
    assert (hamflow.read_image(out / "a.bmp") == hamflow.warp(SCENE.image1, SCENE.flow)).all()
    assert os.listdir(out) == ["a.bmp"]


def test_warp_by_the_result_of_a_region(data: Path, out: Path, fails: Callable[..., str]) -> None:
    whole = hamflow.estimate(SCENE.image0, SCENE.image1, "realtime")
    part = whole.part((10, 5, 40, 30))
    part.save(out / "part.npz")
    args = ("warp", data / "frame2.png", out / "part.npz", "-o", out / "a.png")
    assert run(*args, "--fill", 9, "--mask", out / "mask.png") == 0
    assert (hamflow.read_image(out / "a.png") == part.warp(SCENE.image1, fill=9)).all()
    _, inside = hamflow.warp(SCENE.image1, whole.flow, return_mask=True)
    mask = hamflow.read_image(out / "mask.png")[..., 0]
    assert (mask == 255 * inside[5:35, 10:50]).all()
    hamflow.write_image(out / "crop.png", SCENE.image1[5:35, 10:50])
    message = fails("warp", out / "crop.png", out / "part.npz", "-o", out / "b.png")
    assert f"{out / 'crop.png'} must be the whole image, of which the result is" in message


def test_wrong_warp(data: Path, out: Path, fails: Callable[..., str]) -> None:
    frame, flow = data / "frame2.png", data / "truth.npy"
    for fill in ("-1", "256"):
        assert "--fill must be" in fails("warp", frame, flow, "-o", out / "a.png", f"--fill={fill}")
    assert "suffix '.npy'" in fails("warp", frame, flow, "-o", out / "a.npy")
    args = ("warp", frame, flow, "-o", out / "a.png", "--mask")
    assert "create it first" in fails(*args, out / "missing" / "m.png")
    assert "exactly" in fails(*args, out / "m.jpg")
    assert "same file" in fails(*args, out / "a.png")
    assert "same file" in fails(*args, frame)
    assert "same file" in fails("warp", frame, flow, "-o", frame)
    assert "same file" in fails("warp", frame, data / "kitti.png", "-o", data / "kitti.png")
    hamflow.write_flow(data / "small.flo", SCENE.flow[:9])
    message = fails("warp", frame, data / "small.flo", "-o", out / "a.png")
    assert "96×64 and 96×9" in message
    assert os.listdir(out) == []

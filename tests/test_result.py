"""What the estimator returns."""

from __future__ import annotations

import io
import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

import hamflow
from _problems import same_bytes
from _route import STAGES, estimate, shifted, usual
from hamflow import FlowResult, InputError, Window
from hamflow.crf import CrfStep
from hamflow.io._record import write_record
from hamflow.visualize import STYLES, add_key, render

Array = NDArray[Any]


def test_fields() -> None:
    result = usual()
    assert result.backward is not None
    assert result.occlusion is not None
    assert result.confidence is not None
    for field, dtype in (
        (result.flow, np.float32),
        (result.backward, np.float32),
        (result.occlusion, np.bool_),
        (result.confidence, np.float32),
    ):
        assert field.dtype == dtype
        assert field.shape[:2] == (60, 80)
    assert abs(result.flow + result.backward)[12:-12, 12:-12].max() < 0.05
    assert result.bound <= result.energy
    assert result.gap == pytest.approx((result.energy - result.bound) / abs(result.bound))
    assert result.window.contains(5, -3)
    assert result.scale == 1
    # What leaves the image is occluded, all else is to be seen.
    outside = np.zeros((60, 80), np.bool_)
    outside[:3], outside[:, -5:] = True, True
    assert (result.occlusion != outside).mean() < 0.01


def test_timings() -> None:
    assert sorted(usual().timings) == sorted([*STAGES, "assessment"])
    assert min(usual().timings.values()) >= 0
    paper = estimate(*shifted(5, -3), preset="paper", model="pairs", window=8)
    assert "assessment" not in paper.timings


def test_summary_without_a_gap() -> None:
    """Nothing can be relative to a bound of 0; JSON has no infinity."""
    step = CrfStep(1, 0.0, 1.0, 0.1)
    assert step.gap is None
    result = replace(usual(), energy=step.energy, bound=step.bound, gap=step.gap)
    assert json.loads(json.dumps(result.summary(), allow_nan=False))["gap"] is None
    assert "gap" not in repr(result)


def test_summary() -> None:
    result = usual()
    summary = json.loads(json.dumps(result.summary(), allow_nan=False))
    assert (summary["width"], summary["height"], summary["scale"]) == (80, 60, 1)
    assert Window(*summary["window"]) == result.window
    assert summary["mean_length"] == pytest.approx(np.hypot(5, 3), abs=0.05)
    assert summary["longest"] >= summary["mean_length"]
    assert summary["energy"] == result.energy
    assert summary["occluded"] == pytest.approx(1 - (57 * 75) / (60 * 80), abs=0.01)
    assert 0 < summary["mean_confidence"] < 1
    assert summary["seconds"].keys() == result.timings.keys()
    paper = estimate(*shifted(5, -3), preset="paper", model="pairs", window=8).summary()
    assert paper["occluded"] is paper["mean_confidence"] is None
    assert paper.keys() == summary.keys()


@pytest.mark.parametrize("suffix", [".flo", ".kitti.png", ".pfm", ".npy", ".npz"])
def test_save(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"flow{suffix}"
    usual().save(path)
    precision = 1 / 64 if suffix == ".kitti.png" else 0
    assert abs(hamflow.read_flow(path) - usual().flow).max() <= precision
    for name in ("flow.txt", "flow.png"):
        with pytest.raises(hamflow.FileError, match=r"suffix|\.kitti\.png"):
            usual().save(tmp_path / name)


def test_everything_is_saved(tmp_path: Path) -> None:
    """Every field, whatever others are added to the class."""
    path = tmp_path / "result.npz"
    paper = estimate(*shifted(5, -3), preset="paper", model="pairs", window=8)
    for result in (usual(), paper, replace(usual(), energy=None, bound=None, gap=None, cut=True)):
        result.save(path)
        back = FlowResult.load(path)
        for field in fields(FlowResult):
            old, new = getattr(result, field.name), getattr(back, field.name)
            if isinstance(old, np.ndarray):
                assert same_bytes(new, old), field.name
            else:
                assert (type(new), new) == (type(old), old), field.name
        assert back.summary() == result.summary()
    assert usual().history != ()


def test_load_says_what_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "result.npz"
    hamflow.write_flow(path, usual().flow)
    with pytest.raises(hamflow.FileError, match=r"is no saved FlowResult, .*hamflow\.read_flow"):
        FlowResult.load(path)
    for name in ("backward", "occlusion", "confidence"):
        cut = replace(usual(), **{name: getattr(usual(), name)[1:]})
        with pytest.raises(hamflow.InputError, match=f"{name} must have the shape"):
            cut.save(path)
        write_record(path, cut)
        with pytest.raises(hamflow.FileError, match=f"is damaged: {name} must have the shape"):
            FlowResult.load(path)


def test_pictures() -> None:
    result = usual()
    assert same_bytes(result.to_color(), hamflow.flow_to_color(result.flow))
    assert same_bytes(result.to_color(20), hamflow.flow_to_color(result.flow, 20))
    assert same_bytes(result.to_color(20, key=True), add_key(result.to_color(20), 20))
    # With a key, because a notebook shows it to people.
    picture = Image.open(io.BytesIO(result._repr_png_()))
    assert picture.format == "PNG"
    assert (np.asarray(picture) == result.to_color(key=True)).all()


def test_styles(tmp_path: Path) -> None:
    first = shifted(5, -3)[0]
    hamflow.write_image(tmp_path / "first.png", first)
    for style in STYLES:
        expected = render(first, usual(), style, key=True)
        assert same_bytes(usual().render(tmp_path / "first.png", style), expected)
        assert same_bytes(usual().render(Image.fromarray(first), style), expected)
    assert same_bytes(usual().render(first, "color", 9, key=False), usual().to_color(9))
    assert usual().render(first).shape == (120, 160, 3)
    assert usual().render(None, "arrows").shape == (60, 80, 3)
    # Of a region, with the whole image.
    part = usual().part((20, 10, 40, 30))
    expected = render(first[10:40, 20:60], part, "overlay", key=True)
    assert same_bytes(part.render(first, "overlay"), expected)


def test_a_crop_in_place_of_the_whole_image() -> None:
    first, second = shifted(5, -3)
    part = usual().part((20, 10, 40, 30))
    where = (
        r"whole image, of which the result is a region \(.* = 20, 10, 40, 30\), but has .*30, 40"
    )
    with pytest.raises(InputError, match=f"^image1 must be the {where}"):
        part.warp(second[10:40, 20:60])
    for style in ("overlay", "side-by-side", "arrows"):
        with pytest.raises(InputError, match=f"^image0 must be the {where}"):
            part.render(first[10:40, 20:60], style)  # type: ignore[arg-type]
    # The image is not shown.
    assert same_bytes(part.render(first[10:40, 20:60], "color", key=False), part.to_color())


def test_points_outside_of_a_region() -> None:
    part = usual().part((20, 10, 40, 30))
    assert np.array_equal(part.at([(20, 10), (59, 39)]).flow, part.flow[[0, -1], [0, -1]])
    with pytest.raises(
        InputError, match=r"region .* whole image: x from 20 to 59 and y from 10 to"
    ):
        part.at([(10, 10)])
    with pytest.raises(InputError, match="within the 80×60 pixels of the result"):
        usual().at([(80, 10)])


def test_warp() -> None:
    first, second = shifted(5, -3)
    back = usual().warp(second)
    inner = np.s_[12:-12, 12:-12]
    assert abs(back[inner].astype(int) - first[inner]).max() <= 4
    assert abs(second[inner].astype(int) - first[inner]).mean() > 20
    assert (usual().warp(second, fill=9)[:2, -4:] == 9).all()


def test_warp_of_a_file(tmp_path: Path) -> None:
    second = shifted(5, -3)[1]
    hamflow.write_image(tmp_path / "second.png", second)
    for path in (tmp_path / "second.png", str(tmp_path / "second.png")):
        assert same_bytes(usual().warp(path), usual().warp(second))
    with pytest.raises(hamflow.FileError, match="does not exist"):
        usual().warp(tmp_path / "gone.png")


def test_warp_of_other_images() -> None:
    second = shifted(5, -3)[1]
    expected = usual().warp(second)
    picture = Image.fromarray(second)
    for same in (picture, picture.convert("RGBA")):
        assert (usual().warp(same) == expected).all()
    palette = picture.convert("P")
    assert same_bytes(usual().warp(palette), usual().warp(palette.convert("RGB")))
    gray = np.ascontiguousarray(second[..., 0])
    assert same_bytes(usual().warp(gray), np.ascontiguousarray(expected[..., 0]))
    torch = pytest.importorskip("torch")
    assert same_bytes(usual().warp(torch.from_numpy(second)), expected)
    with pytest.raises(InputError, match=r"pass image1\.detach\(\)"):
        usual().warp(torch.zeros((60, 80), requires_grad=True))
    with pytest.raises(InputError, match="image must have as many rows and columns as flow"):
        usual().warp(second[1:])


def test_repr() -> None:
    assert repr(usual()).startswith("<FlowResult 80×60, gap ")


def test_the_window_is_in_pixels_of_the_images() -> None:
    window = Window(-9, 20, -6, 13)
    result = estimate(*shifted(6, -4), window=window, scale=2)
    assert result.window == Window(-10, 21, -6, 13)  # rounded outward to the matching scale
    assert estimate(*shifted(6, -4), window=result.window, scale=2).window == result.window


def test_history() -> None:
    result = usual()
    assert [step.iteration for step in result.history] == list(range(1, len(result.history) + 1))
    assert (result.history[-1].energy, result.history[-1].bound) == (result.energy, result.bound)

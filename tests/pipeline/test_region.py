"""A part of the images, and points of them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import hamflow
from _problems import same_bytes
from _route import SMALL, shifted, texture, usual
from hamflow import Estimator, InputError, PointFlow
from hamflow.cli.main import main
from hamflow.datasets.synthetic import SyntheticConfig, SyntheticDataset
from hamflow.pipeline.region import Box, boxes_around

Array = NDArray[Any]


def test_a_region_is_a_part_of_the_whole() -> None:
    images = shifted(5, -3, 240, 320)
    box = (100, 90, 80, 60)
    estimator = Estimator("fast", model="pairs")
    whole, part = estimator.estimate(*images), estimator.estimate(*images, region=box)
    inside = np.s_[90:150, 100:180]
    assert part.region == box
    assert part.summary()["region"] == list(box)
    assert whole.region is None
    assert part.scale == whole.scale
    for name in ("flow", "backward", "occlusion", "confidence"):
        assert getattr(part, name).shape == getattr(whole, name)[inside].shape
    assert abs(part.flow - whole.flow[inside]).max() < 0.1
    assert abs(part.flow - [5, -3]).max() < 0.2
    assert same_bytes(whole.part(box).warp(images[1]), whole.warp(images[1])[inside])
    assert abs(part.warp(images[1]).astype(int) - images[0][inside]).mean() < 2


@pytest.mark.parametrize("number", [0, 4])
def test_scenes(number: int) -> None:
    """The motion leads far outside of the region, and the flow is nearly that of the whole."""
    config = SyntheticConfig(height=288, width=512, max_displacement=40, min_displacement=20)
    scene = SyntheticDataset(config, seed=3)[number]
    estimator = Estimator("fast")
    whole = estimator.estimate(scene.image0, scene.image1)
    part = estimator.estimate(scene.image0, scene.image1, region=(200, 110, 96, 64))
    apart = hamflow.endpoint_error(part.flow, whole.flow[110:174, 200:296])
    assert np.median(apart) < 0.1  # measured 0.01
    assert apart.mean() < 0.8


def test_less_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []
    between = Estimator.between

    def spy(self: Estimator, *frames: Any, **more: Any) -> Any:
        sizes.append(frames[0].shape)
        return between(self, *frames, **more)

    monkeypatch.setattr(Estimator, "between", spy)
    images = shifted(5, -3, 240, 320)
    for options in ({"region": (150, 120, 20, 10)}, {"at": [(160, 125)]}):
        sizes.clear()
        Estimator(SMALL).estimate(*images, **options)  # type: ignore[call-overload]
        ((height, width),) = sizes
        assert height * width < 240 * 320 / 2
    # A window that is given is all that has to be looked at around.
    sizes.clear()
    Estimator(SMALL, window=(3, 5, -5, 5)).estimate(*images, region=(150, 120, 20, 10))
    (given_window,) = sizes
    assert given_window[0] * given_window[1] < 240 * 320 / 4


def test_points() -> None:
    images = shifted(5, -3, 240, 320)
    points = np.array([[30.2, 40.9], [32, 41], [300, 220], [0, 0], [319, 239]])
    found = Estimator("fast", model="pairs").estimate(*images, at=points)
    assert isinstance(found, PointFlow)
    assert found.flow.dtype == np.float32
    assert found.visible is not None
    assert found.confidence is not None
    assert abs(found.flow[:3] - [5, -3]).max() < 0.1
    assert found.visible.tolist() == [True, True, True, False, False]  # the last two leave
    assert (found.confidence[:3] > found.confidence[3:].max()).all()
    nothing = Estimator(SMALL).estimate(*images, at=np.empty((0, 2)))
    assert nothing.flow.shape == (0, 2)
    many = np.stack(np.meshgrid(np.arange(0, 320, 10), np.arange(0, 240, 10)), 2).reshape(-1, 2)
    dense = hamflow.estimate(*images, SMALL)
    assert same_bytes(hamflow.estimate(*images, SMALL, at=many).flow, dense.at(many).flow)


def test_interpolation_stops_at_motion_boundaries() -> None:
    whole = usual()
    flow = whole.flow.copy()
    flow[:, :40] = [1, 0]
    flow[:, 40:] = [9, 0]
    flow[10] += np.linspace(0, 8, 80)[:, None].astype(np.float32)
    result = hamflow.FlowResult(flow, None, None, None, None, None, None, whole.window, 1)
    points = [(39.4, 20), (39.6, 20), (20.5, 10), (20, 9.5), (79.4, 59.4), (-0.4, -0.4)]
    found = result.at(points)
    assert found.visible is found.confidence is None
    slope = 8 / 79
    expected = [1, 9, 1 + 20.5 * slope, 1, 9, 1]
    assert np.allclose(found.flow[[0, 1, 2, 4, 5], 0], np.array(expected)[[0, 1, 2, 4, 5]])
    part = result.part((30, 5, 20, 20))
    assert same_bytes(part.at([(39.4, 20)]).flow, found.flow[:1])
    for wrong in ([(80, 5)], [(1, 2, 3)], [(np.nan, 1)]):
        with pytest.raises(InputError, match="points must be"):
            result.at(wrong)


@given(st.lists(st.tuples(st.floats(-0.5, 199.5), st.floats(-0.5, 99.5)), min_size=1, max_size=20))
def test_boxes_contain_all_points_and_do_not_overlap(points: list[tuple[float, float]]) -> None:
    places = np.array(points)
    count, covered = np.zeros(len(points), int), np.zeros((100, 200), int)
    for box in boxes_around(places, (100, 200)):
        assert isinstance(box, Box)
        covered[box.slices] += 1
        count += box.contains(places)
    assert covered.max() == 1
    assert (count >= 1).all()


@pytest.mark.parametrize(
    ("region", "message"),
    [
        ((0, 0, 10), "must be (x, y, width, height)"),
        ("abcd", "must be (x, y, width, height)"),
        (7, "must be (x, y, width, height)"),
        ((0, 0, 1.5, 4), "must be (x, y, width, height)"),
        ((0, 0, 0, 4), "must be a part of the image"),
        ((70, 0, 20, 4), "which has 80×60 pixels"),
    ],
)
def test_bad_regions(region: Any, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        hamflow.estimate(*shifted(5, -3), SMALL, region=region)


def test_bad_points() -> None:
    images = shifted(5, -3)
    for points in ([1, 2], [(1, 2, 3)], [("a", "b")]):
        with pytest.raises(InputError, match="at must be an array"):
            hamflow.estimate(*images, SMALL, at=points)
    with pytest.raises(InputError, match="but point 1 is"):
        hamflow.estimate(*images, SMALL, at=[(1, 2), (80, 3)])
    with pytest.raises(InputError, match="cannot be given together"):
        hamflow.estimate(*images, SMALL, at=[(1, 2)], region=(0, 0, 4, 4))  # type: ignore[call-overload]
    with pytest.raises(InputError, match="cannot be given together"):
        Estimator(SMALL).estimate(*images, at=[(1, 2)], region=(0, 0, 4, 4))  # type: ignore[call-overload]
    with pytest.raises(InputError, match="one size"):
        hamflow.estimate(images[0], texture(30, 40), SMALL, region=(0, 0, 4, 4))


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [str(tmp_path / f"{k}.png") for k in range(2)]
    for path, image in zip(paths, shifted(5, -3), strict=True):
        hamflow.write_image(path, image)
    output = str(tmp_path / "flow.flo")
    call = ["pair", *paths, "-o", output, "--preset", "fast", "--model", "pairs"]
    assert main([*call, "--region", "20,20,30,25"]) == 0
    assert hamflow.read_flow(output).shape == (25, 30, 2)
    assert "30×25 pixels" in capsys.readouterr().out
    assert main([*call, "--overwrite", "--region", "20,20"]) != 0
    assert "--region must be x,y,w,h" in capsys.readouterr().err
    assert main([*call, "--overwrite", "--region=70,20,30,25"]) != 0
    assert "hamflow: --region must be a part of the image" in capsys.readouterr().err

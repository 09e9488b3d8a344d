"""What moves by itself."""

from __future__ import annotations

import numpy as np
import pytest

import hamflow
from _results import flow_result
from _synthetic import textures
from hamflow.datasets.synthetic import SyntheticConfig, SyntheticFilm
from hamflow.motion.camera import apply
from hamflow.motion.moving import moving_mask, moving_masks
from hamflow.sequence import VideoItem

SHAPE = (80, 120)
CAMERA = np.array([[1.01, -0.02, 3.0], [0.02, 1.01, -2.0], [2e-5, 1e-5, 1]])
THING = (slice(30, 50), slice(40, 70))


def camera_flow(matrix: np.ndarray = CAMERA) -> np.ndarray:
    y, x = np.indices(SHAPE, np.float64)
    here = np.stack([x, y], axis=-1)
    return (apply(matrix, here) - here).astype(np.float32)


def thing() -> np.ndarray:
    mask = np.zeros(SHAPE, bool)
    mask[THING] = True
    return mask


def iou(said: np.ndarray, known: np.ndarray) -> float:
    return float((said & known).sum() / (said | known).sum())


def test_a_thing_before_a_moving_camera() -> None:
    flow = camera_flow()
    flow[THING] += (4, 1)
    found = moving_mask(flow_result(flow))
    assert found.camera.kind == "homography"
    assert iou(found.mask, thing()) > 0.95
    assert found.deviation[40, 55] > 3
    assert found.deviation[5, 5] < 0.1


def test_nothing_moves() -> None:
    assert not moving_mask(flow_result(camera_flow())).mask.any()
    assert not moving_mask(flow_result(np.zeros((*SHAPE, 2), np.float32))).mask.any()


def test_small_and_doubtful_deviations_do_not_count() -> None:
    flow = camera_flow()
    flow[THING] += (0.8, 0)
    assert not moving_mask(flow_result(flow)).mask.any()
    assert moving_mask(flow_result(flow), least=0.5).mask[40, 55]
    flow[THING] += (4, 0)
    unsure = np.where(thing(), 0.2, 1).astype(np.float32)  # an error of 4 pixels is expected
    assert not moving_mask(flow_result(flow, confidence=unsure)).mask.any()


def test_hidden_pixels_are_judged_by_the_frame_before() -> None:
    """The completed flow of hidden pixels is wrong here; where they came from is known."""
    flow, backward = camera_flow(), camera_flow(np.linalg.inv(CAMERA))
    forward = camera_flow()
    hidden = np.zeros(SHAPE, bool)
    hidden[30:50, 70:90] = True
    flow[THING] += (9, 0)
    flow[hidden] += (9, 0)
    result = flow_result(flow, None, hidden)
    alone = moving_mask(result).mask
    both = moving_mask(result, previous=flow_result(forward, backward)).mask
    assert alone[40, 80]
    assert not both[40, 80]
    assert both[40, 55]


def test_a_video_with_a_cut() -> None:
    flow = camera_flow()
    flow[THING] += (4, 1)
    frame = np.zeros((*SHAPE, 3), np.uint8)
    nothing = flow_result(np.zeros((*SHAPE, 2), np.float32), cut=True)
    results = [flow_result(flow), nothing, flow_result(flow)]
    items = [VideoItem(frame, frame, result, k, str(k)) for k, result in enumerate(results)]
    found = list(moving_masks(items))
    assert [m.mask.any() for m in found] == [True, False, True]


def test_rendered_film() -> None:
    config = SyntheticConfig(
        height=128,
        width=160,
        max_displacement=12.0,
        min_displacement=3.0,
        min_layers=1,
        max_layers=1,
        thin_share=0.0,
        elastic_share=0.0,
        dull_share=0.0,
        still_share=0.0,
        clean=True,
    )
    film = SyntheticFilm(config, 2, textures(), 2)
    canvas = film.canvas
    x, y, _ = film.surfaces[0].follow(0, 1, canvas.x, canvas.y)
    of_camera = np.stack([x - canvas.x, y - canvas.y], axis=1).reshape(128, 160, 2)
    moves = np.linalg.norm(film.truth(0, 1)[0] - of_camera, axis=2) > 1.5
    assert 0.02 < moves.mean() < 0.4
    found = moving_mask(hamflow.estimate(*film.images, preset="fast"))
    assert iou(found.mask, moves) > 0.85


def test_a_flow_alone() -> None:
    flow = camera_flow()
    for result, previous, name in ((flow, None, "result"), (flow_result(flow), flow, "previous")):
        with pytest.raises(hamflow.InputError, match=f"^{name} must be a FlowResult, .* ndarray"):
            moving_mask(result, previous=previous)  # type: ignore[arg-type]


@pytest.mark.parametrize("least", [0, -1, np.inf, np.nan])
def test_wrong_least(least: float) -> None:
    with pytest.raises(hamflow.InputError, match="least"):
        moving_mask(flow_result(camera_flow()), least=least)

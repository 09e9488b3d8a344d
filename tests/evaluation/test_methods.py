"""Methods by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from _networks import SMALL, random_weights
from hamflow import Estimator, InputError, endpoint_error, load_model
from hamflow._scale import downsample, upsample_nearest
from hamflow.crf import CrfConfig, solve
from hamflow.datasets import demo_scene
from hamflow.descriptors.weights import save_weights
from hamflow.errors import FileError
from hamflow.evaluation import Method, MethodConfig, method_names, opencv_methods
from hamflow.matching import float_min_projection, hybrid_min_projection, min_projection

SCENE = demo_scene(49, 67, 3)  # odd sizes: no whole number of boxes
FRAMES = SCENE.image0, SCENE.image1


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    path = tmp_path / "net.safetensors"
    save_weights(path, SMALL["paper"], random_weights(SMALL["paper"]), {})
    return path


@pytest.mark.parametrize("name", ["wta-ff", "wta-fq", "wta-qq"])
def test_local_model(name: str, weights: Path) -> None:
    model = load_model(weights, variant="float")
    phi = [model.describe(frame) for frame in FRAMES]
    bits = [model.bits(frame) for frame in FRAMES]
    expected = {
        "wta-ff": lambda: float_min_projection(*phi, 16),
        "wta-fq": lambda: hybrid_min_projection(*phi, 16),
        "wta-qq": lambda: min_projection(*bits, 16),
    }[name]().wta()
    estimate = Method(MethodConfig(name, model=str(weights), window=16))(*FRAMES)
    assert np.array_equal(estimate.flow, expected)
    assert estimate.occlusion is None
    assert estimate.confidence is None


@pytest.mark.parametrize("name", ["crf-f", "crf-q"])
def test_joint_model_has_the_papers_parameters(name: str, weights: Path) -> None:
    model = load_model(weights, variant="float")
    if name == "crf-f":
        data: dict[str, Any] = {f"phi{i}": model.describe(FRAMES[i]) for i in (0, 1)}
    else:
        data = {f"bits{i}": model.bits(FRAMES[i]) for i in (0, 1)}
    expected = solve(**data, image=FRAMES[0], window=8, config=CrfConfig.paper())
    method = Method(MethodConfig(name, model=str(weights), window=8))
    estimate = method(*FRAMES)
    assert np.array_equal(estimate.flow, expected.flow)
    assert estimate.gap == expected.gap
    assert method.settings["crf"]["outer"] == 5


def test_joint_model_with_other_parameters() -> None:
    crf = CrfConfig(tau1=4.0, tau2=50.0)
    method = Method(MethodConfig("crf-q", model="pairs", window=8, crf=crf))
    bits = [load_model("pairs").bits(frame) for frame in FRAMES]
    expected = solve(bits0=bits[0], bits1=bits[1], image=FRAMES[0], window=8, config=crf)
    assert np.array_equal(method(*FRAMES).flow, expected.flow)


def test_preset() -> None:
    expected = Estimator("fast").estimate(*FRAMES)
    estimate = Method("fast")(*FRAMES)
    assert np.array_equal(estimate.flow, expected.flow)
    assert expected.occlusion is not None
    assert np.array_equal(estimate.occlusion, expected.occlusion)
    assert expected.confidence is not None
    assert np.array_equal(estimate.confidence, expected.confidence)
    assert estimate.gap == expected.gap


def test_memory_of_a_preset() -> None:
    free, bounded = Method("fast"), Method(MethodConfig("fast", max_memory="4GB"))
    np.testing.assert_array_equal(free(*FRAMES).flow, bounded(*FRAMES).flow)
    assert bounded.settings == free.settings | {"max_memory": 4 * 10**9}
    with pytest.raises(InputError, match="67×49 pixels with these settings need at least"):
        Method(MethodConfig("fast", max_memory="1MB"))(*FRAMES)
    with pytest.raises(InputError, match="max_memory is for presets; leave it out with wta-qq"):
        MethodConfig("wta-qq", max_memory="4GB")


def test_preset_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('preset = "fast"\nmodel = "pairs"\n[refinement]\nmethod = "upsampling"\n')
    method = Method(str(path))
    assert method.label == "mine"
    assert method.settings["estimator"]["refinement"]["method"] == "upsampling"
    assert np.array_equal(method(*FRAMES).flow, Estimator(path).estimate(*FRAMES).flow)


def test_reduced_frames_give_flow_at_full_resolution() -> None:
    small = [downsample(frame, 2) for frame in FRAMES]
    labels = min_projection(*(load_model("pairs").bits(f) for f in small), 16).wta()
    flow = Method(MethodConfig("wta-qq", model="pairs", window=16, scale=2))(*FRAMES).flow
    assert flow.shape == SCENE.flow.shape
    assert np.array_equal(flow[:48, :66], 2 * upsample_nearest(labels, 2, (48, 66)))
    assert np.array_equal(flow[48], flow[47])
    assert np.array_equal(flow[:, 66], flow[:, 65])


def test_reduced_frames_with_a_preset() -> None:
    expected = Estimator("fast").estimate(*(downsample(frame, 2) for frame in FRAMES))
    estimate = Method(MethodConfig("fast", scale=2))(*FRAMES)
    assert expected.confidence is not None
    assert estimate.confidence is not None
    assert estimate.occlusion is not None
    shape = FRAMES[0].shape[:2]
    assert estimate.occlusion.shape == shape
    assert np.array_equal(
        estimate.confidence, upsample_nearest(expected.confidence, 2, (shape[0], shape[1]))
    )
    # Between the centers of the boxes it is interpolated, and in pixels of full resolution.
    assert estimate.flow[:48, :66].mean() == pytest.approx(2 * expected.flow.mean(), rel=0.05)


@pytest.mark.parametrize("name", [n for n in method_names() if n.startswith("opencv-")])
def test_peers(name: str) -> None:
    shown = demo_scene(240, 320, 1)  # RLOF gives up on smaller ones
    known = {n.split()[0].lower(): method for n, method in opencv_methods().items()}
    expected = known[name.removeprefix("opencv-")](shown.image0, shown.image1)
    found = Method(name)(shown.image0, shown.image1).flow
    if name == "opencv-rlof":
        # Its interpolation draws random numbers: no two runs are alike.
        assert np.median(endpoint_error(found, shown.flow)) < 1
    else:
        assert np.array_equal(found, expected)
    gray = [image.mean(axis=2).astype(np.uint8) for image in (shown.image0, shown.image1)]
    assert Method(name)(*gray).flow.shape == found.shape


def test_names() -> None:
    names = method_names()
    for name in ("fast", "balanced", "paper", "wta-ff", "crf-q", "opencv-dis", "opencv-deepflow"):
        assert name in names


def test_settings_are_json_and_tell_models_apart(weights: Path, tmp_path: Path) -> None:
    other = tmp_path / "other" / weights.name
    other.parent.mkdir()
    save_weights(other, SMALL["paper"], random_weights(SMALL["paper"], 1), {})
    configs = [
        MethodConfig("wta-qq", model=str(weights)),
        MethodConfig("wta-qq", model=str(other)),
        MethodConfig("wta-qq", model=str(weights), window=64),
        MethodConfig("wta-qq", model=str(weights), scale=2),
        MethodConfig("crf-q", model=str(weights)),
        MethodConfig("fast"),
        MethodConfig("fast", model="pairs"),
    ]
    texts = [json.dumps(Method(config).settings) for config in configs]
    assert len(set(texts)) == len(configs)
    assert str(tmp_path) not in texts[0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": "nothing"}, "no method 'nothing'"),
        ({"name": "opencv-nothing"}, "no method 'opencv-nothing'"),
        ({"name": "opencv-dis", "model": "pairs"}, "neither a model nor a window"),
        ({"name": "opencv-dis", "window": 32}, "neither a model nor a window"),
        ({"name": "fast", "crf": CrfConfig()}, "TOML"),
        ({"name": "fast", "scale": 0}, "scale must be"),
        ({"name": "wta-qq", "model": "nothing"}, "nothing"),
        ({"name": "wta-qq", "window": -3}, "window|D"),
    ],
)
def test_bad_configs(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Method(MethodConfig(**options))


def test_missing_file() -> None:
    with pytest.raises(FileError, match=r"gone\.toml"):
        Method("gone.toml")


def test_frames_below_the_scale() -> None:
    method = Method(MethodConfig("wta-qq", model="pairs", window=8, scale=8))
    with pytest.raises(InputError, match="reduced 8 times"):
        method(FRAMES[0][:4], FRAMES[1][:4])

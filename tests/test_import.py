from __future__ import annotations

import json

import pytest

import hamflow
from _problems import run_python

HEAVY = {
    *(
        "torch",
        "onnx",
        "onnxruntime",
        "safetensors",
        "cv2",
        "faiss",
        "PIL",
        "rich",
        "tyro",
        "numpy",
    ),
    "hamflow._native",
}


def loaded_after(code: str) -> set[str]:
    """Names of all modules that a new Python has loaded after `code`."""
    run = run_python("-c", f"{code}\nimport json, sys; print(json.dumps(list(sys.modules)))")
    assert run.returncode == 0, run.stderr
    return set(json.loads(run.stdout))


def test_import_is_light() -> None:
    loaded = loaded_after("import hamflow")
    assert "hamflow" in loaded
    assert loaded.isdisjoint(HEAVY)


def test_matching_needs_no_extras() -> None:
    loaded = loaded_after("import hamflow; hamflow.matching.min_projection")
    assert "hamflow._native" in loaded
    assert loaded.isdisjoint({"torch", "onnxruntime", "cv2", "faiss", "rich", "tyro"})


def test_flow_files_need_no_extras() -> None:
    loaded = loaded_after("import hamflow; hamflow.read_flow")
    assert "hamflow.io.flo5" in loaded
    assert loaded.isdisjoint({"h5py", "torch", "onnxruntime", "cv2", "rich", "tyro"})


def test_the_hand_crafted_descriptor_needs_no_onnxruntime() -> None:
    loaded = loaded_after("import hamflow; hamflow.load_model('pairs').bits([[0, 0.5]])")
    assert "hamflow.descriptors.model" in loaded
    assert loaded.isdisjoint({"torch", "onnx", "onnxruntime", "safetensors", "rich", "tyro"})


@pytest.mark.parametrize("name", hamflow.__all__)
def test_public_names(name: str) -> None:
    assert getattr(hamflow, name) is not None
    assert name in dir(hamflow)


def test_star_import() -> None:
    names: dict[str, object] = {}
    exec("from hamflow import *", names)
    assert set(hamflow.__all__) <= set(names)


def test_unknown_name() -> None:
    with pytest.raises(AttributeError, match="module 'hamflow' has no attribute 'flow_of_gold'"):
        hamflow.flow_of_gold  # noqa: B018


def test_all_is_sorted_and_lists_every_home() -> None:
    assert hamflow.__all__ == sorted(hamflow.__all__)
    assert set(hamflow.__all__) == {*hamflow._HOMES, "__version__"}

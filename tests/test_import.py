from __future__ import annotations

import ast
import importlib
import json
from pathlib import Path

import pytest

import hamflow
from _problems import run_python

HEAVY = {
    *("torch", "onnx", "onnxruntime", "safetensors", "cv2", "faiss", "PIL", "rich", "tyro"),
    *("numpy", "hamflow._native"),
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
    loaded = loaded_after("import hamflow, hamflow.io.flo5; hamflow.read_flow")
    assert "hamflow.io.flo5" in loaded
    assert loaded.isdisjoint({"h5py", "torch", "onnxruntime", "cv2", "rich", "tyro"})


def test_the_hand_crafted_descriptor_needs_no_onnxruntime() -> None:
    loaded = loaded_after("import hamflow; hamflow.load_model('pairs').bits([[0, 0.5]])")
    assert "hamflow.descriptors.model" in loaded
    assert loaded.isdisjoint({"torch", "onnx", "onnxruntime", "safetensors", "rich", "tyro"})


def test_star_import() -> None:
    names: dict[str, object] = {}
    exec("from hamflow import *", names)
    assert set(hamflow.__all__) <= set(names)


def test_unknown_name() -> None:
    with pytest.raises(AttributeError, match="No hamflow attribute flow_of_gold"):
        hamflow.flow_of_gold  # noqa: B018


@pytest.mark.parametrize(
    "package", ["hamflow", "hamflow.datasets", "hamflow.evaluation", "hamflow.motion"]
)
def test_all_names_of_the_stubs(package: str) -> None:
    """Every name of a stub is public, and is the object that its line there names."""
    module = importlib.import_module(package)
    assert module.__file__ is not None
    tree = ast.parse(Path(module.__file__).with_suffix(".pyi").read_text())
    names = {"__version__"} if package == "hamflow" else set()
    for line in tree.body:
        if isinstance(line, ast.ImportFrom):
            for alias in line.names:
                assert alias.asname == alias.name, "or type checkers take it for private"
                names.add(alias.name)
                home = importlib.import_module(f"{package}.{line.module or alias.name}")
                wanted = getattr(home, alias.name) if line.module else home
                assert getattr(module, alias.name) is wanted
    assert names == set(module.__all__) == set(dir(module))


def test_a_function_named_as_its_module() -> None:
    """The function is found, whether or not its module has been imported before."""
    code = "import hamflow.evaluation.sparsification, hamflow; assert callable("
    run = run_python("-c", f"{code}hamflow.evaluation.sparsification)")
    assert run.returncode == 0, run.stderr

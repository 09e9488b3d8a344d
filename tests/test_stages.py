"""A new stage is one class and one line: chosen in Python, in a preset, or in a TOML file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from _route import SMALL, estimate, shifted
from _stages import Constant, Counting
from hamflow import FileError
from hamflow.config import PRESETS, preset_config
from hamflow.crf.backend import BACKENDS
from hamflow.crf.joint_model import JointModel
from hamflow.errors import InputError
from hamflow.refinement import LabelingCompletion
from hamflow.stages import STAGES, stage_class


@pytest.mark.parametrize("stage", STAGES)
def test_every_class_knows_its_name(stage: str) -> None:
    for method in STAGES[stage]:
        kind = stage_class(stage, method)
        assert kind.method == method
        assert kind() == kind()  # settings with defaults


def test_a_refinement_in_python() -> None:
    flow = estimate(*shifted(5, -3), preset=replace(SMALL, refinement=Constant(7.0))).flow
    assert (flow == [7, 0]).all()


def test_a_refinement_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(STAGES["refinement"], "constant", "_stages:Constant")
    file = tmp_path / "constant.toml"
    file.write_text('preset = "fast"\n[refinement]\nmethod = "constant"\nu = 3\n')
    config = preset_config(file)
    assert config == replace(PRESETS["fast"], refinement=Constant(3.0))
    assert config.tables()["refinement"] == {"method": "constant", "u": 3.0}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '[refinement]\nmethod = "magic"',
            "refinement.method must be one of guarded, variational, upsampling",
        ),
        ("[matcher]\nmethod = 3", "matcher.method must be one of joint, local, not 3"),
        ('[completion]\nmethod = "none"\ncell = 3', "completion.cell is unknown"),
    ],
)
def test_methods_that_do_not_exist(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "settings.toml"
    file.write_text(text)
    with pytest.raises(FileError, match=message):
        preset_config(file)


def test_another_method_starts_from_its_own_defaults(tmp_path: Path) -> None:
    file = tmp_path / "local.toml"
    file.write_text('[matcher]\nmethod = "local"\n[refinement]\nmethod = "upsampling"\n')
    tables = preset_config(file).tables()
    assert tables["matcher"] == {"method": "local", "outside": 32}
    assert tables["refinement"] == {"method": "upsampling", "smooth": True}


def test_the_former_spelling(tmp_path: Path) -> None:
    file = tmp_path / "former.toml"
    file.write_text('[completion]\nmethod = "labelling"\n')
    assert preset_config(file) == replace(PRESETS["balanced"], completion=LabelingCompletion())


def test_another_backend_of_the_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BACKENDS, "counting", "_stages:Counting")
    images = shifted(5, -3)
    preset = replace(SMALL, matcher=JointModel(backend="counting"))
    result, usual = (
        estimate(*images, preset=p) for p in (preset, replace(SMALL, matcher=JointModel()))
    )
    assert (result.flow == usual.flow).all()
    expected = {
        "zeros",
        "message",
        "chain_pass",
        "best_labels",
        "relabel",
        "fuse",
        "to_numpy",
    }
    assert expected <= set(Counting.calls)


def test_a_backend_that_does_not_exist() -> None:
    with pytest.raises(InputError, match="backend must be one of native, streamed, not 'gpu'"):
        estimate(*shifted(5, -3), preset=replace(SMALL, matcher=JointModel(backend="gpu")))

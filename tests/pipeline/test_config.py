"""Presets of the estimator, and the files that change them."""

from __future__ import annotations

import dataclasses
import os
import re
from pathlib import Path
from typing import Any

import pytest

from hamflow import Estimator, EstimatorConfig, FileError, InputError, Window
from hamflow.config import PRESETS, preset_config
from hamflow.crf import CrfConfig
from hamflow.refinement import AffineCompletion, NoCompletion, Upsampling, VariationalRefinement

NAMES = ", ".join(PRESETS)


def of_text(folder: Path, text: str) -> EstimatorConfig:
    path = folder / "settings.toml"
    path.write_text(text)
    return preset_config(path)


# --- presets -------------------------------------------------------------------------------------


def test_names() -> None:
    for name, config in PRESETS.items():
        assert preset_config(name) is config
        assert preset_config(config) is config
    assert len(set(PRESETS.values())) == len(PRESETS)
    assert Estimator(model="pairs").config == dataclasses.replace(
        PRESETS["balanced"], model="pairs"
    )


@pytest.mark.parametrize(
    "kind", [EstimatorConfig, AffineCompletion, VariationalRefinement, CrfConfig]
)
def test_every_parameter_is_documented(kind: type[Any]) -> None:
    text = kind.__doc__ or ""
    documented = re.findall(r"^ {4}([\w, ]+) : ", text, re.MULTILINE)
    names = [name for line in documented for name in line.split(", ")]
    assert sorted(names) == sorted(field.name for field in dataclasses.fields(kind))


def test_settings_cannot_be_changed_by_accident() -> None:
    config: Any = PRESETS["fast"]
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.levels = 3
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.completion.cell = 1


def test_paper_is_the_paper() -> None:
    config = PRESETS["paper"]
    assert (config.scale, config.levels, config.square) == (1, 1, 128)
    assert not config.bidirectional
    assert (config.completion, config.refinement) == (NoCompletion(), Upsampling(smooth=False))
    joint: Any = config.matcher
    assert (joint.outer, joint.inner) == (5, 8)
    assert (joint.tau1, joint.tau2) == (0.25, 25)
    assert (joint.alpha, joint.delta, joint.c_outside) == (8.5, 2, 0)
    assert (joint.rounding, joint.gap_tolerance) == ("argmin", 0)
    assert Estimator("paper", model="pairs").window == Window.square(128)
    assert Estimator("paper", model="pairs", window=16).window == Window.square(16)


# --- files ---------------------------------------------------------------------------------------


def test_a_file_changes_what_it_names(tmp_path: Path) -> None:
    config = of_text(
        tmp_path,
        """
        preset = "fast"
        levels = 3
        memory = 8
        [matcher]
        tau2 = 80
        rounding = "icm"
        [refinement]
        warps = 9
        """,
    )
    fast = PRESETS["fast"]
    expected = dataclasses.replace(
        fast,
        levels=3,
        memory=8.0,
        matcher=dataclasses.replace(fast.matcher, tau2=80.0, rounding="icm"),
        refinement=dataclasses.replace(fast.refinement, warps=9),
    )
    assert config == expected
    assert config.completion == fast.completion != AffineCompletion()
    assert type(config.tables()["matcher"]["tau2"]) is type(config.memory) is float


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_an_empty_file_changes_nothing(tmp_path: Path, name: str) -> None:
    assert of_text(tmp_path, f'preset = "{name}"') == PRESETS[name]
    assert of_text(tmp_path, "") == PRESETS["balanced"]


def test_the_file_may_be_a_string(tmp_path: Path) -> None:
    of_text(tmp_path, 'model = "pairs"\nscale = 2')
    config = Estimator(str(tmp_path / "settings.toml")).config
    assert (config.model, config.scale) == ("pairs", 2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("color = 3", "color is unknown; possible are model, coarse_model,"),
        ("[matcher]\ntau3 = 1", "matcher.tau3 is unknown; possible are c_outside,"),
        ("[paper]", "paper is unknown"),
        ("levels = 2.5", "levels must be of type int, not 2.5"),
        ('levels = "2"', "levels must be of type int, not '2'"),
        ("bidirectional = 1", "bidirectional must be of type bool, not 1"),
        ("memory = true", "memory must be of type float, not True"),
        ("matcher = 3", "matcher must be a table, not 3"),
        ("[levels]", "levels must be of type int, not {}"),
        ("model = 3", "model must be a name or a file, not 3"),
        ("levels = 0", "levels must be a whole number of at least 1, not 0"),
        ("scale = 3", "scale must be 0 or a power of two up to 256, not 3"),
        ("memory = nan", "memory must be a number above 0 and at most 1e\\+06, not nan"),
        ("memory = -1.0", "memory must be a number above 0 and at most 1e\\+06, not -1.0"),
        ("[matcher]\ntau2 = -1.0", "tau2 must be at least tau1"),
        ("[completion]\ncell = 0", "cell must be a whole number from 1 to 64, not 0"),
        ("[refinement]\nomega = 2.0", "omega must be between 0 and 2, not 2.0"),
        ('preset = "slow"', f"preset must be one of {NAMES}, not 'slow'"),
        ("preset = [1]", r"preset must be one of .*, not \[1\]"),
        ("levels = ", "is not TOML"),
        ("levels = 1\nlevels = 2", "is not TOML"),
    ],
)
def test_bad_files(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(FileError) as caught:
        of_text(tmp_path, text)
    sentence = str(caught.value)
    assert re.search(message, sentence)
    assert sentence.startswith(f"{tmp_path / 'settings.toml'}: ")
    assert sentence.endswith(".")
    assert "\n" not in sentence


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"none\.toml: does not exist; check the path"):
        preset_config(tmp_path / "none.toml")
    (tmp_path / "folder.toml").mkdir()
    with pytest.raises(FileError, match=r"folder\.toml: is a directory"):
        preset_config(tmp_path / "folder.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FileError, match=r"bytes\.toml: is not TOML"):
        preset_config(str(tmp_path / "bytes.toml"))


@pytest.mark.parametrize("preset", ["slow", "Balanced", "", "settings.json", Path("fast/other")])
def test_unknown_presets(preset: Any) -> None:
    with pytest.raises(InputError, match=f"no preset .*{NAMES}, or name a"):
        preset_config(preset)


@pytest.mark.parametrize("preset", [None, 3, ["fast"], b"fast", {"levels": 3}])
def test_things_that_are_no_preset(preset: Any) -> None:
    with pytest.raises(InputError, match="preset must be a name, a file or an EstimatorConfig"):
        preset_config(preset)


# --- settings made in Python ---------------------------------------------------------------------


@pytest.mark.parametrize("scale", [0, 1, 2, 64, 256])
def test_scales(scale: int) -> None:
    assert EstimatorConfig(scale=scale).scale == scale


@pytest.mark.parametrize("scale", [-1, -2, 3, 6, 512, 1.0, "2", None, True])
def test_bad_scales(scale: Any) -> None:
    with pytest.raises(InputError, match=r"scale must be 0 or a power of two up to 256, not .*\."):
        EstimatorConfig(scale=scale)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("matching_pixels", 0),
        ("matching_pixels", 1e5),
        ("closer_pixels", -1),
        ("levels", 0),
        ("square", -2),
        ("memory", 0),
        ("model", None),
    ],
)
def test_bad_settings(name: str, value: Any) -> None:
    with pytest.raises(InputError, match=f"^{name} must be .*{value}"):
        EstimatorConfig(**{name: value})


def test_options_of_the_estimator_go_before_the_preset() -> None:
    config = Estimator("fast", scale=4, model="pairs").config
    assert config == dataclasses.replace(PRESETS["fast"], scale=4, model="pairs")
    with pytest.raises(InputError, match="There is no model 'nobody'"):
        Estimator("fast", model="nobody")
    with pytest.raises(InputError, match="even number"):
        Estimator(EstimatorConfig(model="pairs", square=7))


@pytest.mark.skipif(os.name != "posix", reason="pipes and devices")
def test_pipes_and_devices(tmp_path: Path) -> None:
    """The first would never end, and the second would fill the memory."""
    os.mkfifo(tmp_path / "pipe.toml")
    (tmp_path / "zero.toml").symlink_to("/dev/zero")
    for name in ("pipe", "zero"):
        with pytest.raises(FileError, match=rf"{name}\.toml: is not a regular file"):
            preset_config(tmp_path / f"{name}.toml")


@pytest.mark.parametrize("text", ["levels = " + "[" * 50_000, "levels = " + "{a=" * 50_000])
def test_deep_nesting(tmp_path: Path, text: str) -> None:
    (tmp_path / "deep.toml").write_text(text)
    with pytest.raises(FileError, match=r"deep\.toml: is nested too deeply"):
        preset_config(tmp_path / "deep.toml")


def test_deep_tables(tmp_path: Path) -> None:
    """Parsed without recursion, but shown in a message."""
    (tmp_path / "deep.toml").write_text(f"[{'.'.join('a' * 20_000)}]\nb = 1")
    with pytest.raises(FileError, match=r"deep\.toml: "):
        preset_config(tmp_path / "deep.toml")
    (tmp_path / "deep.toml").write_text(f"[{'.'.join(['matcher', 'tau1', *'a' * 20_000])}]\nb = 1")
    with pytest.raises(FileError, match=r"deep\.toml: "):
        preset_config(tmp_path / "deep.toml")


def test_too_long(tmp_path: Path) -> None:
    (tmp_path / "long.toml").write_text("#" * 2**20 + "\nlevels = 3")
    with pytest.raises(FileError, match=r"long\.toml: is too long"):
        preset_config(tmp_path / "long.toml")

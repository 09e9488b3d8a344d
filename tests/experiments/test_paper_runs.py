"""Which networks ``paper table1`` takes, and what it refuses before it trains any."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

from _networks import random_weights
from _paths import ROOT
from _runs import save_network, save_run
from _trees import save_mask, save_pair
from experiments.cli.app import main
from experiments.paper import table1
from experiments.paper.budget import difference, settings_of
from experiments.paper.runs import Found, find_network, restore_weights
from experiments.paper.table1 import Network, parse_network, read_table1_config
from hamflow import FileError
from hamflow.datasets import demo_scene
from hamflow.descriptors.architecture import Architecture
from hamflow.descriptors.weights import read_weights
from hamflow.io._text import read_rows
from hamflow.learning.state import CHECKPOINT

COMMAND = ("paper", "table1")
RECIPES = ROOT / "experiments" / "recipes"
SCENE = demo_scene(32, 40)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    top = tmp_path_factory.mktemp("data")
    save_mask(save_pair(top / "group" / "pair", SCENE) / "occ.png", SCENE.occluded)
    return top


@pytest.fixture
def nets(tmp_path: Path) -> Path:
    return tmp_path / "nets"


@pytest.fixture
def arguments(tmp_path: Path, root: Path, nets: Path, out: Path) -> list[str]:
    """One pair and a small window."""
    file = tmp_path / "table1.toml"
    file.write_text("scale = 2\nwindow = 8\n")
    return [
        *("--data", "folder", str(root), "--config", str(file)),
        *("--weights", str(nets), "-o", str(out)),
    ]


def test_one_budget(nets: Path) -> None:
    """Only settings that the table compares, or that do not change the result, may differ."""
    runs: dict[str, dict[str, Any]] = {
        "ff-5": {},
        "fq-7": {"workers": 0, "threads": 1, "validate_every": 7},
    }
    runs |= {"qq-9": {"data": {"root": "elsewhere"}, "validation": {}, "checkpoint_minutes": 9.0}}
    known = {name: found_in(save_run(nets / name, **more)).settings for name, more in runs.items()}
    assert difference(known) is None
    for name, more, words in (
        ("qq-5", {"steps": 2}, r"ff-5 has steps = 3, that of qq-5 has 2$"),
        ("qq-7", {"seed": 1}, r"seed = 0, .* 1$"),
        ("fq-5", {"data": {"synthetic": {"height": 64}}}, r"data\.synthetic\.height"),
        ("ff-7", {"network": {"layers": 7, "channels": 5}}, r"network\.channels = 4, .* 5"),
    ):
        other = known | {name: found_in(save_run(nets / name, 2, **more)).settings}
        assert re.search(words, difference(other) or "")
    # A file of weights alone contains fewer settings, but these are compared.
    save_network(nets / "fq-9", 0, model="fq", window="16", step="3")
    assert difference(known | {"fq-9": found_in(nets / "fq-9").settings}) is None
    save_network(nets / "fq-9", 0, model="fq", window="16", step="4")
    assert "steps = 3" in (difference(known | {"fq-9": found_in(nets / "fq-9").settings}) or "")


def found_in(folder: Path) -> Found:
    found = find_network(parse_network(folder.name), folder)
    assert found is not None
    return found


def test_recipe_and_flags_are_one_budget(tmp_path: Path) -> None:
    """The networks of the recipe may be trained one by one, each on a core."""
    config = read_table1_config(RECIPES / "table1.toml", "folder", tmp_path)
    own = config.training_of(Network("qq", 9))
    flags = replace(own, data=replace(own.data, root=tmp_path), threads=1, workers=1)
    other = config.training_of(Network("ff", 5))
    assert (own.model, own.network.layers, other.model, other.network.layers) == ("qq", 9, "ff", 5)
    assert difference({"qq-9": settings_of(flags), "ff-5": settings_of(other)}) is None


def test_different_budgets_are_refused(
    arguments: list[str],
    nets: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    fails: Callable[..., str],
) -> None:
    save_run(nets / "qq-5")
    save_run(nets / "qq-7", 2, steps=2)
    args = [*arguments, "--networks", "qq-5", "qq-7"]
    sentence = fails(*args)
    for words in ("qq-5 has steps = 3, that of qq-7 has 2", "cannot be compared", "--unequal"):
        assert words in sentence
    assert main([*COMMAND, *args, "--unequal"]) == 0
    assert "that of qq-7 has 2: they cannot be compared.\n" in capsys.readouterr().out
    # A network with other settings than the existing ones is not trained either.
    sentence = fails(*arguments, "--networks", "qq-5", "fq-5", "--resume")
    assert "that of fq-5 has" in sentence
    # No network needs training here, so the outdated file does no harm.
    file = tmp_path / "other.toml"
    file.write_text("scale = 2\nwindow = 8\n[training]\nsteps = 3\nwindow = 32\n")
    args = [*arguments, "--networks", "qq-5", "--resume", "--config", str(file)]
    assert main([*COMMAND, *args]) == 0
    printed = capsys.readouterr().out
    assert "other.toml has " in printed
    assert "the file is ignored.\n" in printed


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda f: save_network(f.with_name("qq-5"), 0).rename(f / table1.WEIGHTS), "5 layers"),
        (lambda f: save_network(f, 0, model="ff"), "trained as ff, not as qq"),
        (lambda f: save_run(f, model="fq"), "trained as fq"),
        (lambda f: save_run(f, network={"layers": 7}), "7 layers, not 9"),
        (lambda f: (save_run(f), save_network(f, 0, step="2")), "of step 2, .* of step 3; remove"),
        (lambda f: (f / table1.WEIGHTS).write_bytes(b"\0" * 99), "not a safetensors file"),
        (lambda f: (f / CHECKPOINT).write_bytes(b"\0" * 99), "not a safetensors file"),
        (lambda f: save_network(f, 0).rename(f / CHECKPOINT), "not a checkpoint"),
        (lambda f: save_run(f, -1), "damaged checkpoint"),
    ],
)
def test_other_networks_are_refused(
    make: Callable[[Path], object],
    words: str,
    arguments: list[str],
    nets: Path,
    fails: Callable[..., str],
) -> None:
    """These errors are raised before missing networks are trained."""
    folder = nets / "qq-9"
    folder.mkdir(parents=True)
    make(folder)
    sentence = fails(*arguments, "--networks", "qq-5", "qq-9")
    assert re.search(words, sentence)
    assert str(folder) in sentence
    assert not (nets / "qq-5" / CHECKPOINT).exists()


def test_checkpoint_without_its_weights(nets: Path) -> None:
    folder = save_run(nets / "fq-5")
    restore_weights(folder)
    architecture, weights, metadata = read_weights(folder / table1.WEIGHTS)
    assert architecture == Architecture(layers=5, channels=4)
    assert all(np.array_equal(weights[k], v) for k, v in random_weights(architecture).items())
    assert metadata.items() >= {"model": "fq", "window": "16", "step": "3"}.items()
    assert found_in(folder).weights
    with safe_open(folder / CHECKPOINT, framework="np") as file:
        described = file.metadata()
    save_file({"weights.layers.0.bias": np.zeros(4, np.float32)}, folder / CHECKPOINT, described)
    with pytest.raises(FileError, match=r"checkpoint.*no weights that fit"):
        restore_weights(folder)


def test_everything_is_looked_at_before_the_training(
    arguments: list[str], nets: Path, out: Path, fails: Callable[..., str]
) -> None:
    save_run(nets / "qq-5")
    names = ("--networks", "qq-5", "ff-5")
    (out / "ff-5-crf-f.jsonl").write_text('{"work": "evaluation", "settings": {}}\n{"key": "a"}\n')
    assert "ff-5-crf-f.jsonl: contains the pairs of an earlier evaluation" in fails(
        *arguments, *names
    )
    (out / "ff-5-crf-f.jsonl").write_text("else\n")
    assert "not the log" in fails(*arguments, *names, "--resume")
    (out / "ff-5-crf-f.jsonl").unlink()
    assert "each once" in fails(*arguments, "--networks")
    assert "each once" in fails(*arguments, "--networks", "qq-5", "qq-5")
    assert not (nets / "ff-5").exists()


def test_nothing_is_written_over(
    arguments: list[str], nets: Path, root: Path, out: Path, fails: Callable[..., str]
) -> None:
    save_network(nets / "qq-5", 0)
    (out / "old.jsonl").write_text("{}\n")
    config = arguments[arguments.index("--config") + 1]
    weights = nets / "qq-5" / table1.WEIGHTS
    own = (config, weights, out / "qq-5-qq.jsonl", out / "old.jsonl", root / "t.csv")
    for path in own:
        assert "--csv: " in fails(*arguments, "--networks", "qq-5", "--csv", path)


def test_interrupted(
    arguments: list[str],
    nets: Path,
    out: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    save_run(nets / "qq-5")
    monkeypatch.setattr(table1, "evaluate", interrupt)
    assert main([*COMMAND, *arguments, "--networks", "qq-5"]) == 130
    assert f"are in {out}; --resume continues.\n" in capsys.readouterr().out
    monkeypatch.setattr("experiments.cli.paper_table1.run_training", interrupt)
    save_run(nets / "fq-5", 1)
    assert main([*COMMAND, *arguments, "--networks", "fq-5"]) == 130
    assert "The same command continues the training of fq-5.\n" in capsys.readouterr().out


def test_without_torch(
    arguments: list[str], nets: Path, monkeypatch: pytest.MonkeyPatch, fails: Callable[..., str]
) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "torch"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "torch", None)
    for name in [name for name in sys.modules if name.startswith("hamflow.learning.")]:
        if not name.endswith(".config"):
            monkeypatch.delitem(sys.modules, name)
    save_run(nets / "qq-5", 2)
    assert "not finished" in fails(*arguments, "--networks", "qq-5", "--no-train")
    assert "needs torch" in fails(*arguments, "--networks", "qq-5")
    save_run(nets / "qq-5", 3)
    assert main([*COMMAND, *arguments, "--networks", "qq-5"]) == 0


def test_pairs_without_known_occlusions(
    arguments: list[str], nets: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save_pair(tmp_path / "pairs" / "group" / "pair", SCENE)
    save_run(nets / "fq-5")
    args = [*arguments[3:], "--data", "folder", str(tmp_path / "pairs"), "--networks", "fq-5"]
    assert main([*COMMAND, *args]) == 0
    printed = capsys.readouterr().out
    assert "Occlusions are not known" in printed
    assert "over all pixels instead" in printed
    assert "FF and FQ get worse when they are evaluated as QQ" in printed


def test_synthetic_needs_no_folder(arguments: list[str], nets: Path, out: Path) -> None:
    save_run(nets / "qq-5")
    args = [*arguments[3:], "--data", "synthetic", "--count", "1", "--networks", "qq-5"]
    assert main([*COMMAND, *args]) == 0
    assert len(read_rows(out / "table1.csv")[1]) == 2


def test_data_has_a_name(arguments: list[str], fails: Callable[..., str]) -> None:
    assert "3 words" in fails(*arguments[3:], "--data", "sintel", "a", "b")
    assert "sintel" in fails(*arguments[3:], "--data", "nothing", "a")

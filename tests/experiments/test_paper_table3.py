"""``paper table3`` on tiny pairs."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

import hamflow
from _trees import save_mask, save_pair
from experiments.cli.app import main
from experiments.paper import table3
from hamflow.config import PRESETS
from hamflow.datasets import demo_scene
from hamflow.datasets.folder import FolderDataset
from hamflow.errors import FileError, InputError
from hamflow.flow import endpoint_error

QUICK = 'preset = "fast"\nmodel = "pairs"\n'


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two pairs; the occlusions of one of them are known."""
    top = tmp_path_factory.mktemp("data")
    for seed, name in enumerate(("a", "b")):
        scene = demo_scene(48, 64, seed)
        folder = save_pair(top / "group" / name, scene)
        if name == "b":
            save_mask(folder / "occ.png", scene.occluded)
    return top


@pytest.fixture
def quick(tmp_path: Path) -> Path:
    path = tmp_path / "quick.toml"
    path.write_text(QUICK)
    return path


def table3_of(root: Path, *options: str) -> int:
    return main(["paper", "table3", "--data", "folder", str(root), *options])


def test_table(root: Path, quick: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "out"
    options = ["--presets", "fast-unrefined", str(quick), "-o", str(output)]
    assert table3_of(root, *options) == 0
    with open(output / "table3.csv", encoding="utf-8", newline="") as file:
        rows = {row["method"]: row for row in csv.DictReader(file)}
    # As the paper prints them.
    assert (rows["EpicFlow"]["noc"], rows["EpicFlow"]["all"]) == ("1.36", "4.115")
    assert rows["Ours QQ"]["all"] == "8.972"
    assert rows["DCFlow"]["data"] == "Sintel clean test"
    assert list(rows)[-2:] == ["fast-unrefined", "quick"]
    assert rows["quick"]["data"] == "folder"

    estimator = hamflow.Estimator(quick)
    errors = []
    for pair in FolderDataset(root):
        flow = estimator.estimate(pair.image0, pair.image1).flow
        errors.append(endpoint_error(flow, pair.flow))
    assert float(rows["quick"]["all"]) == pytest.approx(np.mean(errors), rel=1e-4)
    visible = errors[1][~demo_scene(48, 64, 1).occluded]
    assert float(rows["quick"]["noc"]) == pytest.approx(visible.mean(), rel=1e-4)
    printed = " ".join(capsys.readouterr().out.split())
    assert "within each group only" in printed
    assert "Occlusions are known for 1 of 2 pairs" in printed
    for words in ("fast-unrefined", "EpicFlow (paper)", "1.360", "8.972"):
        assert words in printed


def test_resume(
    root: Path, quick: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out"
    options = ["--presets", "fast-unrefined", "-o", str(output)]
    assert table3_of(root, *options) == 0
    log = output / "fast-unrefined.jsonl"
    lines = log.read_text().splitlines(keepends=True)
    assert len(lines) == 3  # settings and two pairs
    before = (output / "table3.csv").read_text()
    log.write_text("".join(lines[:2]))

    assert table3_of(root, *options) == 1
    assert "resume" in capsys.readouterr().err
    # Another preset may join what is there; the first pair is not measured again.
    assert table3_of(root, *options[:2], str(quick), *options[2:], "--resume") == 0
    assert log.read_text().splitlines(keepends=True)[:2] == lines[:2]
    after = (output / "table3.csv").read_text().splitlines()
    row, again = before.splitlines()[-1].split(","), after[-2].split(",")
    assert again[:6] == row[:6]
    assert after[-1].startswith("quick,")


def test_all_logs_are_looked_at_first(
    root: Path, quick: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "quick.jsonl").write_text('{"work": "evaluation", "settings": {}}\n{"key": "a"}\n')
    monkeypatch.setattr(table3, "evaluate", None)  # nothing is measured
    with pytest.raises(FileError, match=r"quick\.jsonl: contains the pairs"):
        table3.run(FolderDataset(root), ["fast-unrefined", str(quick)], logs=tmp_path)
    (tmp_path / "quick.jsonl").write_text("something else\n")
    with pytest.raises(FileError, match="not the log"):
        table3.run(FolderDataset(root), ["fast-unrefined", str(quick)], logs=tmp_path, resume=True)


def test_a_file_may_move(root: Path, quick: Path, tmp_path: Path) -> None:
    """The flow depends on the settings, not on the file that contains them."""
    output = tmp_path / "out"
    assert table3_of(root, "--presets", str(quick), "-o", str(output)) == 0
    before = (output / "quick.jsonl").read_bytes()
    moved = tmp_path / "other" / quick.name
    moved.parent.mkdir()
    quick.rename(moved)
    assert table3_of(root, "--presets", str(moved), "-o", str(output), "--resume") == 0
    assert (output / "quick.jsonl").read_bytes() == before


def test_interrupted(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(table3, "evaluate", interrupt)
    assert table3_of(root, "--presets", "fast", "-o", str(tmp_path / "o")) == 130
    assert f"are in {tmp_path / 'o'}; --resume continues.\n" in capsys.readouterr().out


def test_synthetic_needs_no_folder(quick: Path, tmp_path: Path) -> None:
    options = ["--count", "1", "--presets", str(quick), "-o", str(tmp_path / "o")]
    assert main(["paper", "table3", "--data", "synthetic", *options]) == 0
    with open(tmp_path / "o" / "table3.csv", encoding="utf-8", newline="") as file:
        assert list(csv.DictReader(file))[-1]["data"] == "synthetic"


def test_nothing_is_written_over(
    root: Path, quick: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out"
    output.mkdir()
    (output / "old.jsonl").write_text("{}\n")
    for path in (quick, output / "quick.jsonl", output / "old.jsonl", root / "t.csv"):
        options = ["--presets", str(quick), "-o", str(output), "--csv", str(path)]
        assert table3_of(root, *options) == 1
        assert "--csv: " in capsys.readouterr().err
    assert quick.read_text() == QUICK


def test_unrefined_is_the_preset_without_refinement() -> None:
    method = table3.method_of("fast-unrefined")
    assert method.label == "fast-unrefined"
    settings = method.settings
    assert settings["method"] == "fast-unrefined"
    fast = PRESETS["fast"]
    own = settings["estimator"]
    assert own["bidirectional"] is False
    assert own["completion"]["method"] == "none"
    assert own["refinement"]["method"] == "upsampling"
    assert own["matching_pixels"] == fast.matching_pixels
    scene = demo_scene(48, 64)
    estimate = method(scene.image0, scene.image1)
    assert (estimate.flow == np.rint(estimate.flow)).all()
    assert estimate.occlusion is None


def test_the_default_rows() -> None:
    assert table3.DEFAULT == ("paper", "balanced-unrefined", "balanced", "fast")
    assert table3.method_of("balanced-unrefined").settings["estimator"]["bidirectional"] is False


def test_all_known_occlusions_need_no_note(root: Path) -> None:
    pairs = FolderDataset(root).subset("group/b")
    found = table3.run(pairs, ["fast-unrefined"])
    assert table3.notes(found) == [table3.NOTE]
    row = table3.rows(found, "here")[-1]
    assert (row["pairs"], row["failed"], row["data"]) == (1, 0, "here")
    assert 0 < row["noc"] < row["all"]


@pytest.mark.parametrize("presets", [[], ["fast", "fast"], ["wta-qq"], ["best-unrefined"]])
def test_wrong_presets(root: Path, presets: list[str]) -> None:
    with pytest.raises(InputError, match="preset"):
        table3.run(FolderDataset(root), presets)


def test_errors(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    assert table3_of(root, "-o", str(blocked)) == 1
    assert f"{blocked}: cannot be created as a folder" in capsys.readouterr().err
    assert table3_of(root, "-o", str(tmp_path / "o"), "--csv", str(tmp_path / "no" / "t.csv")) == 1
    assert "create it first" in capsys.readouterr().err
    assert table3_of(tmp_path / "nothing", "-o", str(tmp_path / "o")) == 1
    assert str(tmp_path / "nothing") in capsys.readouterr().err

"""`hamflow compare`."""

from __future__ import annotations

import csv
import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from _evaluations import errors_of, evaluation, record, write_log
from _trees import save_pair, scene
from hamflow.cli import compare as command
from hamflow.cli.main import main
from hamflow.evaluation import Evaluation, paired_bootstrap

WTA, FLOATS = "wta-qq:pairs", "wta-ff:pairs"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("folder")
    for number, name in enumerate(("one/a", "one/b", "two/a")):
        save_pair(root / name, scene(number))
    return root


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Run the command; return what it said, or the one sentence that it failed with."""

    def called(*args: object, code: int = 0) -> str:
        assert main(["compare", *(str(arg) for arg in args)]) == code
        captured = capsys.readouterr()
        if code:
            assert captured.err.startswith("hamflow: ")
            assert captured.err.count("\n") == 1
            return captured.err
        assert captured.err == ""
        return captured.out

    return called


def test_command(folder: Path, tmp_path: Path, run: Callable[..., str]) -> None:
    data = ("--data", "folder", folder)
    out = tmp_path / "out"
    said = run(WTA, f"{WTA[:-5]}default", *data, "--scale", 2, "-o", out)
    assert "wta-qq:default against wta-qq:pairs, too few to tell: epe_all differs by " in said
    assert f"Wrote {out / 'compare.csv'}, {out / 'compare.json'}." in said
    with open(out / "compare.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["pair"] for row in rows] == ["one/a", "one/b", "two/a"]
    report = json.loads((out / "compare.json").read_text())
    values = {name: [float(row[name]) for row in rows] for name in (WTA, "wta-qq:default")}
    expected = paired_bootstrap(*values.values()).as_row()
    (contrast,) = report["contrasts"]
    assert {key: contrast[key] for key in expected} == expected
    assert report["methods"][0]["summary"]["image_mean_epe_all"] == pytest.approx(
        np.mean(values[WTA])
    )
    # The evaluations can be compared again, without the data.
    logs = [out / "wta-qq-pairs-scale2", out / "wta-qq-default-scale2"]
    again = run(*logs, "--clusters", "--metric", "outlier_3px", "--json", tmp_path / "c.json")
    assert "There are only 2 groups, so the interval is too narrow" in again
    assert "wta-qq-default-scale2 against " in again
    saved = json.loads((tmp_path / "c.json").read_text())
    assert (saved["metric"], saved["clusters"]) == ("outlier_3px", True)
    # Or one that is done with one that is not.
    mixed = run(logs[0], "wta-qq:pairs", *data, "--subset", "one")
    assert "scale" in mixed
    assert (
        "The methods succeeded on different pairs, so their columns cover different pairs." in mixed
    )


def test_continued(folder: Path, tmp_path: Path, run: Callable[..., str]) -> None:
    args = (WTA, "wta-fq:pairs", "--data", "folder", folder, "-o", tmp_path, "--scale", 2)
    before = run(*args)
    log = tmp_path / "wta-fq-pairs-scale2/run.jsonl"
    lines = log.read_text().splitlines(keepends=True)
    log.write_text("".join(lines[:-1]))
    table = (tmp_path / "compare.csv").read_text()
    after = run(*args)
    assert (tmp_path / "compare.csv").read_text() == table
    assert after.splitlines()[-2] == before.splitlines()[-2]


def test_same_names(folder: Path, tmp_path: Path, run: Callable[..., str]) -> None:
    """Two files of one name, and two folders of one name."""
    for name, preset in (("x", "fast"), ("y", "paper")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "my.toml").write_text(
            f'preset = "{preset}"\nmodel = "pairs"\n[completion]\nmethod = "none"\n'
        )
    methods = [tmp_path / name / "my.toml" for name in ("x", "y")]
    out = tmp_path / "out"
    run(*methods, "--data", "folder", folder, "--subset", "two", "-o", out, "--scale", 2)
    assert sorted(p.name for p in out.iterdir() if p.is_dir()) == ["my-scale2", "my-scale2-2"]
    for name in ("x", "y"):
        (tmp_path / name / "log").mkdir()
        (tmp_path / name / "log/run.jsonl").write_bytes((out / "my-scale2/run.jsonl").read_bytes())
    said = run(tmp_path / "x/log", tmp_path / "y/log")
    first, second = tmp_path / "x/log", tmp_path / "y/log"
    assert f"{second} against {first}, too few to tell: epe_all differs by +0" in said


def test_failures(folder: Path, tmp_path: Path, run: Callable[..., str]) -> None:
    data = ("--data", "folder", folder)
    log = write_log(tmp_path / "a/run.jsonl", evaluation("a", errors_of("p", 1, 2)))
    write_log(tmp_path / "b/run.jsonl", evaluation("b", errors_of("p", 1, 2)))
    said = {
        (WTA, *data): "A comparison needs at least two methods.",
        (WTA, WTA, *data): "wta-qq:pairs is given twice",
        (WTA, "magic", *data): "There is no method 'magic'",
        (
            WTA,
            FLOATS,
        ): "wta-qq:pairs needs pairs to run on; name a data set with --data DATASET ROOT",
        (WTA, FLOATS, "--data", "folder", folder, "fast"): "put the methods before it",
        (WTA, FLOATS, "--data", "nothing", folder): "There is no data set 'nothing'",
        (WTA, FLOATS, "--data", "folder"): "The data set folder needs its root",
        (WTA, FLOATS, *data, "--metric", "magic"): "choose one of epe_all, ",
        (WTA, FLOATS, *data, "--overwrite"): "--overwrite needs a folder",
        (WTA, FLOATS, "--data", "synthetic", "--clusters"): "form no groups",
        (WTA, FLOATS, *data, "--scale", 0): "scale must be a whole number, at least 1",
        (WTA, FLOATS, *data, "--json", tmp_path / "x/y.json"): "does not exist; create it first",
        (log.parent, tmp_path): "contains no run.jsonl; name a folder",
        (log.parent, "opencv-dis:pairs"): "opencv-dis takes neither a model nor a window",
        (log.parent, WTA, *data, "--clusters", "--pass", "clean"): "folder has no --pass",
        (log.parent, log.parent.parent / "b", "--data", "folder", folder): "as they are",
        (WTA, WTA + ":", *data): "wta-qq:pairs is given twice",
        (log.parent, f"{log.parent}/", *data): "is given twice",
        (WTA, FLOATS, *data, "--json", folder / "one/a/flow.flo"): "inside of the data set",
        (log.parent, WTA, *data, "--json", log): "the command needs the file",
        (WTA, FLOATS, *data, "--metric", "ause"): "ause is not known for wta-qq:pairs",
        (log.parent, WTA, *data, "--html", tmp_path / "x.html"): "--html runs the first method",
    }
    for args, words in said.items():
        assert words in run(*args, code=1)


def test_a_method_that_fails(
    folder: Path, run: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = command.evaluate

    def evaluate(*args: Any, **options: Any) -> Evaluation:
        found = real(*args, **options)
        if found.settings["method"] == "wta-ff":
            records = (record("one/a", None), *found.records[1:])
            return dataclasses.replace(found, records=records)
        return found

    monkeypatch.setattr(command, "evaluate", evaluate)
    said = run(WTA, FLOATS, "--data", "folder", folder, "--scale", 2)
    assert "Left out: 1 pair that one of them failed on or lacks." in said
    assert " of 2 pairs, " in said


def test_beside_opencv(folder: Path, run: Callable[..., str]) -> None:
    pytest.importorskip("cv2.optflow")
    said = run("opencv-dis", WTA, "--data", "folder", folder, "--subset", "one/a", "one/b")
    assert "wta-qq:pairs against opencv-dis" in said
    assert "There are only 2 pairs" in said


def test_report(folder: Path, tmp_path: Path, run: Callable[..., str]) -> None:
    pytest.importorskip("jinja2")
    page = tmp_path / "report.html"
    run(WTA, FLOATS, "--data", "folder", folder, "--scale", 2, "--html", page)
    text = page.read_text(encoding="utf-8")
    assert text.index("wta-qq:pairs") < text.index("wta-ff:pairs")

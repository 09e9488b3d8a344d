"""``hamflow evaluate``."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from _trees import save_pair
from hamflow import write_flow, write_image
from hamflow.cli._data import DataOptions, data_label, open_pairs
from hamflow.cli.main import main
from hamflow.datasets import SyntheticConfig, demo_scene, open_dataset
from hamflow.datasets.synthetic import write_sintel
from hamflow.errors import InputError
from hamflow.evaluation import Method, MethodConfig, evaluate
from hamflow.evaluation.fingerprint import fingerprints
from hamflow.io._text import read_rows

COMMAND = ("evaluate",)
QUICK = ("--method", "wta-qq", "--model", "pairs", "--window", "16")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data") / "set"
    write_sintel(folder, SyntheticConfig(height=40, width=56, max_displacement=6.0), 5)
    return folder


def run(*args: object) -> None:
    assert main(["evaluate", *map(str, args)]) == 0


def test_evaluate(
    root: Path, out: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    file = out / "e.json"
    run("sintel", root, "--pass", "final", "--split", "training", *QUICK, "-o", out, "--json", file)
    pairs = open_dataset("sintel", root, pass_="final")
    expected = evaluate(pairs, Method(MethodConfig("wta-qq", model="pairs", window=16)))
    rows = read_rows(out / "pairs.csv")[1]
    for row, record in zip(rows, expected.records, strict=True):
        assert record.metrics is not None
        assert row["pair"] == record.pair
        assert float(row["epe_noc"]) == record.metrics.epe_noc
    report = json.loads(file.read_text())
    assert report["summary"]["epe_all"] == expected.summary()["epe_all"]
    data = {"dataset": "sintel", "pass": "final", "split": "training"}
    assert report["settings"]["data"] == data
    assert len(report["pairs"]) == 5
    printed = capsys.readouterr().out
    for names in (
        *("EPE |EPE noc|EPE occ", "s0-10|s10-40|s40+", "d0-10|d10-60|d60-140", "Fl-all|Fl-noc"),
        *(">1 px|>3 px|>5 px", "angle|AUSE|seconds|memory"),
    ):
        assert all(name in printed for name in names.split("|")), names
    assert f"{expected.summary()['epe_all']:.3f}" in printed
    assert f"{expected.summary()['image_mean_epe_noc']:.3f}" in printed


def test_resume(root: Path, out: Path, fails: Callable[..., str]) -> None:
    args = ("sintel", root, *QUICK, "-o", out)
    run(*args)
    log = out / "run.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(lines[:3]))
    (out / "pairs.csv").unlink()
    run(*args)
    assert len(read_rows(out / "pairs.csv")[1]) == 5
    assert log.read_bytes().splitlines()[1].startswith(lines[1][:60])
    other = ("sintel", root, *QUICK[:-1], "8", "-o", out)
    assert "window was [-8, 16, -8, 16], not [-4, 8, -4, 8]" in fails(*other)
    run(*other, "--overwrite")
    assert len(log.read_bytes().splitlines()) == 6
    assert "window was [-4, 8, -4, 8]" in fails(*args)


def test_default_folder(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run("sintel", root, "--pass", "clean", "--subset", "0.2", *QUICK, "--scale", "2")
    folder = tmp_path / "evaluations" / "sintel-clean-wta-qq-pairs-scale2"
    assert len(read_rows(folder / "pairs.csv")[1]) == 1


def test_an_interruption_says_how_to_go_on(
    root: Path, out: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = Method.__call__
    calls = []

    def interrupted(self: Method, *frames: Any) -> Any:
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(self, *frames)

    monkeypatch.setattr(Method, "__call__", interrupted)
    args = ["evaluate", "sintel", str(root), *QUICK, "-o", str(out)]
    assert main(args) == 130
    assert "the same command continues" in "".join(capsys.readouterr())
    assert len((out / "run.jsonl").read_text().splitlines()) == 1 + 2
    assert main(args) == 0
    assert len(calls) == 3 + 3


def test_subset_of_the_paper(root: Path) -> None:
    pairs, described = open_pairs("sintel", root, DataOptions(subset=("0.4",), disjoint_from=0.2))
    every = open_dataset("sintel", root)
    expected = every.evenly(0.4, disjoint_from=every.evenly(0.2))
    assert pairs.names == expected.names  # type: ignore[attr-defined]
    assert described == {"dataset": "sintel", "subset": 0.4, "disjoint_from": 0.2}


def test_subset_by_names(root: Path) -> None:
    pairs, described = open_pairs("sintel", root, DataOptions(subset=("scene_00001",)))
    assert pairs.names == ("scene_00001/frame_0001",)  # type: ignore[attr-defined]
    assert described["subset"] == ["scene_00001"]
    assert data_label(described) == "sintel"


def numbered(root: Path, *names: str) -> Path:
    for name in names:
        save_pair(root / name, demo_scene(32, 40))
    return root


def test_names_count_before_shares(tmp_path: Path) -> None:
    root = numbered(tmp_path / "set", "0001/a", "0002/000001_10", "1/a", "1/b")

    def names(*subset: str) -> tuple[str, ...]:
        pairs, _ = open_pairs("folder", root, DataOptions(subset=subset))
        return pairs.names  # type: ignore[attr-defined, no-any-return]

    assert names("0001") == ("0001/a",)
    assert names("0002/000001_10") == ("0002/000001_10",)
    assert names("1") == ("1/a", "1/b")
    assert len(names("1.0")) == 4
    assert len(names(".5")) == 2
    for word in ("000001", "000001_10", "2", "nan", "1e0", "-0.5"):
        with pytest.raises(InputError, match="--subset"):
            names(word)


def test_changed_data_are_measured_again(tmp_path: Path, out: Path) -> None:
    first = numbered(tmp_path / "first", "x/a", "x/b")
    second = numbered(tmp_path / "second", "x/a", "x/b")
    run("folder", first, *QUICK, "-o", out)
    log = out / "run.jsonl"
    before = log.read_bytes()
    # The same files elsewhere are the same data.
    run("folder", second, *QUICK, "-o", out)
    assert log.read_bytes() == before
    flow = demo_scene(32, 40).flow
    flow[-1, -1] += 1  # far behind the beginning of the file
    write_flow(second / "x/b/flow.flo", flow)
    run("folder", second, *QUICK, "-o", out)
    added = [json.loads(line)["key"] for line in log.read_bytes()[len(before) :].splitlines()]
    assert added == ["x/b"]
    old, new = (float(row["epe_all"]) for row in read_rows(out / "pairs.csv")[1])
    assert old != new


def test_other_photographs_are_not_mixed_in(tmp_path: Path) -> None:
    folders = [tmp_path / "one", tmp_path / "two"]
    for seed, folder in enumerate(folders):
        folder.mkdir()
        write_image(folder / "a.png", demo_scene(300, 400, seed).image0)
    marks = {fingerprints(open_pairs("synthetic", f, DataOptions(count=2))[0])(0) for f in folders}
    assert len(marks) == 2
    pairs = open_pairs("synthetic", folders[0], DataOptions(count=2))[0]
    assert fingerprints(pairs)(0) in marks
    assert fingerprints(pairs)(1) not in marks


def test_names_that_are_not_unicode(tmp_path: Path, out: Path) -> None:
    name = os.fsdecode(b"caf\xe9")
    try:
        root = numbered(tmp_path / "set", f"x/{name}")
    except OSError:
        pytest.skip("the disk takes proper names only")
    pytest.importorskip("jinja2")
    run("folder", root, *QUICK, "-o", out, "--html", out / "e.html", "--json", out / "e.json")
    run("folder", root, *QUICK, "-o", out)
    assert read_rows(out / "pairs.csv")[1][0]["pair"] == f"x/{name}"


def test_every_pair_failed(root: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: Method, *frames: Any) -> Any:
        raise RuntimeError("gave up")

    monkeypatch.setattr(Method, "__call__", broken)
    assert main(["evaluate", "sintel", str(root), *QUICK, "-o", str(out)]) == 1
    assert read_rows(out / "pairs.csv")[1][0]["failed"] == "gave up"


def test_a_folder_of_something_else(root: Path, out: Path, fails: Callable[..., str]) -> None:
    (out / "pairs.csv").write_text("mine")
    for overwrite in ((), ("--overwrite",)):
        message = fails("sintel", root, *QUICK, "-o", out, *overwrite)
        assert f"{out}: holds files, but no run.jsonl" in message
    assert (out / "pairs.csv").read_text() == "mine"


def test_rendered_scenes(out: Path) -> None:
    pairs, described = open_pairs("synthetic", None, DataOptions(count=3, seed=5))
    assert len(pairs) == 3
    assert described == {"dataset": "synthetic", "photographs": False, "count": 3, "seed": 5}
    with pytest.raises(InputError, match="--subset"):
        open_pairs("synthetic", None, DataOptions(subset=("0.5",)))
    with pytest.raises(InputError, match="--disjoint-from"):
        open_pairs("synthetic", None, DataOptions(disjoint_from=0.5))


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--preset", "fast", "--method", "wta-qq"), "exclude each other"),
        (("--method", "nothing"), "no method 'nothing'"),
        (("--preset", "nothing"), "nothing"),
        (("--preset", "fast", "--scale", "0"), "scale"),
        (("--window", "a"), "--window"),
        (("--method", "crf-q", "--crf-file", "gone.toml"), "gone.toml"),
        (("--method", "wta-qq", "--crf-file", "PAPER"), "Only crf-f and crf-q"),
        (("--pass", "other"), "pass_"),
        (("--method", ""), "no method ''"),
        (("--preset", ""), "no preset ''"),
        (("--method", "fast"), "presets are given with --preset"),
        (("--preset", "opencv-dis"), "with --method"),
        (("--json", "OUT/results/run.jsonl"), "the command needs the file"),
        (("--html", "OUT/results/pairs.csv"), "the command needs the file"),
        (
            ("--method", "crf-q", "--crf-file", "PAPER", "--json", "PAPER"),
            "the command needs the file",
        ),
        (("--json", "ROOT/training/flow/scene_00001/frame_0001.flo"), "inside of the data set"),
        (("--split", "test"), "test"),
        (("--subset", "nobody"), "nobody"),
        (("--subset", "nobody", "--disjoint-from", "0.2"), "--disjoint-from"),
        (("--json", "no/such/folder/e.json"), "no/such/folder"),
        (("--html", "no/such/folder/e.html"), "no/such/folder"),
        (("--json", "same", "--html", "same"), "same file"),
    ],
)
def test_bad_options(
    root: Path, out: Path, fails: Callable[..., str], args: tuple[str, ...], message: str
) -> None:
    crf = out / "crf.toml"
    crf.write_text("tau1 = 1.0\n")
    folder = out / "results"
    places = {"PAPER": str(crf), "OUT": str(out), "ROOT": str(root)}
    words = list(args)
    for name, place in places.items():
        words = [re.sub(f"^{name}(?=/|$)", place, word) for word in words]
    assert message in fails("sintel", root, *words, "-o", folder)
    assert not any(folder.glob("*"))


def test_missing_data(out: Path, fails: Callable[..., str]) -> None:
    sentence = fails("sintel", out / "gone", *QUICK, "-o", out)
    assert "gone" in sentence
    assert "frame_0001.png" in sentence
    assert "needs its root" in fails("sintel", *QUICK, "-o", out)


def test_a_broken_pair_stops_and_can_be_mended(
    root: Path, tmp_path: Path, out: Path, fails: Callable[..., str]
) -> None:
    copy = tmp_path / "copy"
    write_sintel(copy, SyntheticConfig(height=40, width=56, max_displacement=6.0), 3)
    flow = copy / "training" / "flow" / "scene_00001" / "frame_0001.flo"
    whole = flow.read_bytes()
    flow.write_bytes(whole[:50])
    args = ("sintel", copy, *QUICK, "-o", out)
    assert str(flow) in fails(*args)
    flow.write_bytes(whole)
    run(*args)
    assert len(read_rows(out / "pairs.csv")[1]) == 3


def test_without_the_extra(
    root: Path, out: Path, fails: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    for name in [name for name in sys.modules if name.startswith("hamflow.evaluation.report")]:
        monkeypatch.delitem(sys.modules, name)
    sentence = fails("sintel", root, *QUICK, "-o", out / "e", "--html", out / "e.html")
    assert "hamflow[report]" in sentence


def test_report(root: Path, out: Path) -> None:
    pytest.importorskip("jinja2")
    run("sintel", root, "--preset", "fast", "-o", out, "--html", out / "e.html")
    page = (out / "e.html").read_text(encoding="utf-8")
    assert "scene_00003/frame_0001" in page
    assert page.rstrip().endswith("</html>")

"""Methods side by side: the statistics by hand and by simulation, and the command."""

from __future__ import annotations

import csv
import dataclasses
import itertools
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from _trees import message_of, save_flow, save_image, scene
from hamflow.cli import compare as command
from hamflow.cli.main import main
from hamflow.errors import InputError
from hamflow.evaluation import (
    Evaluation,
    PairedDifference,
    PairRecord,
    compare,
    epe_metrics,
    paired_bootstrap,
    read_evaluation,
)
from hamflow.evaluation.comparison import METRICS

# --- the bootstrap --------------------------------------------------------------------------------


def test_two_pairs_by_hand() -> None:
    """Of two pairs, a draw has the first twice, the second twice, or (half the time) both."""
    found = paired_bootstrap([1, 2], [3, 8])
    assert (found.pairs, found.units) == (2, 2)
    assert (found.mean, found.low, found.high) == (4, 2, 6)
    assert found.ratio == pytest.approx(math.sqrt(12))
    assert (found.ratio_low, found.ratio_high) == pytest.approx((3, 4))
    assert (found.wins, found.losses, found.ties) == (0, 2, 0)
    assert found.verdict == "too few to tell"


def test_three_pairs_against_all_draws() -> None:
    """All 27 draws are equally likely: the interval is that of their means."""
    difference = np.array([-1.0, 0.5, 4.0])
    means = np.array([difference[list(d)].mean() for d in itertools.product(range(3), repeat=3)])
    found = paired_bootstrap(np.zeros(3), difference, resamples=200_000)
    # Draws with probability 1/27 each at both ends are more than 2.5 %.
    assert (found.low, found.high) == (means.min(), means.max()) == (-1, 4)
    assert (found.wins, found.losses, found.ties) == (1, 2, 0)


def test_verdicts() -> None:
    """From ten pairs on; below, intervals are too narrow."""
    first = np.linspace(1, 2, 10)
    noise = np.tile([1.0, -1.0], 5)
    for size, better, worse, same in (
        (10, "better", "worse", "not distinguishable"),
        (9, *["too few to tell"] * 3),
    ):
        a = first[:size]
        assert paired_bootstrap(a, a - 0.5).verdict == better
        assert paired_bootstrap(a, a + 0.5).verdict == worse
        assert paired_bootstrap(a, a + noise[:size] / 2).verdict == same


def test_groups_by_hand() -> None:
    """Both groups, or one of them twice: the means are 2, 1 and 5."""
    found = paired_bootstrap(np.zeros(4), [1, 1, 1, 5], groups=["a", "a", "a", "b"])
    assert (found.pairs, found.units, found.mean) == (4, 2, 2)
    assert (found.low, found.high) == (1, 5)
    # One pair to a group is the same as none.
    names = [f"g{number}" for number in range(9)]
    values = np.random.default_rng(0).normal(1, 1, 9)
    alone = paired_bootstrap(np.zeros(9), values)
    assert paired_bootstrap(np.zeros(9), values, groups=names).as_row() == alone.as_row()


def test_equal_values() -> None:
    found = paired_bootstrap([1, 2, 3], [1, 2, 3])
    assert (found.mean, found.low, found.high) == (0, 0, 0)
    assert (found.ratio, found.ratio_low, found.ratio_high) == (1, 1, 1)
    assert (found.wins, found.losses, found.ties) == (0, 0, 3)


@pytest.mark.parametrize("groups", [None, ["a"], ["a", "a", "a"]])
def test_one_unit_has_no_interval(groups: list[str] | None) -> None:
    size = 1 if groups is None else len(groups)
    found = paired_bootstrap(np.ones(size), np.full(size, 3.0), groups=groups)
    assert (found.units, found.mean) == (1, 2)
    assert found.ratio == pytest.approx(3)
    assert np.isnan([found.low, found.high, found.ratio_low, found.ratio_high]).all()
    assert found.verdict == "too few to tell"
    row = found.as_row()
    assert (row["mean"], row["low"], row["high"]) == (2, None, None)
    json.dumps(row, allow_nan=False)


def test_no_ratio_with_zeros() -> None:
    found = paired_bootstrap([0, 1, 2], [1, 1, 1])
    assert np.isnan([found.ratio, found.ratio_low, found.ratio_high]).all()
    assert (found.mean, found.wins, found.losses, found.ties) == (0, 1, 1, 1)
    json.dumps(found.as_row(), allow_nan=False)
    huge = paired_bootstrap([1, 1e-308], [1, 1e300])
    assert math.isnan(huge.ratio_high)
    assert huge.ratio_low == 1
    json.dumps(huge.as_row(), allow_nan=False)


def test_seeds() -> None:
    a, b = np.random.default_rng(1).exponential(1, (2, 40))
    first = paired_bootstrap(a, b, seed=3)
    assert paired_bootstrap(a, b, seed=3) == first
    other = paired_bootstrap(a, b, seed=4)
    assert other != first
    assert (other.low, other.high) == pytest.approx((first.low, first.high), abs=0.03)


def test_large_samples_are_drawn_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    b = np.random.default_rng(1).normal(0.1, 1, 500)
    whole = paired_bootstrap(np.zeros(500), b, resamples=2000)
    monkeypatch.setattr("hamflow.evaluation.bootstrap._CHUNK", 7000)
    # The numbers drawn are the same, in other portions.
    assert paired_bootstrap(np.zeros(500), b, resamples=2000).as_row() == whole.as_row()


def test_near_the_t_interval() -> None:
    """For a mean of many normal numbers, both are known to agree."""
    for seed in range(5):
        values = np.random.default_rng(seed).normal(0.3, 2, 60)
        found = paired_bootstrap(np.zeros(60), values)
        low, high = stats.t.interval(0.95, 59, values.mean(), stats.sem(values))
        assert (found.low, found.high) == pytest.approx((low, high), abs=0.08 * (high - low))


def test_coverage() -> None:
    """How often the interval holds the truth: nearly as often as the t interval's 95 %."""
    generator = np.random.default_rng(0)
    held = trusted = 0
    reach = stats.t.ppf(0.975, 29) / math.sqrt(30)
    for seed in range(400):
        values = generator.normal(1, 1, 30)
        found = paired_bootstrap(np.zeros(30), values, resamples=400, seed=seed)
        held += found.low <= 1 <= found.high
        trusted += bool(abs(values.mean() - 1) <= reach * values.std(ddof=1))
    # Four standard deviations of such a share are 5 %.
    assert held / 400 == pytest.approx(0.93, abs=0.05)
    assert held / 400 == pytest.approx(trusted / 400, abs=0.04)


def test_groups_make_correlated_pairs_wider() -> None:
    generator = np.random.default_rng(2)
    groups = [f"scene_{number // 10}" for number in range(200)]
    held = {"pairs": 0, "groups": 0}
    for seed in range(60):
        # What the pairs of a scene have in common is as large as what they do not.
        values = np.repeat(generator.normal(0, 1, 20), 10) + generator.normal(0, 1, 200)
        pairs = paired_bootstrap(np.zeros(200), values, resamples=300, seed=seed)
        wide = paired_bootstrap(np.zeros(200), values, groups=groups, resamples=300, seed=seed)
        assert wide.units == 20
        assert wide.high - wide.low > 1.2 * (pairs.high - pairs.low)
        for name, one in (("pairs", pairs), ("groups", wide)):
            held[name] += one.low <= 0 <= one.high
    assert held["groups"] / 60 > 0.8
    assert held["pairs"] / 60 < 0.75


Numbers = st.lists(st.tuples(*2 * [st.just(0.0) | st.floats(1e-3, 1e3)]), min_size=2, max_size=30)


@given(Numbers, st.integers(0, 2**32))
def test_antisymmetry(numbers: list[tuple[float, float]], seed: int) -> None:
    a, b = np.array(numbers).T
    there = paired_bootstrap(a, b, resamples=200, seed=seed)
    back = paired_bootstrap(b, a, resamples=200, seed=seed)
    near = {"rel": 1e-9, "abs": 1e-9}
    assert (back.mean, back.low, back.high) == pytest.approx(
        (-there.mean, -there.high, -there.low), **near
    )
    assert (back.wins, back.losses, back.ties) == (there.losses, there.wins, there.ties)
    if not math.isnan(there.ratio):
        product = there.ratio * back.ratio, there.ratio_low * back.ratio_high
        assert product == pytest.approx((1, 1), rel=1e-9)


@given(Numbers, st.integers(0, 5))
def test_bounds(numbers: list[tuple[float, float]], count: int) -> None:
    a, b = np.array(numbers).T
    groups = [str(number % (count + 2)) for number in range(len(a))]
    found = paired_bootstrap(a, b, groups=groups, resamples=200)
    margin = 1e-9 * (1 + np.abs(b - a).max())
    assert (b - a).min() - margin <= found.low <= found.high <= (b - a).max() + margin
    assert found.mean == pytest.approx((b - a).mean(), abs=margin)
    assert found.wins + found.losses + found.ties == found.pairs == len(a)


def test_wrong_values() -> None:
    for a, b, words in (
        ([], [], "at least one pair"),
        ([1], [1, 2], "of one length, not 1 and 2"),
        ([1, math.nan], [1, 2], "a must be a list of finite numbers"),
        ([1, 2], [1, math.inf], "b must be a list of finite numbers"),
        ([[1]], [[1]], "a must be a list"),
    ):
        with pytest.raises(InputError, match=words):
            paired_bootstrap(a, b)
    with pytest.raises(InputError, match="one for each of the 2 pairs"):
        paired_bootstrap([1, 2], [1, 2], groups=["a"])
    with pytest.raises(InputError, match="resamples must be at least 1"):
        paired_bootstrap([1, 2], [1, 2], resamples=0)


# --- evaluations ----------------------------------------------------------------------------------


def record(pair: str, error: float | None, pixels: int = 1, seconds: float = 1.0) -> PairRecord:
    """A pair with this error at each of its pixels, or one that failed."""
    if error is None:
        return PairRecord(pair, None, seconds, failed="gave up")
    flow = np.zeros((1, pixels, 2))
    flow[..., 0] = error
    return PairRecord(pair, epe_metrics(flow, np.zeros((1, pixels, 2))), seconds)


def evaluation(label: str, errors: dict[str, float | None], **data: Any) -> Evaluation:
    records = tuple(record(pair, error) for pair, error in errors.items())
    return Evaluation(label, {"data": data, "pairs": list(errors), "method": label}, records)


def errors_of(prefix: str, *errors: float | None) -> dict[str, float | None]:
    return {f"{prefix}{number}": error for number, error in enumerate(errors)}


def test_only_what_both_have_counts() -> None:
    first = evaluation("first", errors_of("p", 1, 2, None, 4))
    second = evaluation("second", errors_of("p", 2, 4, 6))
    third = evaluation("third", {"q": 1})
    found = compare([first, second, third])
    one, other = found.contrasts
    assert one.difference == paired_bootstrap([1, 2], [2, 4])
    assert one.left_out == 3
    assert other.difference is None
    assert other.sentence == "third and first have no pair on which both succeeded."
    assert found.rows == (
        {"pair": "p0", "first": 1, "second": 2, "third": None},
        {"pair": "p1", "first": 2, "second": 4, "third": None},
        {"pair": "p2", "first": None, "second": 6, "third": None},
        {"pair": "p3", "first": 4, "second": None, "third": None},
        {"pair": "q", "first": None, "second": None, "third": 1},
    )
    data = json.loads(json.dumps(found.as_json(), allow_nan=False))
    assert [entry["label"] for entry in data["methods"]] == ["first", "second", "third"]
    assert data["contrasts"][0]["low"] == 1
    assert data["contrasts"][1]["pairs"] == 0


def test_sentences() -> None:
    base = evaluation("base", errors_of("s/", *[4.0] * 12))
    better = evaluation("new", errors_of("s/", *[3.0] * 12))
    (contrast,) = compare([base, better]).contrasts
    assert contrast.sentence == (
        "new is better than base: epe_all differs by -1 (95 % interval -1 to -1), and is 0.75 "
        "times as large in the geometric mean (95 % interval 0.75 to 0.75); it is smaller on 12 of "
        "12 pairs, larger on 0, equal on 0."
    )
    (contrast,) = compare([base, better], clusters=True).contrasts
    assert contrast.sentence.startswith("new against base, too few to tell: epe_all differs ")
    assert contrast.sentence.endswith(" There is only 1 group, which tells nothing of chance.")
    few = evaluation("few", {"s/0": 5, "s/1": 5, "s/2": None})
    (contrast,) = compare([base, few]).contrasts
    assert contrast.sentence.startswith(
        "few against base, too few to tell: epe_all differs by +1 ("
    )
    assert contrast.sentence.endswith(
        " Left out: 10 pairs that one of them failed on or lacks. There are only 2 pairs: the "
        "interval is too narrow to be relied on."
    )


def test_clusters_are_scenes() -> None:
    generator = np.random.default_rng(0)
    names = [f"scene_{s}/frame_{k}" for s in range(12) for k in range(4)]
    first = evaluation("a", dict(zip(names, generator.uniform(1, 2, 48).tolist(), strict=True)))
    second = evaluation("b", dict(zip(names, generator.uniform(1, 2, 48).tolist(), strict=True)))
    (contrast,) = compare([first, second], clusters=True).contrasts
    assert contrast.difference is not None
    assert (contrast.difference.pairs, contrast.difference.units) == (48, 12)
    assert "only" not in contrast.sentence
    with pytest.raises(InputError, match="not in groups"):
        compare(
            [evaluation("a", errors_of("p", 1, 2)), evaluation("b", errors_of("p", 1, 2))],
            clusters=True,
        )


def test_other_metrics() -> None:
    first = Evaluation("a", {}, (record("p", 4, seconds=1), record("q", 2, seconds=2)))
    second = Evaluation("b", {}, (record("p", 1, seconds=3), record("q", 1, seconds=5)))

    def difference(metric: str) -> PairedDifference | None:
        return compare([first, second], metric).contrasts[0].difference

    seconds, outliers = difference("seconds"), difference("outlier_3px")
    assert seconds is not None
    assert (seconds.mean, seconds.losses) == (2.5, 2)
    assert outliers is not None
    assert outliers.mean == -0.5
    # Nothing is known of occlusions and confidence.
    for metric in ("epe_occ", "ause"):
        with pytest.raises(InputError, match=f"{metric} is not known for a on any pair"):
            difference(metric)
    columns = record("p", 1).as_row()
    assert set(METRICS) <= set(columns)
    assert not {"pair", "pixels", "pixels_noc", "failed", "occlusion_f1"} & set(METRICS)


def test_what_cannot_be_compared() -> None:
    one = evaluation("one", errors_of("p", 1, 2), dataset="sintel")
    with pytest.raises(InputError, match="at least two"):
        compare([one])
    with pytest.raises(InputError, match="one is there twice"):
        compare([one, one])
    with pytest.raises(InputError, match=r"no metric 'epe'; known are epe_all, "):
        compare([one, evaluation("two", errors_of("p", 1))], "epe")
    final = evaluation("two", errors_of("p", 1), dataset="sintel", **{"pass": "final"})
    with pytest.raises(InputError, match=r"different data: pass was clean and final; compare"):
        compare([one, final])
    # What is said anyway, and other parts of the same, are no difference.
    clean = evaluation("two", errors_of("p", 1), dataset="sintel", subset=0.5, **{"pass": "clean"})
    assert compare([one, clean]).contrasts[0].left_out == 1
    larger = Evaluation("two", {}, (record("p0", 1), record("p1", 1, pixels=2)))
    with pytest.raises(InputError, match="the files of p1 are not the same"):
        compare([one, larger])


def write_log(path: Path, found: Evaluation) -> Path:
    header = {"work": "evaluation", "settings": found.settings}
    lines = [header, *(one.as_json() for one in found.records)]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_reading_logs(tmp_path: Path) -> None:
    written = evaluation("any", errors_of("p", 1, None, 3), dataset="folder")
    path = write_log(tmp_path / "run.jsonl", written)
    found = read_evaluation(path, "name")
    assert (found.label, found.settings) == ("name", written.settings)
    assert [one.as_row() for one in found.records] == [one.as_row() for one in written.records]
    # A line that was being written is not there yet.
    path.write_bytes(path.read_bytes()[:-3])
    assert [one.pair for one in read_evaluation(path, "name").records] == ["p0", "p1"]
    settings = '{"work": "evaluation", "settings": {"pairs": ["p"]}}\n'
    for text in ("", "{}", "{}\n", "[]\n", settings + '{"key": "p"}\n', "\0\n"):
        path.write_text(text)
        message = message_of(lambda: read_evaluation(path, "name"), path)
        assert "is not the log of an earlier evaluation" in message
    path.unlink()
    assert "does not exist" in message_of(lambda: read_evaluation(path, "name"), path)


# --- the command ----------------------------------------------------------------------------------

WTA, FLOATS = "wta-qq:pairs", "wta-ff:pairs"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("folder")
    for number, name in enumerate(("one/a", "one/b", "two/a")):
        save_image(root / name / "frame1.png", scene(number).image0)
        save_image(root / name / "frame2.png", scene(number).image1)
        save_flow(root / name / "flow.flo", scene(number).flow)
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
    assert "There are only 2 groups: the interval is too narrow" in again
    assert "wta-qq-default-scale2 against " in again
    saved = json.loads((tmp_path / "c.json").read_text())
    assert (saved["metric"], saved["clusters"]) == ("outlier_3px", True)
    # Or one that is done with one that is not.
    mixed = run(logs[0], "wta-qq:pairs", *data, "--subset", "one")
    assert "scale" in mixed
    assert "The figures above are of the pairs that each method has, which differ." in mixed


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
            f'preset = "{preset}"\nmodel = "pairs"\nfilling = false\nfractions = false\n'
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
        (WTA, *data): "Name at least two methods to compare.",
        (WTA, WTA, *data): "wta-qq:pairs is named twice",
        (WTA, "magic", *data): "There is no method 'magic'",
        (WTA, FLOATS): "wta-qq:pairs needs pairs to run on; name them by --data DATASET ROOT",
        (WTA, FLOATS, "--data", "folder", folder, "fast"): "put the methods before it",
        (WTA, FLOATS, "--data", "nothing", folder): "There is no data set 'nothing'",
        (WTA, FLOATS, "--data", "folder"): "The data set folder needs its root",
        (WTA, FLOATS, *data, "--metric", "magic"): "--metric must be one of epe_all, ",
        (WTA, FLOATS, *data, "--overwrite"): "--overwrite needs the folder to begin anew",
        (WTA, FLOATS, "--data", "synthetic", "--clusters"): "are not in groups",
        (WTA, FLOATS, *data, "--scale", 0): "scale must be a whole number, at least 1",
        (WTA, FLOATS, *data, "--json", tmp_path / "x/y.json"): "does not exist; create it first",
        (log.parent, tmp_path): "has no run.jsonl; name the folder of an evaluation",
        (log.parent, "opencv-dis:pairs"): "opencv-dis takes neither a model nor a window",
        (log.parent, WTA, *data, "--clusters", "--pass", "clean"): "folder has no --pass",
        (log.parent, log.parent.parent / "b", "--data", "folder", folder): "as they are",
        (WTA, WTA + ":", *data): "wta-qq:pairs is named twice",
        (log.parent, f"{log.parent}/", *data): "is named twice",
        (WTA, FLOATS, *data, "--json", folder / "one/a/flow.flo"): "inside of the data set",
        (log.parent, WTA, *data, "--json", log): "a file of this command itself",
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

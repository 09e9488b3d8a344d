"""Evaluations side by side: what counts, and the sentences about it."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from _evaluations import errors_of, evaluation, record, write_log
from _trees import message_of
from hamflow.errors import InputError
from hamflow.evaluation import (
    Evaluation,
    PairedDifference,
    compare,
    paired_bootstrap,
    read_evaluation,
)
from hamflow.evaluation.comparison import METRICS


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
    assert contrast.sentence.endswith(
        " There is only 1 group, which is not enough for an interval."
    )
    few = evaluation("few", {"s/0": 5, "s/1": 5, "s/2": None})
    (contrast,) = compare([base, few]).contrasts
    assert contrast.sentence.startswith(
        "few against base, too few to tell: epe_all differs by +1 ("
    )
    assert contrast.sentence.endswith(
        " Left out: 10 pairs that one of them failed on or lacks. There are only 2 pairs, so "
        "the interval is too narrow to be relied on."
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
    with pytest.raises(InputError, match="form no groups"):
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
    with pytest.raises(InputError, match="one is given twice"):
        compare([one, one])
    with pytest.raises(InputError, match=r"no metric 'epe'; choose one of epe_all, "):
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
    one = evaluation("any", errors_of("p", 1))
    for wrong in ({"pixels": math.inf}, {"epe_all": 10**400}, {"seconds": "1"}, {"curve": 3}):
        write_log(path, one)
        header, line = path.read_text().splitlines()
        path.write_text(f"{header}\n{json.dumps(json.loads(line) | wrong)}\n")
        message = message_of(lambda: read_evaluation(path, "name"), path)
        assert "is not the log of an earlier evaluation" in message
    path.unlink()
    assert "does not exist" in message_of(lambda: read_evaluation(path, "name"), path)

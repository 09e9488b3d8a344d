"""Evaluating a method on a data set."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hamflow import FileError, InputError, endpoint_error
from hamflow.datasets import SyntheticConfig, demo_scene, open_dataset
from hamflow.evaluation import (
    Estimate,
    Method,
    MethodConfig,
    PairRecord,
    epe_metrics,
    evaluate,
    pool,
    sparsification,
)
from hamflow.evaluation.records import ERROR_EDGES
from hamflow.evaluation.runner import judge, pair_names
from hamflow.io._text import read_rows, write_csv

SCENES = [demo_scene(40, 56, seed) for seed in range(3)]
QUICK = MethodConfig("wta-qq", model="pairs", window=16)


class Counted(Method):
    """A method that counts its calls and can be stopped by a Ctrl-C."""

    def __init__(self, config: MethodConfig = QUICK, stop_after: int | None = None) -> None:
        super().__init__(config)
        self.calls = 0
        self.stop_after = stop_after

    def __call__(self, image0: Any, image1: Any) -> Estimate:
        if self.calls == self.stop_after:
            raise KeyboardInterrupt
        self.calls += 1
        return super().__call__(image0, image1)


def test_figures_are_those_of_the_flow() -> None:
    method = Method("fast")
    found = evaluate(SCENES, method)
    assert [record.pair for record in found.records] == pair_names(SCENES)
    for scene, record in zip(SCENES, found.records, strict=True):
        estimate = method(scene.image0, scene.image1)
        expected = epe_metrics(estimate.flow, scene.flow, scene.occluded)
        assert record.metrics == expected
        assert estimate.confidence is not None
        error = endpoint_error(estimate.flow, scene.flow)
        curve = sparsification(error, estimate.confidence)
        assert record.ause == curve.ause
        assert record.curve == tuple(curve.error[::5])
        assert record.oracle == tuple(curve.oracle[::5])
        assert sum(record.histogram) == expected.pixels
        below = sum(record.histogram[: ERROR_EDGES.index(1.0)])
        assert below == np.count_nonzero(error < 1)
        assert record.gap == estimate.gap
        assert record.seconds > 0
        assert not record.failed


def test_summary() -> None:
    found = evaluate(SCENES, Method(QUICK))
    metrics = [record.metrics for record in found.records]
    row = found.summary()
    expected = pool(m for m in metrics if m is not None)
    assert {name: row[name] for name in expected.as_row()} == expected.as_row()
    assert row["failed"] == 0
    assert row["ause"] is None
    assert row["seconds"] == pytest.approx(np.mean([r.seconds for r in found.records]))
    assert row["peak_memory"] == max(r.peak_memory or 0 for r in found.records)
    json.dumps(row, allow_nan=False)


def test_occlusion_f1() -> None:
    truth = np.zeros((2, 4, 2), np.float32)
    truth[1, 3] = np.nan
    true = np.array([[1, 1, 0, 0], [0, 0, 0, 1]], np.bool_)
    found = np.array([[1, 0, 1, 0], [0, 0, 0, 0]], np.bool_)
    estimate = Estimate(np.zeros_like(truth), occlusion=found)
    record = judge("x", estimate, truth, true, seconds=1, memory=None)
    assert record.occlusion_f1 == pytest.approx(2 * 1 / (2 + 2))
    nothing = Estimate(np.zeros_like(truth), occlusion=np.zeros_like(found))
    none = np.zeros_like(true)
    assert judge("x", nothing, truth, none, seconds=1, memory=None).occlusion_f1 == 1
    assert judge("x", nothing, truth, None, seconds=1, memory=None).occlusion_f1 is None


def test_a_rerun_continues(tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    interrupted = Counted(stop_after=2)
    with pytest.raises(KeyboardInterrupt):
        evaluate(SCENES, interrupted, log=log)
    # As if the machine had gone down in the middle of a line.
    log.write_bytes(log.read_bytes() + b'{"key": "scene_0')
    method = Counted()
    seen: list[tuple[str, int, int]] = []
    found = evaluate(SCENES, method, log=log, progress=lambda *s: seen.append(s))
    assert method.calls == 1
    assert seen == [("scene_00002", 2, 3), ("", 3, 3)]
    again = evaluate(SCENES, Counted(stop_after=0), log=log)
    whole = evaluate(SCENES, Method(QUICK))
    for one, other, expected in zip(found.records, again.records, whole.records, strict=True):
        assert one.metrics == other.metrics == expected.metrics
        assert one.histogram == other.histogram == expected.histogram
        assert one.as_row() == other.as_row()


def test_read_sums_pool_alike(tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    evaluate(SCENES, Method(QUICK), log=log)
    read = evaluate(SCENES, Method(QUICK), log=log).summary()
    whole = evaluate(SCENES, Method(QUICK)).summary()
    for name, value in whole.items():
        if name not in ("seconds", "peak_memory") and isinstance(value, float):
            assert read[name] == pytest.approx(value, rel=1e-12)


def _other_window(log: Path) -> None:
    evaluate(SCENES, Method(replace(QUICK, window=8)), log=log)


def _other_pairs(log: Path) -> None:
    evaluate(SCENES[:2], Method(QUICK), log=log)


def _other_data(log: Path) -> None:
    evaluate(SCENES, Method(QUICK), data={"dataset": "other"}, log=log)


@pytest.mark.parametrize(
    ("work", "message"),
    [
        (_other_window, "window was"),
        (_other_pairs, "pairs was"),
        (_other_data, "data.dataset was None, not other"),
    ],
)
def test_another_evaluation_is_not_mixed_in(
    tmp_path: Path, work: Callable[[Path], None], message: str
) -> None:
    log = tmp_path / "run.jsonl"
    evaluate(SCENES, Method(QUICK), log=log)
    before = log.read_bytes()
    with pytest.raises(FileError, match=message):
        work(log)
    assert log.read_bytes() == before


def test_overwrite_begins_anew(tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    evaluate(SCENES, Method(QUICK), log=log)
    method = Counted(replace(QUICK, window=8))
    found = evaluate(SCENES, method, log=log, overwrite=True)
    assert method.calls == 3
    assert len(log.read_bytes().splitlines()) == 1 + 3
    again = evaluate(SCENES, Counted(replace(QUICK, window=8), stop_after=0), log=log)
    assert [one.as_row() for one in again.records] == [one.as_row() for one in found.records]


@pytest.mark.parametrize("line", ["{}", '{"key": "scene_00000", "source": MARK}', "[]", "not json"])
def test_damaged_log(tmp_path: Path, line: str) -> None:
    log = tmp_path / "run.jsonl"
    evaluate(SCENES[:1], Method(QUICK), log=log)
    mark = json.dumps(json.loads(log.read_text().splitlines()[1])["source"])
    log.write_text(log.read_text() + line.replace("MARK", mark) + "\n")
    with pytest.raises(FileError, match=r"is damaged; remove that line\.$"):
        evaluate(SCENES[:1], Method(QUICK), log=log)


class Broken(Method):
    def __init__(self, what: object) -> None:
        super().__init__(QUICK)
        self.what = what

    def __call__(self, image0: Any, image1: Any) -> Estimate:
        if isinstance(self.what, Exception):
            raise self.what
        flow = super().__call__(image0, image1).flow
        if image0 is SCENES[1].image0:
            flow[3, 4] = np.nan
        return Estimate(flow)


def test_failures_are_recorded(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    found = evaluate(SCENES, Broken(None), log=log)
    assert [record.failed for record in found.records] == ["", "undefined flow", ""]
    row = found.summary()
    assert row["failed"] == 1
    assert row["images"] == 2
    assert found.records[1].as_row()["epe_all"] is None
    again = evaluate(SCENES, Broken(None), log=log)
    assert again.records[1].failed == "undefined flow"
    assert again.records[1].metrics is None


def test_all_failed() -> None:
    found = evaluate(SCENES, Broken(RuntimeError("OpenCV:\n  gave up")))
    assert {record.failed for record in found.records} == {"OpenCV: gave up"}
    assert found.summary()["images"] == 0
    assert found.pooled is None


def test_our_own_errors_stop() -> None:
    with pytest.raises(InputError, match="mine"):
        evaluate(SCENES, Broken(InputError("mine")))


def test_unknown_truth() -> None:
    scene = replace(SCENES[0], flow=np.full_like(SCENES[0].flow, np.nan))
    with pytest.raises(InputError, match="unknown everywhere"):
        evaluate([scene], Method(QUICK))


def test_rendered_scenes() -> None:
    pairs = open_dataset("synthetic", config=SyntheticConfig(height=32, width=48), size=2, seed=4)
    found = evaluate(pairs, Method(QUICK))
    assert [record.pair for record in found.records] == ["scene_00000", "scene_00001"]


def test_csv(tmp_path: Path) -> None:
    found = evaluate(SCENES, Broken(None))
    path = tmp_path / "pairs.csv"
    write_csv(path, [record.as_row() for record in found.records])
    rows = read_rows(path)[1]
    assert [row["pair"] for row in rows] == pair_names(SCENES)
    first = found.records[0].metrics
    assert first is not None
    assert float(rows[0]["epe_all"]) == first.epe_all
    assert int(rows[0]["pixels"]) == first.pixels
    assert rows[1]["epe_all"] == ""
    assert rows[1]["failed"] == "undefined flow"
    assert rows[0]["ause"] == ""


@pytest.mark.parametrize("text", ["a,b\n1\n", "a,b\n1,2,3\n", 'a,b\n"1'])
def test_bad_csv(tmp_path: Path, text: str) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text(text)
    with pytest.raises(FileError, match="CSV"):
        read_rows(path)


def test_record_round_trip() -> None:
    record = evaluate(SCENES[:1], Method("fast")).records[0]
    back = PairRecord.from_json(json.loads(json.dumps(record.as_json())))
    assert back.as_json() == record.as_json()
    assert back.metrics == record.metrics

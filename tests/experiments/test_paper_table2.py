"""``paper table2`` at a tiny size: that it measures, not how fast it is."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

import hamflow
from experiments.cli.app import main
from experiments.paper import published, table2
from hamflow.errors import InputError

SIZE = ["--width", "48", "--height", "33", "--d", "16", "--rounds", "1", "--model", "pairs"]


@pytest.fixture(autouse=True)
def _no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """The program of the register peaks has tests of its own, and needs cmake."""
    rates = {"min_projection": 2e10, "fused_multiply_add": 1e11}
    monkeypatch.setattr(table2, "register_peak", rates.__getitem__)


def test_published_figures() -> None:
    """Typed here once more from the paper."""
    assert published.TABLE1["FF", 7]["trained"] == (4.72, 10.04)
    assert published.TABLE1["FQ", 5]["qq"] == (11.43, 16.78)
    assert published.TABLE1["FQ", 9]["crf_q"] == (1.64, 4.69)
    assert published.TABLE1["QQ", 7] == {
        "trained": None,
        "qq": (9.75, 15.23),
        "crf_f": None,
        "crf_q": (1.66, 4.78),
    }
    assert set(published.TABLE1["FF", 9].values()) == {None}
    assert [key for key in published.TABLE1 if key[1] == 5] == [("FF", 5), ("FQ", 5), ("QQ", 5)]
    assert published.TIMINGS["FQ"] == ((0.04, 0.08), 1.82, None)
    assert published.TIMINGS["QQ (1/3 res.)"] == ((0.004, 0.008), 0.007, 0.32)
    assert published.TIMINGS["FF"].full == 24.8
    assert published.COMPARISON["FlowFields"] == (1.056, 3.748)
    assert list(published.COMPARISON.items())[-1] == ("Ours QQ", (2.47, 8.972))


def test_memory_of_the_example() -> None:
    """The paper says roughly 108 GB and 0.8 GB: true of binary gigabytes."""
    full = table2.full_bytes(1024, 436, 256)
    assert full == 1024 * 436 * 256 * 256 * 4
    assert full / 2**30 == pytest.approx(published.MEMORY_4D_GB, rel=0.01)
    assert full / 1e9 == pytest.approx(117.04, abs=0.01)
    projected = table2.projected_bytes(1024, 436, 256)
    assert full == projected * 256 / 2
    assert projected / 2**30 == pytest.approx(0.85, abs=0.01)


def test_rows() -> None:
    assert [(row.matching, row.factor, row.d) for row in table2.rows(128)] == [
        ("FF", 1, 128),
        ("FQ", 1, 128),
        ("QQ", 1, 128),
        ("QQ", 3, 128),
        ("QQ", 3, 48),
    ]
    assert len(table2.rows(8)) == 4  # a third of 8 is rounded up to 8
    assert all(row.published in published.TIMINGS for row in table2.rows(64))


def test_everything(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, sheet = tmp_path / "t.json", tmp_path / "t.csv"
    assert main(["paper", "table2", *SIZE, "--json", str(file), "--csv", str(sheet)]) == 0
    report = json.loads(file.read_text())
    assert report["machine"]["level"] == hamflow.get_isa()
    assert report["layers"] is None  # of the hand-crafted descriptor
    rows = {row["method"]: row for row in report["rows"]}
    third = rows["QQ (1/3 res., D = 8)"]
    assert (third["width"], third["height"], third["d"]) == (16, 11, 8)
    for name, row in rows.items():
        assert row["features"] > 0
        assert row["wta"] > 0
        assert row["full"] is None if name == "FQ" else row["full"] > 0
    assert rows["QQ"]["paper_full"] == 3.2

    _check_speed(report)
    _check_memory(report["memory"])
    with open(sheet, encoding="utf-8", newline="") as lines:
        cells = list(csv.DictReader(lines))
    assert [line["method"] for line in cells] == list(rows)
    assert (cells[1]["full"], cells[1]["paper_full"]) == ("", "")
    assert float(cells[0]["wta"]) == rows["FF"]["wta"]
    printed = capsys.readouterr().out
    for words in ("24.8", "0.04–0.08", "DCFlow", "GiB", "Titan", "t.csv.\n", "t.json\n"):
        assert words in printed


def _check_speed(report: dict[str, Any]) -> None:
    times = {row["method"]: row["wta"] for row in report["rows"]}
    speed = report["speedup"]
    assert speed["measured"] == pytest.approx(times["FF"] / times["QQ"])
    assert speed["paper"] == pytest.approx(60.7, abs=0.1)
    # All of the speed-up is in the registers or in how well they are used.
    shares = speed["bit_share_of_peak"] / speed["float_share_of_peak"]
    assert speed["measured"] == pytest.approx(speed["registers"] * shares)
    assert f"{speed['measured']:.1f} times" in report["notes"][-1]


def _check_memory(memory: dict[str, Any]) -> None:
    assert memory["d"] == 32
    assert memory["outputs"] == 2 * 48 * 33 * 32
    assert memory["full_float32"] == 48 * 33 * 32**2 * 4
    if memory["measured"] is not None:
        assert memory["beyond_outputs"] == max(0, memory["measured"] - memory["outputs"])


def test_measured_memory_has_the_outputs() -> None:
    """Large enough for pages to count, small enough to be quick."""
    scene = hamflow.datasets.demo_scene(200, 320)
    model = hamflow.load_model("pairs")
    memory = table2._memory(model, scene.image0, scene.image1, 64)
    if memory["measured"] is None:
        pytest.skip("the system does not tell")
    assert memory["outputs"] == 2 * 200 * 320 * 64
    assert 0.9 * memory["outputs"] < memory["measured"] < memory["full_float32"] / 10


def test_quick_leaves_out_the_joint_model_on_floats() -> None:
    named: list[str] = []
    report = table2.run(48, 32, 8, 3, model="pairs", quick=True, progress=named.append)
    assert report["rows"][0]["full"] is None
    assert report["rows"][2]["full"] > 0
    assert "FF: full" not in named
    assert named.count("FF: wta") == 2
    assert named.count("QQ: wta") == 3


def test_floats_are_measured_once() -> None:
    named: list[str] = []
    report = table2.run(48, 32, 16, 2, model="pairs", progress=named.append)
    assert named.count("FF: full") == 1
    assert report["rows"][0]["full"] > 0


def test_a_network_names_its_layers() -> None:
    report = {"layers": 7, "model": "default", "d": 128}
    first, second = table2._about_times(report)
    assert "default (7 layers)" in first
    assert "D = 48 covers the same motion as D = 128" in second


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--d", "12"], "multiple of 8"),
        (["--rounds", "0"], "positive"),
        (["--width", "16"], "at least 32"),
        (["--model", "best"], "no model 'best'"),
        (["--json", "missing/t.json"], "create it first"),
        (["--csv", "missing/t.csv"], "create it first"),
        (["--csv", "same", "--json", "same"], "same file"),
        (["--model", "m.onnx", "--csv", "m.onnx"], "itself"),
    ],
)
def test_errors(options: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["paper", "table2", *SIZE, *options]) == 1
    captured = capsys.readouterr()
    assert words in captured.err
    assert captured.err.endswith(".\n")
    assert captured.out == ""  # no bar has begun


def test_the_smallest_scene() -> None:
    table2.check_scene(32, 32)
    hamflow.datasets.demo_scene(32, 32)
    for size in ((31, 32), (32, 31)):
        with pytest.raises(InputError, match="at least 32"):
            table2.check_scene(*size)
        with pytest.raises(InputError, match="at least 32"):
            hamflow.datasets.demo_scene(*size)


def test_reference_level_is_refused() -> None:
    from experiments.cli.paper_table2 import paper_table2  # noqa: PLC0415

    hamflow.set_isa("reference")
    with pytest.raises(InputError, match="HAMFLOW_ISA"):
        paper_table2()

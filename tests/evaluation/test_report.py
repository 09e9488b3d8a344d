"""Reports as HTML: what is in them, and that nothing else gets in."""

from __future__ import annotations

import base64
import hashlib
import importlib
import io
import itertools
import json
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

from _reports import NAMES, NASTY, Pairs, Stub
from hamflow.errors import FileError, InputError
from hamflow.evaluation import Estimate, Evaluation, Method, PairRecord, evaluate
from hamflow.evaluation._charts import MOST, charts
from hamflow.evaluation._columns import COLUMNS, GROUPS
from hamflow.evaluation._pictures import error_scale, panels
from hamflow.evaluation.report import write_report
from hamflow.visualize import error_map

PAIRS = Pairs()


class Page(HTMLParser):
    """A page, taken apart."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.words: list[str] = []
        self.raw: dict[str, list[str]] = {"script": [], "style": []}
        self._inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))
        self._inside = tag

    def handle_data(self, data: str) -> None:
        if self._inside in self.raw:
            self.raw[self._inside].append(data)
        elif data.strip():
            self.words.append(" ".join(data.split()))
        self._inside = self._inside if self._inside in self.raw else ""

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def all(self, tag: str, **wanted: str) -> list[dict[str, str]]:
        return [
            own
            for name, own in self.tags
            if name == tag and all(own.get(key.rstrip("_")) == v for key, v in wanted.items())
        ]

    @property
    def data(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.raw["script"][0])
        return found

    @property
    def shown(self) -> list[str]:
        """The pairs of the pictures, in the order of the page."""
        labels = (own.get("aria-label", "") for own in self.all("button", class_="zoom"))
        names = [re.sub(r"^Enlarge: .*? of ", "", label) for label in labels]
        return list(dict.fromkeys(names))


def report(
    folder: Path,
    method: Any = None,
    pairs: Sequence[Any] = PAIRS,
    found: Evaluation | None = None,
    **options: Any,
) -> Page:
    method = Stub() if method is None else method
    found = evaluate(pairs, method, data={"dataset": "scenes"}) if found is None else found
    write_report(folder / "report.html", found, pairs, method, **options)
    return Page((folder / "report.html").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def found() -> Evaluation:
    return evaluate(PAIRS, Stub(), data={"dataset": "scenes", "pass": "final"})  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory, found: Evaluation) -> Page:
    return report(tmp_path_factory.mktemp("report"), found=found)


def test_every_column_is_described(found: Evaluation) -> None:
    assert [column.name for column in COLUMNS] == list(found.records[0].as_row())
    assert all(column.title for column in COLUMNS)
    assert {column.group for column in COLUMNS} == {"pair", *GROUPS}


def test_head(page: Page, found: Evaluation) -> None:
    for words in ("stub", "on scenes", "pass", "final", "pairs", "5", "failed", "0", "hamflow"):
        assert words in page.words
    assert '"method": "stub"' in next(words for words in page.words if words.startswith("{"))
    assert f"{found.summary()['epe_all']:.3f}" in page.words


def test_summary(page: Page, found: Evaluation) -> None:
    summary = found.summary()
    heads = page.all("th", scope="col")
    titled = [own for own in heads if "title" in own]
    buttons = page.all("button", type="button")
    assert len(heads) == 2 + 23 + len(COLUMNS)
    assert len(titled) == 2 + 23
    # Those of the table of pairs are buttons.
    assert sum("title" in own for own in buttons) == len(COLUMNS)
    for name in ("epe_all", "epe_noc", "epe_occ"):
        assert f"{summary[name]:.3f}" in page.words
        assert f"{summary[f'image_mean_{name}']:.3f}" in page.words
    for name in ("fl_all", "fl_noc", "outlier_1px", "outlier_3px", "outlier_5px", "gap"):
        assert f"{100 * summary[name]:.2f}" in page.words
    assert f"{summary['angular_all']:.2f}" in page.words
    for name in ("s0_10", "d0_10", "d10_60", "ause", "occlusion_f1", "seconds"):
        assert f"{summary[name]:.3f}" in page.words
    assert "best" not in {own.get("class") for own in page.all("td")}


def test_table_of_pairs(page: Page, found: Evaluation) -> None:
    assert len(page.data["columns"]) == len(COLUMNS)
    for row, record in zip(page.data["rows"], found.records, strict=True):
        for value, expected in zip(row, record.as_row().values(), strict=True):
            assert value == (pytest.approx(expected) if isinstance(expected, float) else expected)


def test_pictures(page: Page) -> None:
    images = page.all("img", alt="First frame")
    assert len(images) == len(NAMES)
    sources = [own["src"] for own in page.all("img") if own.get("src")]
    assert len(sources) == 6 * len(NAMES)
    for own in images:
        kind, _, content = own["src"].partition(",")
        assert kind == "data:image/jpeg;base64"
        picture = Image.open(io.BytesIO(base64.b64decode(content)))
        assert picture.size == (int(own["width"]), int(own["height"])) == (56, 40)
    for title in ("True flow", "Estimated flow", "Endpoint error", "Occlusion", "Confidence"):
        assert len(page.all("img", alt=title)) == len(NAMES)
    for words in ("found", "missed", "wrongly found", "0.75", "48"):
        assert page.words.count(words) == len(NAMES)


def test_nothing_of_a_name_becomes_html(tmp_path: Path) -> None:
    def fail(image: Any) -> None:
        if (image == PAIRS[1].image0).all():
            raise ValueError(f"{NASTY} & so on")

    page = report(tmp_path, Stub(f"a {NASTY}", fail=fail))
    assert NASTY not in page.text
    assert "&lt;script&gt;" in page.text
    assert len(page.all("script")) == 2
    assert page.data["rows"][2][0] == NASTY
    assert page.data["rows"][1][1] == f"{NASTY} & so on"
    assert page.shown.count(NASTY) == 1
    assert NAMES[3] in page.shown
    # Not even a comment or the end of the script in the data.
    assert "<" not in page.raw["script"][0]


def test_no_network(page: Page) -> None:
    for tag, own in page.tags:
        for name in ("src", "href", "xlink:href", "srcset", "action", "data", "poster"):
            assert own.get(name, "#").startswith(("data:", "#")), (tag, own)
        assert not any(name.startswith("on") for name in own), "handlers are for the script"
    without_pictures = re.sub(r"base64,[\w+/=]+", "", page.text)
    assert len(without_pictures) < len(page.text) / 2
    assert not re.search(r"https?:|@import|//[a-z]", without_pictures)
    for address in re.findall(r"url\((.*?)\)", page.text):
        assert address.startswith('"data:image/png;base64,')


def test_policy_lets_nothing_but_the_script_run(page: Page) -> None:
    (policy,) = (own["content"] for own in page.all("meta") if "http-equiv" in own)
    assert "default-src 'none'" in policy
    assert "img-src data:" in policy
    digest = base64.b64encode(hashlib.sha256(page.raw["script"][1].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}';" in policy


def test_worst_and_best(tmp_path: Path, found: Evaluation) -> None:
    ordered = [r.pair for r in sorted(found.records, key=lambda r: -r.as_row()["epe_all"])]
    calls: list[tuple[str, int, int]] = []
    page = report(tmp_path, found=found, pictures=2, progress=lambda *call: calls.append(call))
    assert page.shown == [*ordered[:2], ordered[-1], ordered[-2]]
    assert {"The worst pairs", "The best pairs"} < set(page.words)
    assert [name for name, _, _ in calls] == [*page.shown, ""]
    assert calls[-1][1:] == (4, 4)
    assert set(page.data["anchors"]) == set(page.shown)
    page = report(tmp_path, found=found, pictures=3)
    assert page.shown == ordered
    assert "All pairs, the worst first" in page.words
    page = report(tmp_path, found=found, pictures=0)
    assert page.shown == []
    assert page.data["anchors"] == {}


def test_what_a_method_does_not_have(tmp_path: Path) -> None:
    page = report(tmp_path, Method("opencv-dis"), Pairs(NAMES[:2], 64, 80))
    assert not page.all("img", alt="Occlusion")
    assert not page.all("img", alt="Confidence")
    said = [
        f"There is no {what}, because the method does not estimate it."
        for what in ("occlusion", "confidence")
    ]
    assert page.words.count(" ".join(said)) == 2
    assert not any(words.startswith("Sparsification") for words in page.words)


def test_occlusion_that_nobody_knows(tmp_path: Path) -> None:
    pairs = Pairs(NAMES[:2])
    pairs[:] = [replace(pair, occluded=None) for pair in pairs]  # type: ignore[arg-type]
    page = report(tmp_path, pairs=pairs)
    assert page.words.count("There is no occlusion, because the true occlusion is not known.") == 2
    assert len(page.all("img", alt="Confidence")) == 2
    assert any("Occlusions are not known" in words for words in page.words)


def test_failed_pairs(tmp_path: Path) -> None:
    def fail(image: Any) -> None:
        if (image == PAIRS[0].image0).all():
            raise ValueError("too dark")

    page = report(tmp_path, Stub(fail=fail))
    assert page.shown.count(NAMES[0]) == 0
    assert len(page.shown) == len(NAMES) - 1
    row = page.data["rows"][0]
    assert row[:2] == [NAMES[0], "too dark"]
    assert page.data["failed"] == 1
    assert "1 failed" in page.words


def test_nothing_but_failures(tmp_path: Path) -> None:
    def fail(_: Any) -> None:
        raise ValueError("broken")

    page = report(tmp_path, Stub(fail=fail))
    assert page.shown == []
    assert not page.all("svg")
    assert page.words.count("–") >= 22  # all but the memory
    assert {row[1] for row in page.data["rows"]} == {"broken"}


def test_a_method_that_changes_its_mind(tmp_path: Path, found: Evaluation) -> None:
    class Other(Stub):
        def __call__(self, image0: Any, image1: Any) -> Estimate:
            estimate = super().__call__(image0, image1)
            return replace(estimate, flow=estimate.flow * 3)

    page = report(tmp_path, Other(), found=found)
    assert sum("do not show the measured flow" in words for words in page.words) == 5

    def fail(_: Any) -> None:
        raise ValueError("not today")

    page = report(tmp_path, Stub(fail=fail), found=found)
    assert page.shown == []
    said = "There are no pictures, because the method failed when run again (not today)."
    assert page.words.count(said) == 5


def test_others(tmp_path: Path, found: Evaluation) -> None:
    half = replace(found, label="half", records=found.records[:2])
    slow = replace(found, label="slow", records=tuple(_slower(r) for r in found.records))
    page = report(tmp_path, found=found, others=[slow, half], pictures=0)
    for label in ("stub", "slow", "half"):
        assert page.words.count(label) >= 2  # in the table and in the legends
    assert page.words.count("other pairs") == 1
    cells = [own.get("class", "") for own in page.all("td")]
    # All are as good as the other; but one is slower, and the third is no match.
    known = sum(value is not None for value in _summary_values(found))
    assert sum(name.startswith("best") for name in cells) == 2 * known - 1


def _slower(record: PairRecord) -> PairRecord:
    return replace(record, seconds=2 * record.seconds)


def _summary_values(found: Evaluation) -> list[Any]:
    summary = found.summary()
    names = [
        *("epe_all", "epe_noc", "epe_occ", "s0_10", "s10_40", "s40plus", "d0_10", "d10_60"),
        *("d60_140", "fl_all", "fl_noc", "outlier_1px", "outlier_3px", "outlier_5px"),
        *("angular_all", "ause", "occlusion_f1", "gap", "seconds", "peak_memory"),
        *("image_mean_epe_all", "image_mean_epe_noc", "image_mean_epe_occ"),
    ]
    return [summary[name] for name in names]


def test_charts(found: Evaluation) -> None:
    drawn = charts([found])
    assert [chart.title.split(",")[0] for chart in drawn] == [
        "Endpoint errors of all pixels",
        "EPE of each pair",
        "Sparsification",
        "Time and EPE of each pair",
    ]
    assert f"AUSE {found.summary()['ause']:.3f}" in drawn[2].title
    trees = [ElementTree.fromstring(chart.svg) for chart in drawn]
    bars = [node for node in trees[0].iter("rect") if "bar" in node.get("class", "")]
    heights = np.array([float(node.get("height", 0)) for node in bars])
    counts = np.sum([record.histogram for record in found.records], axis=0)
    filled = counts[counts > 0]
    np.testing.assert_allclose(
        heights[heights > 0] / heights.max(), filled / filled.max(), atol=1e-3
    )
    dots = [node for node in trees[3].iter("circle")]
    assert {node.get("data-pair") for node in dots} == set(NAMES)
    for tree in trees:
        for node in tree.iter("text"):
            assert "nan" not in (node.text or "")


def test_charts_of_many(found: Evaluation) -> None:
    drawn = charts([found] * (MOST + 2))
    assert len(drawn[0].keys) == MOST
    assert not charts([replace(found, records=()), found])


def test_charts_of_perfect_and_equal_pairs(found: Evaluation) -> None:
    metrics = found.records[0].metrics
    assert metrics is not None
    still = PairRecord("a", replace(metrics, epe_all=0.0), 1.0)
    drawn = charts([replace(found, records=(still, still))])
    assert [chart.title for chart in drawn] == ["EPE of each pair", "Time and EPE of each pair"]


def test_error_scale_is_that_of_the_map() -> None:
    scale = error_scale()
    assert len({color for color, _ in scale}) == len(scale) == 10
    for (color, _), (_, limit) in itertools.pairwise(scale):
        flow = np.full((1, 1, 2), (0.999 * limit, 0.0))
        red, green, blue = error_map(flow, np.zeros_like(flow), legend=False)[0, 0]
        assert color == f"#{red:02x}{green:02x}{blue:02x}"


def test_sparse_truth_keeps_its_colors() -> None:
    """One pixel of 9 is known, and the picture is reduced by 3: it is as bright as a dense one."""
    dense = np.full((96, 1440, 2), (0, 5), np.float32)
    sparse = np.full_like(dense, np.nan)
    sparse[1::3, 1::3] = dense[1::3, 1::3]
    frame, nowhere = np.zeros((96, 1440, 3), np.uint8), np.zeros((96, 1440), bool)
    estimate = Estimate(dense)
    scenes = [
        SimpleNamespace(image0=frame, image1=frame, flow=flow, occluded=nowhere)
        for flow in (sparse, dense)
    ]
    pictures = [_decoded(panels(scene, estimate)[0][1]) for scene in scenes]
    assert pictures[0].shape == (32, 480, 3)
    np.testing.assert_allclose(pictures[0], pictures[1], atol=8)


def _decoded(panel: Any) -> Any:
    content = base64.b64decode(panel.source.partition(",")[2])
    return np.asarray(Image.open(io.BytesIO(content))).astype(float)


def test_occlusion_is_judged_where_the_truth_is_known() -> None:
    (pair,) = Pairs(["a"])
    flow, occluded = pair.flow.copy(), np.zeros(pair.occluded.shape, bool)
    occluded[:, :28] = True
    flow[:20] = np.nan
    found = np.zeros_like(occluded)
    found[:, 14:42] = True
    scene = replace(pair, image0=np.zeros_like(pair.image0), flow=flow, occluded=occluded)
    estimate = Estimate(np.zeros_like(flow), occlusion=found)
    picture = _decoded(panels(scene, estimate)[0][-1])
    np.testing.assert_allclose(picture[5, 5], 64, atol=6)
    for column, color in ((7, (213, 94, 0)), (21, (0, 158, 115)), (35, (86, 180, 233)), (50, 64)):
        np.testing.assert_allclose(picture[30, column], color, atol=12)


def test_gray_frames_of_16_bits() -> None:
    (pair,) = Pairs(["a"])
    gray = replace(pair, image0=pair.image0[..., 0].astype(np.uint16) * 257)  # type: ignore[arg-type]
    estimate = Estimate(np.zeros_like(pair.flow))
    expected = np.repeat(pair.image0[..., :1], 3, axis=2)
    np.testing.assert_allclose(_decoded(panels(gray, estimate)[0][0]), expected, atol=60)


def test_wrong_arguments(tmp_path: Path, found: Evaluation) -> None:
    method: Any = Stub()
    with pytest.raises(InputError, match=r"^pictures must be 0 or more, but is -1\.$"):
        write_report(tmp_path / "a.html", found, PAIRS, method, pictures=-1)
    with pytest.raises(InputError, match=r"The data set has no pair 'clean/one'"):
        write_report(tmp_path / "a.html", found, Pairs(["b"]), method)
    with pytest.raises(FileError, match="does not exist"):
        write_report(tmp_path / "no" / "a.html", found, PAIRS, method, pictures=0)
    assert not list(tmp_path.iterdir())


def test_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    monkeypatch.delitem(sys.modules, "hamflow.evaluation.report")
    with pytest.raises(
        InputError, match=r"jinja2; install it with: pip install 'hamflow\[report\]'"
    ):
        importlib.import_module("hamflow.evaluation.report")

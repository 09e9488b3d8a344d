"""Reports in a real browser: the system's Chromium, under the page's own policy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from _browser import is_light, opened, troubles
from _reports import NAMES, NASTY, Pairs, Stub
from hamflow.evaluation import Evaluation, PairRecord, evaluate
from hamflow.evaluation.report import write_report

MANY = 1041


@pytest.fixture(scope="module")
def found() -> Evaluation:
    pairs: Any = Pairs()

    def fail(image: Any) -> None:
        if (image == pairs[1].image0).all():
            raise ValueError("too <dark>")

    method: Any = Stub(fail=fail)
    return evaluate(pairs, method, data={"dataset": "scenes"})


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory, found: Evaluation) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    method: Any = Stub()
    write_report(path, found, Pairs(), method, others=[replace(found, label="other")])
    return path


@pytest.fixture
def page(browser: Browser, report: Path) -> Iterator[Page]:
    with browser.new_context(viewport={"width": 1300, "height": 900}) as context:
        page = opened(context, report.as_uri())
        yield page
        assert troubles(page) == []


def _names(page: Page) -> list[str]:
    """Return the pairs in the rows that are shown."""
    cells = page.locator("#table tbody tr:not([hidden]) th")
    names: list[str] = cells.evaluate_all("all => all.map(e => e.textContent)")
    return names


def _head(page: Page, label: str) -> Any:
    return page.locator("#table thead th").filter(has=page.get_by_text(label, exact=True))


def test_rows_are_text(page: Page) -> None:
    assert _names(page) == list(NAMES)
    expect(page.locator("tr.failed")).to_have_count(1)
    expect(page.locator("tr.failed")).to_contain_text("too <dark>")
    expect(page.locator("#count")).to_have_text("5 pairs")
    link = page.locator("#table tbody a", has_text=NASTY)
    link.click()
    anchor = link.get_attribute("href")
    expect(page.locator(f"article{anchor}")).to_be_in_viewport()
    expect(page.locator(f"article{anchor} h3")).to_contain_text(NASTY)


def test_sorting(page: Page, found: Evaluation) -> None:
    epe = {record.pair: record.as_row()["epe_all"] for record in found.records}
    failed = [name for name in NAMES if epe[name] is None]
    rising = sorted((name for name in NAMES if epe[name] is not None), key=lambda n: epe[n])
    head = _head(page, "EPE")
    assert head.get_attribute("aria-sort") == "none"
    head.get_by_role("button").click()
    assert _names(page) == rising + failed
    assert head.get_attribute("aria-sort") == "ascending"
    # The second time by the keyboard.
    head.get_by_role("button").press("Enter")
    assert _names(page) == rising[::-1] + failed
    assert head.get_attribute("aria-sort") == "descending"
    _head(page, "pair").get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "none"
    assert _names(page) != rising[::-1] + failed
    assert page.locator('#table [aria-sort="ascending"]').count() == 1
    _head(page, "failed").get_by_role("button").click()
    assert _names(page)[0] == failed[0]


def test_filter(page: Page) -> None:
    field = page.get_by_label("Filter pairs by name")
    field.fill(" FINAL/ ")
    assert _names(page) == [name for name in NAMES if name.startswith("final/")]
    expect(page.locator("#count")).to_have_text("2 of 5 pairs")
    field.fill("nowhere")
    assert _names(page) == []
    field.fill("")
    assert _names(page) == list(NAMES)


def test_groups_of_columns(page: Page) -> None:
    def shown() -> set[str]:
        heads = page.locator("#table thead th").evaluate_all(
            "all => all.filter(e => e.offsetWidth).map(e => e.className.split(' ')[0].slice(2))"
        )
        cells = page.locator("#table tbody tr").first.locator("th, td")
        widths = cells.evaluate_all("all => all.filter(e => e.offsetWidth).length")
        assert widths == len(heads)
        return set(heads)

    assert shown() == {"pair", "errors", "occlusion", "cost"}
    page.get_by_role("checkbox", name="Outliers").check()
    page.get_by_role("checkbox", name="Occlusion").uncheck()
    assert shown() == {"pair", "errors", "outliers", "cost"}
    page.get_by_role("checkbox", name="Errors").press("Space")
    assert shown() == {"pair", "outliers", "cost"}


def test_zoom(page: Page) -> None:
    viewer = page.locator("#viewer")
    expect(viewer).to_be_hidden()
    small = page.locator(".zoom").first
    small.click()
    expect(viewer).to_be_visible()
    expect(viewer).to_contain_text("First frame of ")
    large = viewer.locator("img")
    assert large.get_attribute("src") == small.locator("img").get_attribute("src")
    box = large.bounding_box()
    assert box is not None
    assert box["width"] > 1000
    page.keyboard.press("ArrowRight")
    expect(viewer).to_contain_text("True flow of ")
    expect(viewer).to_contain_text("rim:")
    viewer.get_by_label("Previous picture").click()
    page.keyboard.press("ArrowLeft")
    # From the first to the last.
    last = page.locator(".zoom img").last.get_attribute("src")
    assert large.get_attribute("src") == last
    page.keyboard.press("Escape")
    expect(viewer).to_be_hidden()
    small.press("Enter")
    large.click()
    expect(viewer).to_be_hidden()


def test_charts(page: Page) -> None:
    # The last one lies above all others.
    dot = page.locator("circle[data-pair].s0").last
    dot.hover()
    tip = page.locator("#tip")
    expect(tip).to_be_visible()
    expect(tip).to_contain_text(dot.get_attribute("data-tip") or "nothing")
    dot.click()
    assert _names(page) == [dot.get_attribute("data-pair")]
    expect(page.locator("#pairs")).to_be_in_viewport()


def test_settings_are_folded(page: Page) -> None:
    expect(page.locator("pre")).to_be_hidden()
    page.get_by_text("All settings").click()
    expect(page.locator("pre")).to_contain_text('"dataset": "scenes"')


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_narrow_and_dark(browser: Browser, report: Path, scheme: Any) -> None:
    with browser.new_context(
        viewport={"width": 400, "height": 800}, color_scheme=scheme
    ) as context:
        page = opened(context, report.as_uri())
        # Only the tables are wider, and they scroll by themselves.
        assert page.evaluate("document.documentElement.scrollWidth") == 400
        assert is_light(page) == (scheme == "light")
        assert troubles(page) == []


def test_many_pairs(browser: Browser, found: Evaluation, tmp_path: Path) -> None:
    def named(number: int) -> PairRecord:
        return replace(found.records[0], pair=f"frame_{number:04}", seconds=number % 7 + 0.5)

    records = tuple(named(number) for number in range(MANY))
    method: Any = Stub()
    path = tmp_path / "many.html"
    write_report(path, replace(found, records=records), Pairs(), method, pictures=0)
    with browser.new_context() as context:
        page = opened(context, path.as_uri())
        rows = page.locator("#table tbody tr")
        expect(rows).to_have_count(MANY)
        _head(page, "seconds").get_by_role("button").dblclick()
        expect(rows).to_have_count(MANY)
        numbers = [int(name.removeprefix("frame_")) for name in _names(page)]
        assert numbers == sorted(range(MANY), key=lambda number: (-(number % 7), number))
        page.get_by_label("Filter pairs by name").fill("1040")
        expect(page.locator("#count")).to_have_text(f"1 of {MANY} pairs")
        assert troubles(page) == []

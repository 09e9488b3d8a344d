"""The whole story in a real browser, against a real ``hamflow serve``."""

from __future__ import annotations

import base64
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect

import hamflow
from _browser import mark, opened, screenshot, troubles, wait
from hamflow.datasets import SyntheticScene, demo_scene
from hamflow.flow import endpoint_error
from hamflow.pipeline.explain import Explanation
from hamflow.result import FlowResult

HEIGHT, WIDTH = 160, 256
REFUSED = re.compile(r"Failed to load resource: the server responded with a status of 4\d\d.*")


@pytest.fixture(scope="module")
def scene() -> SyntheticScene:
    return demo_scene(HEIGHT, WIDTH)


@pytest.fixture(scope="module")
def estimated(scene: SyntheticScene) -> tuple[FlowResult, Explanation]:
    return hamflow.Estimator("fast").explained(scene.image0, scene.image1)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory, scene: SyntheticScene) -> Path:
    folder = tmp_path_factory.mktemp("files")
    hamflow.write_image(folder / "one.png", scene.image0)
    hamflow.write_image(folder / "two.png", scene.image1)
    hamflow.write_flow(folder / "true.flo", scene.flow)
    hamflow.write_image(folder / "small.png", scene.image0[:100])
    (folder / "text.png").write_text("This is not an image.")
    # The camera moves on for three frames, then another scene begins.
    other = demo_scene(HEIGHT, WIDTH, seed=7).image0[::-1, ::-1].copy()
    for number in range(3):
        frame = np.roll(scene.image0, (number, 3 * number), axis=(0, 1))
        hamflow.write_image(folder / f"film{number}.png", frame)
    hamflow.write_image(folder / "film3.png", 255 - other)
    return folder


def serve(*words: str | Path) -> tuple[subprocess.Popen[str], str]:
    """Start the command; return its process and the address that it prints."""
    line = [sys.executable, "-m", "hamflow", "serve", *map(str, words), "--no-browser"]
    process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    first = process.stdout.readline()
    found = re.search(r"http://127\.0\.0\.1:\d+/", first)
    assert found is not None, first
    return process, found[0]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    process, address = serve()
    yield address
    process.terminate()
    assert process.stdout is not None
    with process.stdout as printed:
        said = printed.read()
    process.wait(20)
    assert "Traceback" not in said


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    """A visitor of its own: a new context has no cookies."""
    with browser.new_context(viewport={"width": 1100, "height": 700}) as context:
        page = opened(context, address)
        yield page
        assert [said for said in troubles(page) if not REFUSED.fullmatch(said)] == []


def upload(page: Page, files: Path, *names: str) -> None:
    count = page.evaluate("hamflow.app.sources.length")
    page.set_input_files("#files", [files / name for name in names])
    wait(page, f"hamflow.app.sources.length === {count + 1}")


def run(page: Page, preset: str) -> None:
    page.locator("#preset").select_option(preset)
    page.locator("#start").click()


def done(page: Page, label: str) -> None:
    """Wait until a run has its first result, and it is drawn."""
    wait(page, f"hamflow.app.runs.some((run) => run.label === {label!r} && run.results.size)")
    wait(page, "hamflow.app.panes[0].last && !hamflow.app.data.loading")


WATCH = """() => {
  globalThis.states = [];
  const jobs = document.getElementById("jobs");
  new MutationObserver(() => {
    for (const job of jobs.querySelectorAll(".job")) {
      const words = job.querySelector(".state").textContent;
      states.push([job.dataset.state, words, job.querySelectorAll("svg circle").length]);
    }
  }).observe(jobs, { subtree: true, childList: true, attributes: true, characterData: true });
}"""


def test_the_story(
    page: Page,
    files: Path,
    scene: SyntheticScene,
    estimated: tuple[FlowResult, Explanation],
    tmp_path: Path,
) -> None:
    # Open: nothing is there yet.
    expect(page.locator("#empty")).to_contain_text("Drop two images")
    expect(page.locator("#start")).to_be_disabled()
    screenshot(page, "server-empty")
    # Upload, with the true flow.
    upload(page, files, "one.png", "two.png", "true.flo")
    expect(page.locator("#empty")).to_be_hidden()
    expect(page.locator("#layers button")).to_have_text(["Frame 1", "Frame 2"])
    # Run, and see it progress.
    page.evaluate(WATCH)
    run(page, "fast")
    done(page, "fast")
    states = page.evaluate("states")
    assert {"running", "done"} <= {state for state, *_ in states}
    assert any("matching" in words for _, words, _ in states)
    assert any(dots >= 2 for *_, dots in states)  # bound and energy, while it ran
    expect(page.locator("#summary")).to_contain_text("Duality gap")
    epe = float(endpoint_error(estimated[0].flow, scene.flow).mean())
    expect(page.locator("#summary")).to_contain_text(f"{epe:.2f} px")

    read_layers(page, estimated[0])
    understand(page, *estimated)
    compare(page)
    save_files(page, tmp_path, *estimated)
    # A reload finds everything again.
    page.reload()
    wait(page, "hamflow.app.runs?.length === 2")


def understand(page: Page, result: FlowResult, explanation: Explanation) -> None:
    """Read what explains pixels: the same numbers as Python's, to the last bit."""
    for x, y in ((0, 0), (255, 159), (60, 40), (121, 77)):
        told = mark(page, x, y)
        u, v = (float(value) for value in result.flow[y, x])
        wanted = explanation.pixel(x, y, around=(u, v)).as_dict()
        for name in ("cell", "scale", "bits", "u", "v", "hamming"):
            assert told[name] == wanted[name], name
        assert told["flow"] == [u, v]
    # The chart shows them.
    marked = page.locator("#facts .chart .reading").first
    curve = explanation.pixel(121, 77).u
    assert curve.crf is not None
    wta, crf = int(curve.labels[curve.wta]), int(curve.labels[curve.crf])
    expect(marked).to_contain_text(f"WTA {wta} px ({int(curve.cost[curve.wta])})".replace("-", "−"))
    expect(marked).to_contain_text(f"CRF {crf} px".replace("-", "−"))
    screenshot(page, "server-pixel")
    # By the mouse as well.
    page.keyboard.press("Escape")
    page.mouse.move(400, 420)
    wait(page, "hamflow.inspector.answer")
    assert page.evaluate("hamflow.inspector.answer.x === hamflow.app.pixel.x")


def read_layers(page: Page, result: FlowResult) -> None:
    """Read values of layers, which arrive as they are."""
    read: Any = page.evaluate(
        """async () => {
          const { app, store } = hamflow;
          const found = {};
          for (const name of ["flow", "backward", "confidence", "occlusion"]) {
            const layer = await store.layer(app.result, name);
            found[name] = [[60, 40], [200, 120], [255, 159]].map(
              ([x, y]) => Array.from({ length: layer.channels }, (_, c) => layer.at(x, y, c)));
          }
          return found;
        }"""
    )
    for name, values in read.items():
        array = getattr(result, name)
        wanted = np.array(
            [np.atleast_1d(array[y, x]) for x, y in ((60, 40), (200, 120), (255, 159))]
        )
        scale = {"confidence": 255, "occlusion": None}.get(name, 1)
        if scale is None:
            assert (np.array(values) > 0).tolist() == wanted.astype(bool).tolist()
        else:
            assert np.array(values) == pytest.approx(
                wanted * scale, rel=1e-3, abs=0.51 * (scale > 1) + 1e-3
            )


def compare(page: Page) -> None:
    """Compare with another preset."""
    run(page, "realtime")
    done(page, "realtime")
    page.locator("#stage").focus()
    page.keyboard.press("c")
    chosen = page.locator(".run-choice:visible")
    expect(chosen).to_have_count(2)
    labels = chosen.evaluate_all("all => all.map((each) => each.selectedOptions[0].text)")
    assert sorted(labels) == ["fast", "realtime"]
    mark(page, 60, 40)
    screenshot(page, "server-compare")
    page.evaluate(
        """() => {
          const { app } = hamflow;
          app.active = app.panes.findIndex((pane) => pane.run.label === "fast");
          app.tell("panes");
        }"""
    )


def save_files(page: Page, folder: Path, result: FlowResult, explanation: Explanation) -> None:
    """Save exactly the flow, the whole result, and this view as a page."""
    saved = {}
    for name in ("Flow (.flo)", "Whole result (.npz)", "This view as a page"):
        page.get_by_text("Download").click()
        with page.expect_download() as download:
            page.get_by_role("button", name=name).click()
        saved[name] = folder / download.value.suggested_filename
        download.value.save_as(saved[name])
    assert (hamflow.read_flow(saved["Flow (.flo)"]) == result.flow).all()
    loaded = FlowResult.load(saved["Whole result (.npz)"])
    assert (loaded.confidence == result.confidence).all()
    browser = page.context.browser
    assert browser is not None
    with browser.new_context(offline=True) as context:
        alone = opened(context, saved["This view as a page"].as_uri())
        wait(alone, "hamflow.inspector?.answer")
        view = alone.evaluate("[hamflow.app.mode, hamflow.app.pixel]")
        assert view == ["side", {"x": 60, "y": 40}]
        told = alone.evaluate("hamflow.inspector.answer")
        assert told["u"]["cost"] == explanation.pixel(60, 40).u.cost.tolist()
        wait(alone, "hamflow.app.panes[1].last")
        screenshot(alone, "server-page")
        assert troubles(alone) == []


def test_drop_and_remove(page: Page, files: Path) -> None:
    parts = [
        (name, base64.b64encode((files / name).read_bytes()).decode())
        for name in ("two.png", "one.png")
    ]
    page.evaluate(
        """(parts) => {
          const carried = new DataTransfer();
          for (const [name, coded] of parts) {
            const bytes = Uint8Array.from(atob(coded), (c) => c.charCodeAt(0));
            carried.items.add(new File([bytes], name, { type: "image/png" }));
          }
          const how = { dataTransfer: carried, bubbles: true, cancelable: true };
          const event = (kind) => new DragEvent(kind, how);
          document.body.dispatchEvent(event("dragover"));
          globalThis.invited = !document.getElementById("drop").hidden;
          document.body.dispatchEvent(event("drop"));
        }""",
        parts,
    )
    assert page.evaluate("invited")
    wait(page, "hamflow.app.sources.length === 1")
    # In the order of their names, whatever the order in which they were taken.
    assert page.evaluate("hamflow.app.source.names") == ["one.png", "two.png"]
    expect(page.locator("#drop")).to_be_hidden()
    page.locator("#remove").click()
    expect(page.locator("#empty")).to_be_visible()


def test_cancel(page: Page, files: Path) -> None:
    upload(page, files, "one.png", "two.png")
    page.locator("#window").fill("256")
    run(page, "paper")
    job = page.locator(".job")
    expect(job).to_have_attribute("data-state", "running")
    screenshot(page, "server-running")
    job.get_by_role("button", name="Cancel").click()
    expect(job).to_have_attribute("data-state", "canceled")
    assert page.evaluate("hamflow.app.runs.length") == 0
    # The next one is not held up.
    page.locator("#window").fill("auto")
    run(page, "realtime")
    done(page, "realtime")


def test_errors_are_sentences(page: Page, files: Path) -> None:
    messages = page.locator("#messages")

    def says(text: str) -> None:
        expect(messages).to_contain_text(text)
        messages.get_by_label("Dismiss").first.click()
        expect(messages.locator("p")).to_have_count(0)

    page.set_input_files("#files", [files / "text.png", files / "one.png"])
    says("text.png")
    page.set_input_files("#files", [files / "one.png", files / "small.png"])
    says("small.png")
    assert page.evaluate("hamflow.app.sources") == []
    upload(page, files, "one.png", "two.png")
    for window, sentence in (("wide", "The window must be auto or"), ("7", "even number")):
        page.locator("#window").fill(window)
        run(page, "fast")
        says(sentence)
    screenshot(page, "server-errors")


def test_film(page: Page, files: Path) -> None:
    upload(page, files, *(f"film{number}.png" for number in range(4)))
    timeline = page.locator("#timeline")
    expect(timeline).to_contain_text("1–2 of 4")
    page.locator("#which").select_option("all")
    run(page, "realtime")
    wait(page, "hamflow.app.runs[0]?.results.size === 3")
    wait(page, "hamflow.app.runs[0].cuts.has(2)")
    mark(page, 100, 50)
    wait(page, "hamflow.app.track?.length >= 3")
    points = {point["index"]: point for point in page.evaluate("hamflow.app.track")}
    for index in (1, 2):
        wanted = [100 + 3 * index, 50 + index]
        assert [points[index]["x"], points[index]["y"]] == pytest.approx(wanted, abs=0.6)
    # The point is followed through the frames.
    page.keyboard.press(".")
    assert page.evaluate("hamflow.app.pixel") == {"x": 103, "y": 51}
    page.keyboard.press(".")
    expect(timeline).to_contain_text("3–4 of 4 · cut")
    expect(page.locator("#summary")).to_contain_text("different scenes")
    screenshot(page, "server-film")


def test_visitors_do_not_mix(page: Page, browser: Browser, address: str, files: Path) -> None:
    upload(page, files, "one.png", "two.png")
    with browser.new_context() as context:
        other = opened(context, address)
        expect(other.locator("#empty")).to_be_visible()
        assert other.evaluate("hamflow.app.sources") == []


def test_a_server_that_is_gone(browser: Browser, files: Path) -> None:
    process, address = serve(files / "one.png", files / "two.png")
    with browser.new_context() as context:
        page = opened(context, address)
        wait(page, "hamflow.app.panes[0].last")
        process.terminate()
        assert process.stdout is not None
        with process.stdout as printed:
            printed.read()
        process.wait(20)
        run(page, "fast")
        expect(page.locator("#messages")).to_contain_text("The server does not answer")

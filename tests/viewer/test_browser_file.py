"""The page of `hamflow view` in a real browser, opened as a file, without any network."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Browser, Page, expect

import hamflow
from _browser import is_light, mark, opened, screenshot, troubles, wait
from hamflow.datasets import SyntheticScene, demo_scene
from hamflow.flow import endpoint_error
from hamflow.pipeline.explain import Explanation
from hamflow.result import FlowResult
from hamflow.viewer.standalone import Shown, ShownResult, write_page
from hamflow.visualize import error_map, flow_to_color, overlay, typical_length

HEIGHT, WIDTH = 160, 256
Estimates = dict[str, tuple[FlowResult, Explanation]]


@pytest.fixture(scope="module")
def scene() -> SyntheticScene:
    return demo_scene(HEIGHT, WIDTH)


@pytest.fixture(scope="module")
def estimates(scene: SyntheticScene) -> Estimates:
    return {
        preset: hamflow.Estimator(preset).explained(scene.image0, scene.image1)
        for preset in ("fast", "realtime")
    }


@pytest.fixture(scope="module")
def file(
    tmp_path_factory: pytest.TempPathFactory, scene: SyntheticScene, estimates: Estimates
) -> Path:
    path = tmp_path_factory.mktemp("page") / "page.html"
    results = [
        ShownResult(preset, result, truth=scene.flow, explanation=why)
        for preset, (result, why) in estimates.items()
    ]
    backward = ShownResult("fast", estimates["fast"][0], 1)  # any flow will do
    write_page(
        path,
        [
            Shown("a </script> pair", [scene.image0, scene.image1], results),
            Shown("a film", [scene.image0, scene.image1, scene.image0], [results[0], backward]),
        ],
    )
    return path


@pytest.fixture(scope="module")
def open_page(browser: Browser, file: Path) -> Iterator[Page]:
    with browser.new_context(
        viewport={"width": 1100, "height": 700}, offline=True, accept_downloads=True
    ) as context:
        yield opened(context, file.as_uri())


@pytest.fixture
def page(open_page: Page) -> Iterator[Page]:
    """The page as it was opened; opening it again for each test would take long."""
    page = open_page
    page.evaluate(
        """() => {
          const { app } = hamflow;
          app.setMode("one");
          app.full = null;
          ["flow", "frame1", "occlusion", "confidence"].forEach((layer, k) => {
            app.panes[k].layer = layer;
          });
          app.show(app.sources[0]);
          document.activeElement.blur();
        }"""
    )
    page.mouse.move(5, 5)
    wait(page, "hamflow.app.panes[0].last && !hamflow.app.data.loading")
    yield page
    assert troubles(page) == []


def seen(page: Page, pixels: list[tuple[int, int]], pane: int = 0) -> Any:
    """The colors on the screen at the centers of some pixels of the image."""
    places = page.evaluate(
        """async ([pixels, k]) => {
          const { stage, app } = hamflow;
          // What is drawn asks for what it needs, so until nothing is being loaded.
          do {
            await new Promise((done) => {
              app.addEventListener("drawn", done, { once: true });
              stage.redraw();
            });
          } while (app.data.loading);
          // What was drawn is on the screen with the next frame of the browser, or the one after.
          const frame = () => new Promise((done) => requestAnimationFrame(done));
          await frame();
          await frame();
          const area = stage.stage.getBoundingClientRect();
          const { box } = stage.boxes()[k];
          return pixels.map(([x, y]) => {
            const [px, py] = app.view.toPane(x + 0.5, y + 0.5, box);
            return [area.left + px, area.top + py];
          });
        }""",
        [pixels, pane],
    )
    picture = np.asarray(Image.open(screenshot(page, "seen")).convert("RGB"))
    return [picture[int(y), int(x)].tolist() for x, y in places]


def test_it_opens(page: Page) -> None:
    expect(page).to_have_title("a </script> pair, a film – Hamflow")
    expect(page.locator("#source")).to_have_value("s0")
    chips = page.locator("#layers button").all_text_contents()
    assert chips == [
        *("Frame 1", "Frame 2", "Warped", "Flow", "Overlay", "Arrows", "Occlusion"),
        *("Confidence", "Error", "Truth", "Backward"),
    ]
    expect(page.locator("#open")).to_be_hidden()  # nothing can be computed here
    expect(page.locator("#run")).to_be_hidden()
    expect(page.locator("#summary")).to_contain_text("Duality gap")
    screenshot(page, "file-open")


def test_layers_are_those_of_python(
    page: Page, scene: SyntheticScene, estimates: Estimates
) -> None:
    result = estimates["fast"][0]
    full = typical_length(result.flow)
    wanted = {
        "Frame 1": scene.image0,
        "Frame 2": scene.image1,
        "Warped": result.warp(scene.image1),
        "Flow": flow_to_color(result.flow, full),
        "Overlay": overlay(result.flow, scene.image0, max_flow=full),
        "Error": error_map(result.flow, scene.flow, legend=False),
        "Truth": flow_to_color(scene.flow, full),
        "Backward": flow_to_color(result.backward, full),  # type: ignore[arg-type]
    }
    generator = np.random.default_rng(0)
    pixels = [
        (int(x), int(y))
        for x, y in zip(
            generator.integers(30, WIDTH - 30, 25), generator.integers(20, 110, 25), strict=True
        )
    ]
    for name, picture in wanted.items():
        page.get_by_role("radio", name=name, exact=True).click()
        there = np.array(seen(page, pixels), int)
        here = np.array([picture[y, x] for x, y in pixels], int)
        # A flow is rounded to 1/1024 px in the file, and an error may be at a limit of its steps.
        wrong = (abs(there - here) > 3).any(axis=1)
        assert wrong.sum() <= (1 if name == "Error" else 0), name
    for name in ("Arrows", "Occlusion", "Confidence"):
        page.get_by_role("radio", name=name, exact=True).click()
        seen(page, [])
        screenshot(page, f"file-{name.lower()}")


def test_colors_in_every_format_and_in_tiles(page: Page) -> None:
    generator = np.random.default_rng(1)
    flow = generator.normal(0, 9, (48, 64, 2)).astype(np.float32)
    flow[:6, :6] = 0
    flow[5, 7] = np.nan
    flow[20:24] = generator.normal(0, 1, (4, 64, 1)).astype(np.float32) * [1, 0]
    wanted = flow_to_color(flow, 12.5).astype(int)
    for kind, tile in (("float32", 1000), ("float16", 1000), ("float32", 17), ("float16", 16)):
        coded = base64.b64encode(flow.astype(kind).tobytes()).decode()
        drawn = page.evaluate(
            """async ([coded, kind, tile]) => {
              const { Renderer } = await import("hamflow/gl.js");
              const { PixelArray } = await import("hamflow/arrays.js");
              const canvas = document.createElement("canvas");
              [canvas.width, canvas.height] = [64, 48];
              const bytes = Uint8Array.from(atob(coded), (c) => c.charCodeAt(0));
              const array = PixelArray.fromBuffer(bytes.buffer, kind, [48, 64, 2]);
              const renderer = new Renderer(canvas, tile);
              const first = renderer.upload(array);
              const box = { x: 0, y: 0, width: 64, height: 48 };
              renderer.draw({ mode: "flow", first, full: 12.5 }, box, { x: 32, y: 24, scale: 1 });
              const out = new Uint8Array(64 * 48 * 4);
              const { gl } = renderer;
              gl.readPixels(0, 0, 64, 48, gl.RGBA, gl.UNSIGNED_BYTE, out);
              gl.getExtension("WEBGL_lose_context")?.loseContext();
              return { tiles: first.tiles.length, pixels: Array.from(out) };
            }""",
            [coded, kind, tile],
        )
        assert drawn["tiles"] == (1 if tile == 1000 else 12)
        picture = np.array(drawn["pixels"]).reshape(48, 64, 4)[::-1, :, :3]
        if kind == "float32":
            assert abs(picture - wanted).max() <= 1
        else:
            assert abs(picture - wanted).max() <= 3
        assert (picture[5, 7] == 0).all()
        assert (picture[:6, :6] >= 254).all()
    # The rule in JavaScript, which the wheel and the arrows are drawn by.
    script = """async (rows) => {
      const { flowColor, errorColor } = await import("hamflow/colors.js");
      return [rows.map(([u, v]) => flowColor(u, v, 12.5)), rows.map(([u]) => errorColor(u))];
    }"""
    known = np.delete(flow.reshape(-1, 2), 5 * 64 + 7, axis=0)[::7]
    colors, errors = page.evaluate(script, known.tolist())
    assert abs(np.array(colors) - flow_to_color(known[None].astype(np.float64), 12.5)[0]).max() <= 1
    lengths = np.zeros((1, len(known), 2), np.float32)
    lengths[0, :, 0] = known[:, 0]
    there = error_map(np.maximum(lengths, 0), np.zeros_like(lengths), legend=False)[0]
    positive = known[:, 0] >= 0
    assert (np.array(errors)[positive] == there[positive]).all()


@pytest.mark.parametrize("preset", ["fast", "realtime"])
def test_curves_are_those_of_python(page: Page, estimates: Estimates, preset: str) -> None:
    result, explanation = estimates[preset]
    page.evaluate(
        """(label) => {
          const { app } = hamflow;
          app.panes[0].run = app.runs.find((run) => run.label === label);
          app.tell("panes");
        }""",
        preset,
    )
    for x, y in ((0, 0), (255, 159), (60, 40), (121, 77), (200, 3)):
        told = mark(page, x, y)
        u, v = (float(value) for value in result.flow[y, x])
        wanted = explanation.pixel(x, y, around=(u, v)).as_dict()
        for name in ("cell", "scale", "bits", "hamming"):
            assert told[name] == wanted[name], name
        for plane in "uv":
            mine, theirs = told[plane], wanted[plane]
            for name in ("labels", "cost", "prior", "wta", "crf"):
                assert mine[name] == theirs[name], (plane, name)
            assert (mine["slack"] is None) == (theirs["slack"] is None)
            if mine["slack"] is not None:
                spread = max(theirs["slack"]) - min(theirs["slack"])
                assert mine["slack"] == pytest.approx(theirs["slack"], abs=spread / 126 + 1e-3)
        assert told["flow"] == pytest.approx([u, v], abs=1e-3)
        assert told["confidence"] == pytest.approx(result.confidence[y, x], abs=1 / 510 + 1e-6)  # type: ignore[index]
        assert told["occluded"] == bool(result.occlusion[y, x])  # type: ignore[index]
        expect(page.locator("#where")).to_have_text(f"({x}, {y})")


def test_pointing_and_clicking(page: Page, estimates: Estimates, scene: SyntheticScene) -> None:
    stage = page.locator("#stage")
    box = stage.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 300, box["y"] + 330)
    wait(page, "hamflow.inspector.answer")
    hovered = page.evaluate("hamflow.app.pixel")
    assert page.evaluate("hamflow.app.pinned") is False
    x, y = hovered["x"], hovered["y"]
    u, v = estimates["fast"][0].flow[y, x]
    table = page.locator("#facts .numbers")
    expect(table).to_contain_text(f"{u:.2f}, {v:.2f} px".replace("-", "−"))
    error = float(endpoint_error(estimates["fast"][0].flow, scene.flow)[y, x])
    expect(table).to_contain_text(f"error {error:.2f} px")
    page.mouse.click(box["x"] + 300, box["y"] + 330)
    page.mouse.move(box["x"] + 600, box["y"] + 400)
    assert page.evaluate("[hamflow.app.pixel, hamflow.app.pinned]") == [hovered, True]
    expect(page.locator("#facts .curve")).to_have_count(2)
    # Reading the curve at one of its labels.
    curve = page.locator("#facts .curve").first
    curve.hover(position={"x": 120, "y": 40})
    expect(page.locator("#facts .chart .reading").first).to_contain_text("u = ")
    screenshot(page, "file-pixel")
    # In the second frame, the pixel is found by the backward flow.
    page.keyboard.press("2")
    page.keyboard.press("Escape")
    page.mouse.move(box["x"] + 500, box["y"] + 400)
    wait(page, "hamflow.app.pixel")
    found = page.evaluate(
        "hamflow.app.view.toImage(500, 400, hamflow.stage.boxes()[0].box).map(Math.floor)"
    )
    back = estimates["fast"][0].backward
    assert back is not None
    wanted = np.rint(np.array(found) + back[found[1], found[0]])
    marked = page.evaluate("hamflow.app.pixel")
    assert abs(np.array([marked["x"], marked["y"]]) - wanted).max() <= 1


def test_zoom_to_single_pixels(page: Page, estimates: Estimates) -> None:
    result = estimates["fast"][0]
    stage = page.locator("#stage")
    box = stage.bounding_box()
    assert box is not None
    before = page.evaluate("hamflow.app.view.scale")
    place = (400, 400)
    page.mouse.move(*place)
    pane = "hamflow.stage.boxes()[0].box"
    at = f"hamflow.app.view.toImage(400 - {box['x']}, 400 - {box['y']}, {pane})"
    under = page.evaluate(at)
    for _ in range(3):
        page.mouse.wheel(0, -1000)
    wait(page, "hamflow.app.view.scale === 128")
    after = page.evaluate(at)
    assert after == pytest.approx(under, abs=1e-6)  # the point under the mouse has stayed
    assert before < 10
    page.wait_for_timeout(100)
    picture = np.asarray(Image.open(screenshot(page, "file-pixels")).convert("RGB")).astype(int)
    x, y = int(under[0]), int(under[1])
    color = flow_to_color(result.flow, typical_length(result.flow))[y, x].astype(int)
    [px, py] = page.evaluate(
        "([x, y]) => hamflow.app.view.toPane(x, y, hamflow.stage.boxes()[0].box)", [x, y]
    )
    left, top = int(box["x"] + px), int(box["y"] + py)
    # All over the pixel, apart from the grid and the numbers in the middle.
    for dx, dy in ((10, 10), (118, 10), (10, 118), (118, 118)):
        assert abs(picture[top + dy, left + dx] - color).max() <= 3
    page.keyboard.press("f")
    assert page.evaluate("hamflow.app.view.scale") == before
    # Drag to pan.
    page.keyboard.press("+")
    held = page.evaluate(at)
    page.mouse.down()
    page.mouse.move(place[0] + 60, place[1] + 25)
    page.mouse.up()
    moved = page.evaluate(at.replace("(400 ", "(460 ").replace(", 400 ", ", 425 "))
    assert moved == pytest.approx(held, abs=1e-6)  # what was taken is where the mouse is
    assert page.evaluate("hamflow.app.pinned") is False


def test_comparing(page: Page) -> None:
    page.keyboard.press("c")
    heads = page.locator(".head:visible")
    expect(heads).to_have_count(2)
    expect(heads.nth(0).locator(".run-choice")).to_have_value("s0 fast")
    expect(heads.nth(1).locator(".run-choice")).to_have_value("s0 realtime")
    mark(page, 60, 40)
    expect(page.locator("#facts .others")).to_contain_text("realtime")
    screenshot(page, "file-side")
    # The panes look at the same place.
    page.keyboard.press("+")
    pixels = [(120, 80)]
    page.wait_for_timeout(100)
    page.evaluate("hamflow.app.panes[1].run = hamflow.app.panes[0].run; hamflow.app.setPixel(null)")
    assert seen(page, pixels, 0) == seen(page, pixels, 1)
    page.keyboard.press("f")
    page.keyboard.press("s")
    divider = page.locator("#divider")
    expect(divider).to_be_visible()
    heads.nth(1).locator("select").first.select_option("frame1")
    screenshot(page, "file-swipe")
    box = divider.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 8, 450)
    page.mouse.down()
    page.mouse.move(box["x"] - 192, 450)
    page.mouse.up()
    wide = page.evaluate("hamflow.stage.stage.clientWidth")
    assert page.evaluate("hamflow.app.swipe") == pytest.approx(0.5 - 200 / wide, abs=0.03)
    divider.press("ArrowRight")
    page.locator("#stage").focus()
    page.keyboard.press("b")
    wait(page, "hamflow.app.blink === 1")
    wait(page, "hamflow.app.blink === 0")
    page.keyboard.press("g")
    expect(heads).to_have_count(4)
    screenshot(page, "file-four")
    page.keyboard.press("g")
    expect(page.get_by_role("radio", name="One")).to_have_attribute("aria-checked", "true")


def test_legend(page: Page, estimates: Estimates) -> None:
    flow = estimates["fast"][0].flow
    field = page.locator("#full")
    assert float(field.input_value()) == pytest.approx(typical_length(flow), rel=0.01)
    field.fill("3")
    assert seen(page, [(60, 40)]) == [flow_to_color(flow, 3.0)[40, 60].tolist()]
    field.fill("0")  # no length: nothing changes
    assert page.evaluate("hamflow.app.fullColor") == 3
    page.locator("#full-slider").fill("4")
    assert page.evaluate("hamflow.app.fullColor") == 16
    page.locator("#full-auto").click()
    assert page.evaluate("hamflow.app.full") is None
    page.get_by_role("radio", name="Error").click()
    expect(page.locator("#scale-strip .swatch")).to_have_count(10)


def test_keys_and_sheet(page: Page) -> None:
    page.locator("#stage").focus()
    page.keyboard.press("7")
    expect(page.get_by_role("radio", name="Occlusion")).to_have_attribute("aria-checked", "true")
    page.keyboard.press("ArrowRight")  # first in the middle, then one on
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Shift+ArrowDown")
    assert page.evaluate("hamflow.app.pixel") == {"x": WIDTH // 2 + 1, "y": HEIGHT // 2 + 10}
    page.keyboard.press("?")
    sheet = page.get_by_role("dialog")
    expect(sheet).to_contain_text("down to single pixels")
    expect(sheet).not_to_contain_text("open files")
    screenshot(page, "file-keys")
    page.keyboard.press("Escape")
    expect(sheet).to_be_hidden()
    page.keyboard.press("Escape")
    assert page.evaluate("hamflow.app.pixel") is None


def test_download(page: Page, tmp_path: Path, estimates: Estimates) -> None:
    def save(button: str, name: str) -> Any:
        page.get_by_text("Download").click()
        with page.expect_download() as found:
            page.get_by_role("button", name=button).click()
        found.value.save_as(tmp_path / name)
        return found.value

    save("Flow (.flo", "saved.flo")
    saved = hamflow.read_flow(tmp_path / "saved.flo")
    assert abs(saved - estimates["fast"][0].flow).max() <= 2**-10
    save("Colors (.png)", "colors.png")
    flow = estimates["fast"][0].flow
    wanted = flow_to_color(flow, typical_length(flow)).astype(int)
    # Flow that is rounded to 1/1024 px may be on the other side of a step of color.
    assert abs(hamflow.read_image(tmp_path / "colors.png") - wanted).max() <= 4
    assert save("This view (.png)", "view.png").suggested_filename.endswith("-view.png")
    with Image.open(tmp_path / "view.png") as picture:
        assert picture.width > 600
        # The picture, and not only what is drawn over it.
        assert len(picture.convert("RGB").getcolors(1 << 20) or []) > 1000


def test_film(page: Page, estimates: Estimates) -> None:
    page.locator("#source").select_option("s1")
    timeline = page.locator("#timeline")
    expect(timeline).to_contain_text("1–2 of 3")
    flow, hidden = estimates["fast"][0].flow, estimates["fast"][0].occlusion
    assert hidden is not None
    # A point in the sky, which nothing hides.
    x, y = 150.0, 20.0
    assert not hidden[15:25, 140:160].any()
    mark(page, int(x), int(y))
    wait(page, "hamflow.app.track?.length === 3")
    track = page.evaluate("hamflow.app.track")
    for point in track[1:]:
        u, v = flow[round(y), round(x)]
        x, y = x + float(u), y + float(v)
        assert [point["x"], point["y"]] == pytest.approx([x, y], abs=0.01)
    page.keyboard.press(".")
    expect(timeline).to_contain_text("2–3 of 3")
    screenshot(page, "file-film")
    bar = timeline.locator("canvas")
    bar.click(position={"x": 20, "y": 20})
    expect(timeline).to_contain_text("1–2 of 3")


def test_what_a_page_lacks_is_said(
    browser: Browser, scene: SyntheticScene, estimates: Estimates, tmp_path: Path
) -> None:
    result, explanation = estimates["fast"]
    shown = Shown("a", [scene.image0], [ShownResult("a", result, explanation=explanation)])
    write_page(tmp_path / "whole.html", [shown])
    size = (tmp_path / "whole.html").stat().st_size
    notes = write_page(tmp_path / "less.html", [shown], limit=size - 500_000)
    alone = Shown("b", [], [ShownResult("b", result.flow)])
    write_page(tmp_path / "alone.html", [alone])
    with browser.new_context(offline=True) as context:
        page = opened(context, (tmp_path / "less.html").as_uri())
        wait(page, "globalThis.hamflow?.app?.panes[0].last")
        expect(page.locator("#notes")).to_contain_text(notes[0])
        told = mark(page, 60, 40)
        assert told["u"]["cost"] == explanation.pixel(60, 40).u.cost.tolist()
        assert told["u"]["slack"] is None
        assert troubles(page) == []
        # A flow without any image.
        page = opened(context, (tmp_path / "alone.html").as_uri())
        wait(page, "globalThis.hamflow?.app?.panes[0].last")
        expect(page.locator("#layers button")).to_have_text(["Flow", "Arrows"])
        mark(page, 60, 40)
        expect(page.locator("#facts")).to_contain_text("there are no curves")
        assert troubles(page) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_narrow_light_and_dark(browser: Browser, file: Path, scheme: Any) -> None:
    with browser.new_context(
        viewport={"width": 420, "height": 800}, color_scheme=scheme, offline=True
    ) as context:
        page = opened(context, file.as_uri())
        wait(page, "hamflow.app.panes[0].last")
        mark(page, 60, 40)
        assert page.evaluate("document.documentElement.scrollWidth") == 420
        assert is_light(page) == (scheme == "light")
        screenshot(page, f"file-narrow-{scheme}", full_page=True)
        page.locator("#theme").click()
        assert is_light(page) == (scheme == "dark")
        assert troubles(page) == []

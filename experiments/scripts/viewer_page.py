"""What one sees of the local page in a browser, and how long that takes.

    python -m experiments.scripts.viewer_page PICTURES [--height 436] [--width 1024]
        [--preset balanced] [--pixels 100]

opens ``hamflow serve`` with a rendered pair in the system's Chromium, without a graphics card. It
prints the milliseconds until something is painted and until the first frame is there, those from
pointing at a pixel to its curves, those to draw the flow anew, and how many pictures per second
one sees while panning. It leaves two pictures of the page in the folder PICTURES.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path

import numpy as np
import tyro
from playwright.sync_api import Page, sync_playwright

import hamflow
from experiments.scripts.viewer import first, served
from hamflow.datasets import demo_scene

_ARGS = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
_HOVER = """async (places) => {
  const { app, inspector } = hamflow;
  const found = [];
  for (const [x, y] of places) {
    const start = performance.now();
    const told = new Promise((done) => app.addEventListener("explained", done, { once: true }));
    app.setPixel({ x, y }, false);
    await told;
    found.push(performance.now() - start);
  }
  return found;
}"""
_PAN = """async () => {
  const { app } = hamflow;
  const end = performance.now() + 2000;
  let count = 0;
  for (; performance.now() < end; count++) {
    app.view.pan(3, 1);
    app.tell("view");
    await new Promise(requestAnimationFrame);
  }
  app.tell("fit");
  return count / 2;
}"""
# A pixel whose costs alone would mislead, while the flow is sure and follows the joint model.
_PICK = """async () => {
  const { app, store } = hamflow;
  const { width, height } = app.source;
  let found = { x: width >> 1, y: height >> 1, gain: 0 };
  for (let k = 0; k < 150; k++) {
    const [x, y] = [Math.floor(width * ((k * 0.618) % 1)), Math.floor(height * ((k + 0.5) / 150))];
    const { u, v, flow, confidence } = await store.pixel(app.result, x, y);
    const off = Math.hypot(u.labels[u.crf] - flow[0], v.labels[v.crf] - flow[1]);
    const wrong = Math.min(...[u, v].map((c) => Math.abs(c.labels[c.wta] - c.labels[c.crf])));
    const gain = off < 2 && confidence > 0.7 ? wrong : 0;
    if (gain > found.gain) found = { x, y, gain };
  }
  return { x: found.x, y: found.y };
}"""
_DRAW = """() => {
  const { stage, renderer: { gl } } = hamflow;
  const wait = () => gl.readPixels(0, 0, 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, new Uint8Array(4));
  stage.draw();
  wait();
  const start = performance.now();
  for (let k = 0; k < 10; k++) stage.draw();
  wait();
  return (performance.now() - start) / 10;
}"""


def wait(page: Page, condition: str) -> None:
    """Wait until a condition in JavaScript holds, for five minutes at most."""
    end = time.monotonic() + 300
    while not page.evaluate(condition):
        if time.monotonic() > end:
            raise TimeoutError(condition)
        page.wait_for_timeout(20)


def measure(page: Page, address: str, pixels: int, preset: str) -> None:
    """Open the page, estimate, and print how long one waits."""
    page.goto(address)
    wait(page, "Boolean(globalThis.hamflow?.app?.panes[0].last)")
    painted = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    loaded = page.evaluate("performance.now()")
    print(f"first paint: {painted:.0f} ms; the frame is there within {loaded:.0f} ms")
    page.locator("#preset").select_option(preset)
    page.locator("#start").click()
    wait(page, "hamflow.app.runs.length > 0 && !hamflow.app.data.loading")
    page.wait_for_timeout(2000)  # until the server has prepared for the next estimate
    size = page.evaluate("[hamflow.app.source.width, hamflow.app.source.height]")
    places = np.random.default_rng(0).integers(0, size, (pixels, 2)).tolist()
    found = page.evaluate(_HOVER, places)
    print(
        f"from a pixel to its curves: median {np.median(found):.1f} ms, 95 % within "
        f"{np.percentile(found, 95):.1f} ms"
    )
    print(f"drawing the flow: {page.evaluate(_DRAW):.0f} ms")
    print(f"panning: {page.evaluate(_PAN):.0f} pictures per second")


def take_pictures(page: Page, folder: Path) -> None:
    """Leave pictures of a pixel that is explained, and of a comparison."""
    stage = page.locator("#stage")
    page.evaluate("(pixel) => hamflow.app.setPixel(pixel, true)", page.evaluate(_PICK))
    stage.focus()
    for keys, name in (("", "viewer.png"), ("g", "viewer-four.png")):
        for key in keys:
            page.keyboard.press(key)
        if name != "viewer.png":
            page.locator("#theme").click()
        page.wait_for_timeout(500)
        wait(page, "!hamflow.app.data.loading")
        page.wait_for_timeout(500)
        page.mouse.move(0, 0)
        page.screenshot(path=folder / name)
        print(f"Wrote {folder / name}.")


def main(
    pictures: tyro.conf.Positional[Path],
    *,
    height: int = 436,
    width: int = 1024,
    preset: str = "balanced",
    pixels: int = 100,
) -> None:
    """Measure, print, and take pictures."""
    scene = demo_scene(height, width)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        paths = [Path(folder, "frame1.png"), Path(folder, "frame2.png")]
        for path, image in zip(paths, (scene.image0, scene.image1), strict=True):
            hamflow.write_image(path, image)
        program = shutil.which("chromium") or shutil.which("google-chrome")
        browser = playwright.chromium.launch(executable_path=program, args=_ARGS)
        page = browser.new_page(viewport={"width": 1400, "height": 860})
        with served(paths) as (address, _):
            first(address, "/")
            measure(page, f"{address}/", pixels, preset)
            take_pictures(page, pictures)
        browser.close()


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)

"""A real browser for the tests of the viewer: the system's Chromium, with WebGL in software."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from _paths import ROOT

SCREENSHOTS = ROOT / "out" / "screenshots"
"""Where the tests leave pictures of what they saw, to be looked at."""


# Not for the whole session: playwright's event loop would be in the way of other tests.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    names = ("chromium", "chromium-browser", "google-chrome")
    path = next(filter(None, map(shutil.which, names)), None)
    if path is None:
        reason = f"needs a browser, one of {', '.join(names)}"
        # Where everything is to be tested, its absence must not go unnoticed.
        (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)
    # Chromium's own sandbox does not work for root, as whom tests run in containers.
    args = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=args)
        yield browser
        browser.close()


def opened(context: BrowserContext, address: str, *, allowed: str = "") -> Page:
    """Open a page, and gather on it all that must not happen.

    Requests are trouble unless they begin with `allowed`.
    """
    page = context.new_page()
    troubles: list[str] = []
    page.troubles = troubles  # type: ignore[attr-defined]
    page.set_default_timeout(20_000)
    page.on("console", lambda message: troubles.append(message.text))
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("dialog", lambda dialog: (troubles.append(dialog.message), dialog.dismiss()))
    inside = (address, "data:", "blob:", *([allowed] if allowed else []))
    page.on(
        "request",
        lambda request: None if request.url.startswith(inside) else troubles.append(request.url),
    )
    page.goto(address)
    return page


def troubles(page: Page) -> list[str]:
    found: list[str] = page.troubles  # type: ignore[attr-defined]
    return found


def screenshot(page: Page, name: str, **options: Any) -> Path:
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    path = SCREENSHOTS / f"{name}.png"
    page.screenshot(path=path, **options)
    return path


def wait(page: Page, condition: str) -> None:
    """Wait until a condition in JavaScript holds.

    Not `Page.wait_for_function`, which the policy of the page does not allow.
    """
    page.evaluate(
        f"""() => new Promise((done, fail) => {{
          const end = Date.now() + 20_000;
          const look = () => {{
            if ({condition}) done();
            else if (Date.now() > end) fail(new Error("Not within 20 s: " + {condition!r}));
            else setTimeout(look, 20);
          }};
          look();
        }})"""
    )


def mark(page: Page, x: int, y: int) -> Any:
    """Mark a pixel as a click does, and return what the page was told about it."""
    page.evaluate("([x, y]) => hamflow.app.setPixel({ x, y }, true)", [x, y])
    told = "hamflow.inspector.answer"
    wait(page, f"{told}?.x === {x} && {told}?.y === {y}")
    return page.evaluate(told)


def is_light(page: Page) -> bool:
    """Whether the background is nearer to white than to black."""
    color = page.evaluate("getComputedStyle(document.body).backgroundColor")
    return sum(map(int, color.removeprefix("rgb(").rstrip(")").split(","))) > 3 * 128

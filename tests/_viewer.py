"""A server of the page in this process, with small images."""

from __future__ import annotations

import io
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import uvicorn
from numpy.typing import NDArray
from PIL import Image

from _route import texture
from hamflow.viewer.front import Front
from hamflow.viewer.guard import Guard
from hamflow.viewer.limits import Limits
from hamflow.viewer.registry import Registry
from hamflow.viewer.server import settings

Browser = httpx.Client


def moving(count: int, u: int = 3, v: int = 1, height: int = 60, width: int = 80) -> list[Any]:
    """Frames of a texture that moves by (u, v) from each to the next."""
    rows, columns = height + abs(v) * count, width + abs(u) * count
    scene = texture(rows, columns)
    frames = []
    for k in range(count):
        top, left = rows - height - k * v, columns - width - k * u
        frames.append(np.ascontiguousarray(scene[top : top + height, left : left + width]))
    return frames


def png(image: NDArray[Any]) -> bytes:
    """An image as the bytes of a PNG file."""
    encoded = io.BytesIO()
    Image.fromarray(image).save(encoded, "PNG")
    return encoded.getvalue()


def pixels(content: bytes) -> NDArray[Any]:
    """The pixels of a PNG file."""
    return np.asarray(Image.open(io.BytesIO(content)))


class Page:
    """A server in a thread, and browsers that use it."""

    def __init__(self, registry: Registry, host: str = "127.0.0.1") -> None:
        self.registry = registry
        self._listener = socket.create_server((host, 0))
        self.port: int = self._listener.getsockname()[1]
        self.address = f"http://127.0.0.1:{self.port}"
        self.guard = Guard(host, self.port)
        self.front = Front(self.guard, registry)
        self._server = uvicorn.Server(settings(self.front))
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [self._listener]}
        )
        self._browsers: list[Browser] = []
        self._thread.start()
        # The framework is imported in another thread and changes the filters of warnings there,
        # which pytest must not do at the same time.
        assert self.stranger().get("/api/info").status_code in (200, 401)

    def browser(self) -> Browser:
        """A browser of its own, which has seen the page."""
        browser = self.stranger()
        assert browser.get("/").status_code == 200
        return browser

    def stranger(self, **options: Any) -> Browser:
        """A client that has not seen the page."""
        # Nothing is encrypted: loading certificates would take longer than many a request.
        browser = httpx.Client(base_url=self.address, timeout=60, verify=False, **options)
        self._browsers.append(browser)
        return self._browsers[-1]

    def close(self) -> None:
        for browser in self._browsers:
            browser.close()
        self._server.should_exit = True
        self._thread.join()
        self._listener.close()


@contextmanager
def served(
    paths: Sequence[Path] = (),
    *,
    limits: Limits | None = None,
    host: str = "127.0.0.1",
    **options: Any,
) -> Iterator[Page]:
    """Serve some files while the block runs."""
    options.setdefault("preset", "realtime")
    registry = Registry(paths, limits=limits, **options)
    page = Page(registry, host)
    try:
        yield page
    finally:
        page.close()
        registry.close()
        assert not registry.workspace.path.exists()


def upload(browser: Browser, *images: NDArray[Any], **more: Any) -> dict[str, Any]:
    """Upload images; return the source."""
    files = [("files", (f"{k}.png", png(image))) for k, image in enumerate(images)]
    files += [(name, value) for name, value in more.items()]
    answer = browser.post("/api/sources", files=files)
    assert answer.status_code == 201, answer.text
    source: dict[str, Any] = answer.json()
    return source


def run(browser: Browser, source: str, **wanted: Any) -> dict[str, Any]:
    """Run a job to its end; return its last state."""
    answer = browser.post("/api/jobs", json={"source": source, **wanted})
    assert answer.status_code == 201, answer.text
    return follow(browser, answer.json()["id"])[-1]


def wait_until(holds: Callable[[], bool]) -> None:
    """Wait for something that another thread or process does."""
    for _ in range(1000):
        if holds():
            return
        time.sleep(0.02)
    raise AssertionError


def follow(browser: Browser, job: str) -> list[dict[str, Any]]:
    """All states of a job that its events tell of."""
    events = browser.get(f"/api/jobs/{job}/events")
    assert events.headers["content-type"].startswith("text/event-stream")
    lines = [line for line in events.text.splitlines() if line]
    assert all(line.startswith("data: ") for line in lines)
    return [json.loads(line.removeprefix("data: ")) for line in lines]

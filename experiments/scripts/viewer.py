"""How long one waits for the local page: for its first byte, and for the answer about a pixel.

    python -m experiments.scripts.viewer [--height 436] [--width 1024] [--preset balanced]
        [--starts 5] [--pixels 200]

starts ``hamflow serve`` with a rendered pair, and prints the seconds from the start of the process
to the first byte of the page and to the first answer of the interface; then it estimates the flow,
and prints the milliseconds from the request for a pixel to the whole answer, and those of a
cancellation in the middle of a search.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import tyro

import hamflow
from hamflow.datasets import demo_scene

_WAIT = 0.002


@contextmanager
def served(paths: Sequence[Path]) -> Iterator[tuple[str, float]]:
    """Run the command; yield the address, and when it was started."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words = ["serve", *map(str, paths), "--no-browser", "--port", str(port)]
    start = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, "-m", "hamflow", *words], stdout=subprocess.DEVNULL
    ) as process:
        try:
            yield f"http://127.0.0.1:{port}", start
        finally:
            process.terminate()


def first(address: str, path: str) -> None:
    """Wait for the first byte of an answer."""
    port = httpx.URL(address).port
    while True:
        try:
            with socket.create_connection(("127.0.0.1", port)) as connection:
                request = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n"
                connection.sendall(request.encode())
                if connection.recv(1):
                    return
        except OSError:
            time.sleep(_WAIT)


def measure_starts(paths: Sequence[Path], count: int) -> None:
    """Measure and print the time until something is to be seen."""
    found = []
    for _ in range(count):
        with served(paths) as (address, start):
            first(address, "/")
            page = time.perf_counter() - start
            first(address, "/api/sources")
            found.append((page, time.perf_counter() - start))
    for name, seconds in zip(("page", "interface"), np.array(found).T, strict=True):
        print(f"first byte of the {name}: median {np.median(seconds):.2f} s, {_range(seconds)} s")


def _range(values: Any) -> str:
    return f"from {min(values):.2f} to {max(values):.2f}"


def measure_answers(paths: Sequence[Path], preset: str, pixels: int) -> None:
    """Measure and print the time of answers about pixels, and of a cancellation."""
    with served(paths) as (address, _), httpx.Client(base_url=address, timeout=600) as browser:
        first(address, "/")
        source = browser.get("/api/sources").json()[0]
        wanted = {"source": source["id"], "preset": preset}
        job = browser.post("/api/jobs", json=wanted).json()["id"]
        browser.get(f"/api/jobs/{job}/events")
        result = browser.get(f"/api/jobs/{job}").json()["results"]["0"]
        browser.get(f"/api/results/{result}")
        rng = np.random.default_rng(0)
        found = []
        for x, y in rng.integers(0, (source["width"], source["height"]), (pixels, 2)):
            start = time.perf_counter()
            browser.get(f"/api/results/{result}/pixel?x={x}&y={y}").raise_for_status()
            found.append(1000 * (time.perf_counter() - start))
        print(
            f"pixel: median {np.median(found):.1f} ms, 95 % within {np.percentile(found, 95):.1f} "
            f"ms, {_range(found)} ms"
        )
        job = browser.post("/api/jobs", json=wanted | {"preset": "paper"}).json()["id"]
        while browser.get(f"/api/jobs/{job}").json()["stage"] in (None, "reading", "descriptors"):
            time.sleep(0.01)
        start = time.perf_counter()
        browser.delete(f"/api/jobs/{job}")
        browser.get(f"/api/jobs/{job}/events")
        print(f"cancellation: {1000 * (time.perf_counter() - start):.0f} ms")


def main(
    *,
    height: int = 436,
    width: int = 1024,
    preset: str = "balanced",
    starts: int = 5,
    pixels: int = 200,
) -> None:
    """Measure and print."""
    scene = demo_scene(height, width)
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, "frame1.png"), Path(folder, "frame2.png")]
        for path, image in zip(paths, (scene.image0, scene.image1), strict=True):
            hamflow.write_image(path, image)
        measure_starts(paths, starts)
        measure_answers(paths, preset, pixels)


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)

"""Hamming distances, matrix products and refinements of other libraries."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from experiments.bench._measure import seconds

Rate = float


def sgemm() -> Rate:
    """Return numpy's multiply-adds per second, all its threads."""
    n = 2048
    rng = np.random.default_rng(0)
    a, b = (rng.random((n, n), np.float32) for _ in range(2))
    return n**3 / min(seconds(lambda: a @ b) for _ in range(5))


def bitwise_count() -> Rate:
    """Return numpy's Hamming distances per second (it has one thread)."""
    a, b = _codes(1024, 8192)
    out = np.empty((64, 8192), np.uint8)

    def work() -> None:
        for start in range(0, 1024, 64):
            np.bitwise_count(a[start : start + 64, None] ^ b[None], out=out)

    return 1024 * 8192 / min(seconds(work) for _ in range(3))


def faiss_hammings() -> Rate:
    """Return the distances per second of faiss' ``hammings``, all its threads."""
    import faiss  # noqa: PLC0415  (an extra, and slow to import)

    n = 8192
    a, b = (x.view(np.uint8).reshape(n, 8) for x in _codes(n, n))
    out = np.empty((n, n), np.int32)
    pointers = [faiss.swig_ptr(x) for x in (a, b, out)]
    work = lambda: faiss.hammings(pointers[0], pointers[1], n, n, 8, pointers[2])  # noqa: E731
    return n * n / min(seconds(work) for _ in range(5))


def opencv_matcher() -> Rate:
    """Return the distances per second of OpenCV's brute-force matcher."""
    import cv2  # noqa: PLC0415  (an extra, and slow to import)

    n = 4096
    a, b = (x.view(np.uint8).reshape(n, 8) for x in _codes(n, n))
    matcher = cv2.BFMatcher(cv2.NORM_HAMMING)
    return n * n / min(seconds(lambda: matcher.match(a, b)) for _ in range(3))


def opencv_refinement() -> Rate:
    """Return the pixels that OpenCV's variational refinement updates per second."""
    import cv2  # noqa: PLC0415  (an extra, and slow to import)

    frames = [(255 * image.mean(axis=2)).astype(np.uint8) for image in moved_images()]
    flow = np.zeros((*frames[0].shape, 2), np.float32)
    solver = cv2.VariationalRefinement_create()
    solver.setFixedPointIterations(5)
    solver.setSorIterations(SWEEPS // 5)
    time = min(seconds(lambda: solver.calc(*frames, flow.copy())) for _ in range(5))
    return frames[0].size * SWEEPS / time


SWEEPS = 150
"""Of the refinements that are compared: five warps, or what comes nearest to them."""


def moved_images() -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return two images of 1024×436 pixels, a texture that moves by half a pixel."""
    rng = np.random.default_rng(0)
    fine = rng.random((436 + 8, 1024 + 8, 3), np.float32)
    for axis in (0, 1):
        fine = sum(np.roll(fine, k, axis) for k in range(8)) * np.float32(1 / 8)
    image = fine[4:-4, 4:-4]
    return image, (image + fine[4:-4, 5:-3]) * np.float32(0.5)


def available() -> dict[str, Callable[[], Rate]]:
    """Return the libraries that are installed, by name."""
    peers: dict[str, Callable[[], Rate]] = {"numpy sgemm": sgemm}
    if hasattr(np, "bitwise_count"):
        peers["numpy bitwise_count"] = bitwise_count
    if importlib.util.find_spec("faiss") is not None:
        peers["faiss hammings"] = faiss_hammings
    if importlib.util.find_spec("cv2") is not None:
        peers["OpenCV BFMatcher"] = opencv_matcher
        peers["OpenCV VariationalRefinement"] = opencv_refinement
    return peers


def _codes(n: int, m: int) -> tuple[np.ndarray[tuple[int], np.dtype[np.uint64]], ...]:
    rng = np.random.default_rng(0)
    return tuple(rng.integers(0, 2**64, size, np.uint64) for size in (n, m))

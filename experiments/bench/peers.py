"""Hamming distances and matrix products of other libraries."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable

import numpy as np

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


def available() -> dict[str, Callable[[], Rate]]:
    """Return the libraries that are installed, by name."""
    peers: dict[str, Callable[[], Rate]] = {"numpy sgemm": sgemm}
    if hasattr(np, "bitwise_count"):
        peers["numpy bitwise_count"] = bitwise_count
    if importlib.util.find_spec("faiss") is not None:
        peers["faiss hammings"] = faiss_hammings
    if importlib.util.find_spec("cv2") is not None:
        peers["OpenCV BFMatcher"] = opencv_matcher
    return peers


def _codes(n: int, m: int) -> tuple[np.ndarray[tuple[int], np.dtype[np.uint64]], ...]:
    rng = np.random.default_rng(0)
    return tuple(rng.integers(0, 2**64, size, np.uint64) for size in (n, m))

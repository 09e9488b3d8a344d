"""How much the page takes, keeps and does at a time."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Bounds of everything that a browser can ask for.

    Attributes
    ----------
    upload_bytes : int
        Of one upload, all files together.
    upload_files : int
        In one upload.
    pixels : int
        Of an image or a frame of a video.
    frames : int
        Of a video that are kept; later ones are left out.
    queue : int
        Jobs that wait or run at a time, of all browsers together.
    history : int
        Jobs that are remembered for each browser; older ones are forgotten, not their results.
    sources : int
        For each browser.
    sessions : int
        Browsers that are remembered; those that came back least recently are forgotten.
    store_bytes : int
        On the disk, for uploads, frames of videos and results of all browsers together. What
        explains old results is given up first.
    memory : int, optional
        Bytes that an estimation may take, as `max_memory` of `hamflow.Estimator`. Then nothing
        explains the results, because that takes memory for each label of each pixel.
    """

    upload_bytes: int = 1 << 30
    upload_files: int = 1000
    pixels: int = 40_000_000
    frames: int = 3000
    queue: int = 8
    history: int = 200
    sources: int = 100
    sessions: int = 100
    store_bytes: int = 8 << 30
    memory: int | None = None

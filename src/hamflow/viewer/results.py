"""What the page gets to know of a result."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hamflow.flow import endpoint_error
from hamflow.io import write_image
from hamflow.pipeline.explain import Explanation
from hamflow.result import FlowResult
from hamflow.viewer.contents import ShownResult, described, only_finite
from hamflow.viewer.kept_result import WHY, load_saved, read_explanation, read_result, write_result
from hamflow.viewer.refusals import Refusal
from hamflow.viewer.source import Source, new_id, refused_files
from hamflow.viewer.workspace import size_of

LAYERS = ("flow", "backward", "occlusion", "confidence", "error", "truth")
FORMATS = {
    "flo": "application/octet-stream",
    "png": "image/png",
    "kitti.png": "image/png",
    "npz": "application/octet-stream",
    "html": "text/html; charset=utf-8",
}


@dataclass(eq=False)
class KeptResult:
    """A result in files.

    Attributes
    ----------
    source : Source
        What it is of.
    index : int
        Number of the first of its two frames.
    preset : str, or None
        How it was estimated; None if it was saved earlier.
    folder : Path, or None
        Where the worker has written it; None before what was saved earlier is unpacked.
    file : Path, or None
        Where it was saved earlier.
    new_folder : callable, or None
        Makes a folder to unpack that to.
    size : int
        Bytes that it takes on the disk.
    """

    source: Source
    index: int
    preset: str | None = None
    folder: Path | None = None
    file: Path | None = None
    new_folder: Callable[[], Path] | None = None
    size: int = 0
    id: str = field(default_factory=new_id)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _loaded: FlowResult | None = None
    _explanation: Explanation | None = None
    _described: dict[str, Any] | None = None

    def load(self) -> FlowResult:
        """Return the result itself; its arrays are mapped into memory."""
        with self._lock:
            if self._loaded is None:
                if self.folder is None:
                    self._unpack()
                assert self.folder is not None
                self._loaded = read_result(self.folder)
            return self._loaded

    def _unpack(self) -> None:
        """Write what was saved earlier as the worker would, so that it need not be in memory."""
        assert self.file is not None
        assert self.new_folder is not None
        with refused_files({self.file: self.file.name}):
            result = load_saved(self.file)
        folder = self.new_folder()
        write_result(folder, result, None)
        self.folder, self.size = folder, size_of(folder)

    def explanation(self) -> Explanation | None:
        """Return what explains it, as long as that is kept."""
        with self._lock:
            if self._explanation is None and self.folder is not None:
                self._explanation = read_explanation(self.folder)
            return self._explanation

    def give_up_explanation(self) -> Path | None:
        """Forget what explains it; return the folder that can be removed."""
        with self._lock:
            self._explanation = None
            self._described = None
        folder = None if self.folder is None else self.folder / WHY
        return folder if folder is not None and folder.is_dir() else None

    def describe(self) -> dict[str, Any]:
        """Return everything that is a number or a name."""
        if self._described is not None:
            return self._described
        result, truth = self.load(), self._truth()
        layers = {"error": truth, "truth": truth}
        self._described = {
            "id": self.id,
            "source": self.source.id,
            "index": self.index,
            "preset": self.preset,
            **described(result, truth),
            "layers": [
                name for name in LAYERS if layers.get(name, getattr(result, name, None)) is not None
            ],
            "explained": self.explanation() is not None,
        }
        return self._described

    def layer(self, name: str, wide: bool = False) -> NDArray[Any]:
        """Return an array of the result, ready to be sent.

        Parameters
        ----------
        name : str
            One of `LAYERS`.
        wide : bool
            Send vectors and errors as float32 instead of float16.
        """
        result = self.load()
        array = self._truth() if name in ("error", "truth") else getattr(result, name)
        if array is None:
            raise Refusal(404, f"This result has no {name}.")
        if name == "error":
            array = endpoint_error(result.flow, array)
        if name == "occlusion":
            return np.ascontiguousarray(array, np.uint8)
        if name == "confidence":
            levels: NDArray[Any] = np.rint(np.clip(array, 0, 1) * np.float32(255)).astype(np.uint8)
            return levels
        if wide:
            return np.ascontiguousarray(array, "<f4")
        most = np.float32(np.finfo(np.float16).max)
        half: NDArray[Any] = np.clip(array, -most, most).astype("<f2")
        return half

    def pixel(self, x: int, y: int) -> dict[str, Any]:
        """Return everything that is known about a pixel."""
        result = self.load()
        height, width = result.flow.shape[:2]
        if not (0 <= x < width and 0 <= y < height):
            raise Refusal(
                422, f"The pixel ({x}, {y}) is outside of the image of {width}×{height} pixels."
            )
        u, v = (float(component) for component in result.flow[y, x])
        answer: dict[str, Any] = {
            "x": x,
            "y": y,
            "flow": [u, v],
            "match": [x + u, y + v],
            "backward": None,
            "round_trip": None,
            "occluded": None if result.occlusion is None else bool(result.occlusion[y, x]),
            "confidence": None,
            "expected_error": None,
            "truth": None,
            "scale": result.scale,
            "cell": [x // result.scale, y // result.scale],
            **dict.fromkeys(("u", "v", "hamming", "bits")),
        }
        if result.backward is not None and math.isfinite(u) and math.isfinite(v):
            row, column = round(y + v), round(x + u)
            if 0 <= row < height and 0 <= column < width:
                back = [float(component) for component in result.backward[row, column]]
                answer["backward"] = back
                answer["round_trip"] = math.hypot(u + back[0], v + back[1])
        if result.confidence is not None:
            sure = float(result.confidence[y, x])
            answer["confidence"] = sure
            answer["expected_error"] = 1 / sure - 1 if sure > 0 else None
        truth = self._truth()
        if truth is not None and np.isfinite(truth[y, x]).all():
            answer["truth"] = [float(component) for component in truth[y, x]]
        explanation = self.explanation()
        if explanation is not None:
            why = explanation.pixel(x, y, around=(u, v)).as_dict()
            answer |= {name: why[name] for name in ("u", "v", "hamming", "bits")}
            return answer
        finite: dict[str, Any] = only_finite(answer)
        return finite

    def warped(self) -> NDArray[Any]:
        """Return the second frame, warped to the first."""
        return self.load().warp(np.asarray(self.source.frame(self.index + 1)))

    def write(self, path: Path, form: str) -> None:
        """Write it in one of `FORMATS`, but as a page."""
        result = self.load()
        if form == "png":
            write_image(path, result.to_color(key=True))
        else:
            result.save(path)

    def shown(self) -> ShownResult:
        """Return it as a part of a page in one file, with two frames of its own."""
        label = self.preset or "saved"
        return ShownResult(label, self.load(), 0, self._truth(), self.explanation())

    def _truth(self) -> NDArray[np.float32] | None:
        truth = self.source.truth(self.index)
        return truth if truth is not None and truth.shape == self.load().flow.shape else None

"""What a page holds: first what it must, then what there is room for."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from PIL import Image

from hamflow._check import as_flow, to_rgb
from hamflow._types import Flow
from hamflow.errors import InputError
from hamflow.flow import endpoint_error
from hamflow.pipeline.explain import Explanation
from hamflow.result import FlowResult
from hamflow.viewer.coding import Blobs, as_ranges, as_steps, packed, packed_differences
from hamflow.visualize import typical_length

_PRIOR_STEP = 1 / 64  # pixels of the matching scale


@dataclass(frozen=True, eq=False)
class ShownResult:
    """A result on a page.

    Attributes
    ----------
    label : str
        What it is called on the page, such as the name of a preset.
    result : FlowResult or (H, W, 2) array
        The result, or a flow alone.
    index : int
        Which of the frames is the first of the pair.
    truth : (H, W, 2) array, optional
        The true flow.
    explanation : Explanation, optional
        What `hamflow.Estimator.explained` returns, for the curves.
    """

    label: str
    result: FlowResult | Flow
    index: int = 0
    truth: Flow | None = None
    explanation: Explanation | None = None


@dataclass(frozen=True, eq=False)
class Shown:
    """Frames on a page, and the results that belong to them.

    Attributes
    ----------
    name : str
        What they are called.
    frames : sequence of images
        Two or more of one size; fewer if only the flow is to be seen.
    results : sequence of ShownResult
        One at least.
    """

    name: str
    frames: Sequence[ArrayLike]
    results: Sequence[ShownResult]


class Contents:
    """Gathers what the page holds: first what it must, then what there is room for."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.blobs = Blobs()
        self.sources: list[dict[str, Any]] = []
        self.frames: dict[str, list[dict[str, Any]]] = {}
        self.runs: list[dict[str, Any]] = []
        self.results: list[dict[str, Any]] = []
        self._shown: list[tuple[ShownResult, dict[str, Any]]] = []

    def add(self, shown: Shown) -> None:
        """Put in frames, and what cannot be left out of their results."""
        source = f"s{len(self.sources)}"
        shape = _flow(shown.results[0].result).shape[:2]
        region = getattr(shown.results[0].result, "region", None)
        self.frames[source] = [self._frame(image, shape, region) for image in shown.frames]
        self.sources.append(
            {
                "id": source,
                "kind": "sequence" if len(shown.frames) > 2 else "pair",
                "name": shown.name,
                "width": shape[1],
                "height": shape[0],
                "frames": len(shown.frames),
                "times": None,
                "truth": any(each.truth is not None for each in shown.results),
                "result": None,
            }
        )
        by_label: dict[str, dict[str, Any]] = {}
        for each in shown.results:
            if _flow(each.result).shape[:2] != shape:
                raise InputError(f"The results of {shown.name} must have one size.")
            name = f"r{len(self.results)}"
            run = by_label.setdefault(
                each.label,
                {
                    "key": f"{source} {each.label}",
                    "source": source,
                    "label": each.label,
                    "results": {},
                    "cuts": [],
                },
            )
            run["results"][each.index] = name
            self.results.append(self._result(name, source, each))
            self._shown.append((each, self.results[-1]))
            if self.results[-1]["cut"]:
                run["cuts"].append(each.index)
        self.runs.extend(by_label.values())

    def _frame(
        self, image: ArrayLike, shape: tuple[int, ...], region: tuple[int, int, int, int] | None
    ) -> dict[str, Any]:
        pixels = to_rgb(image)
        if region is not None:
            x, y, width, height = region
            pixels = pixels[y : y + height, x : x + width]
        if pixels.shape[:2] != shape:
            raise InputError(
                f"The images must have the size of the flow, {shape[1]}×{shape[0]}, but one has "
                f"{pixels.shape[1]}×{pixels.shape[0]} pixels."
            )
        buffer = io.BytesIO()
        Image.fromarray(pixels).save(buffer, "PNG")
        return {"blob": self.blobs.add(buffer.getvalue()), "type": "image/png"}

    def _result(self, name: str, source: str, shown: ShownResult) -> dict[str, Any]:
        layers: dict[str, Any] = {}
        result = shown.result
        self._flow_layer(layers, "flow", _flow(result))
        if isinstance(result, FlowResult):
            for layer in ("occlusion", "confidence"):
                values = getattr(result, layer)
                if values is not None:
                    levels = np.rint(255 * values.astype(np.float32)).astype(np.uint8)
                    layers[layer] = self._layer("bytes", levels.shape, packed(levels))
        if shown.truth is not None:
            self._flow_layer(layers, "truth", as_flow(shown.truth).astype(np.float32))
        found = {"id": name, "source": source, "index": shown.index, "preset": shown.label}
        found |= described(result, shown.truth)
        return found | {"layers": layers, "explanation": None}

    def _layer(self, codec: str, shape: tuple[int, ...], data: bytes) -> dict[str, Any]:
        return {"codec": codec, "shape": list(shape), "blob": self.blobs.add(data)}

    def _flow_layer(self, layers: dict[str, Any], name: str, flow: Flow) -> None:
        whole, step = as_steps(flow)
        layers[name] = self._layer("steps", flow.shape, packed_differences(whole)) | {"step": step}

    def add_options(self) -> list[str]:
        """Put in what there is room for; return sentences about the rest."""
        if self.blobs.size > self.limit:
            raise InputError(
                f"The page would have {_megabytes(self.blobs.size)} MB, more than the limit of "
                f"{_megabytes(self.limit)}; show fewer or smaller images, or raise the limit."
            )
        notes = []
        for kind, add in (
            ("backward flow", self._add_backward),
            ("descriptors", self._add_descriptors),
            ("slacks", self._add_slacks),
        ):
            missing = sum(not add(shown, found) for shown, found in self._shown)
            if missing:
                notes.append(
                    f"Without the {kind} of {missing} of {len(self._shown)} results, so that the "
                    f"page has at most {_megabytes(self.limit)} MB."
                )
        return notes

    def _with_room(self, parts: list[bytes]) -> list[int] | None:
        """Put in parts that belong together; None if they do not fit."""
        size = sum(4 * math.ceil(len(part) / 3) for part in parts)
        if self.blobs.size + size > self.limit:
            return None
        return [self.blobs.add(part) for part in parts]

    def _add_backward(self, shown: ShownResult, found: dict[str, Any]) -> bool:
        """Add the backward flow; False if it does not fit, as the next ones."""
        backward = getattr(shown.result, "backward", None)
        if backward is None:
            return True
        whole, step = as_steps(backward)
        blobs = self._with_room([packed_differences(whole)])
        if blobs is not None:
            layer = {"codec": "steps", "shape": list(backward.shape), "step": step}
            found["layers"]["backward"] = layer | {"blob": blobs[0]}
        return blobs is not None

    def _add_descriptors(self, shown: ShownResult, found: dict[str, Any]) -> bool:
        """Add what gives costs and choices."""
        why = shown.explanation
        if why is None:
            return True
        parts = [packed(why.bits0), packed(why.bits1)]
        parts.append(packed_differences(np.stack([why.u, why.v], axis=2)))
        if why.prior is not None:
            expected = np.clip(np.rint(why.prior.flow / _PRIOR_STEP), -32767, 32767)
            parts.append(packed_differences(expected.astype(np.int16)))
            parts.append(packed(why.prior.weight.astype(np.float32)))
        blobs = self._with_room(parts)
        if blobs is None:
            return False
        height, width = why.u.shape
        found["explanation"] = {
            "width": width,
            "height": height,
            "scale": why.scale,
            "bits": 64 * (why.bits0.shape[2] if why.bits0.ndim == 3 else 1),
            "window": list(why.window.as_tuple()),
            "outside": why.outside,
            "bitsBlobs": blobs[:2],
            "labelsBlob": blobs[2],
            "slack": None,
            "prior": None,
        }
        if why.prior is not None:
            found["explanation"]["prior"] = {
                "flowBlob": blobs[3],
                "weightBlob": blobs[4],
                "step": _PRIOR_STEP,
                "slope": why.prior.slope,
                "free": why.prior.free,
            }
        return True

    def _add_slacks(self, shown: ShownResult, found: dict[str, Any]) -> bool:
        """Add what the joint model left of the costs."""
        why = shown.explanation
        if why is None or why.slack_u is None or why.slack_v is None:
            return True
        if found["explanation"] is None:
            return False
        u, range_u = as_ranges(why.slack_u, why.slack_unit)
        v, range_v = as_ranges(why.slack_v, why.slack_unit)
        ranges = np.concatenate([range_u, range_v], axis=2)
        blobs = self._with_room([packed(u), packed(v), packed(ranges)])
        found["explanation"]["slack"] = blobs
        return blobs is not None


def _flow(result: FlowResult | Flow) -> Flow:
    flow = result.flow if isinstance(result, FlowResult) else result
    return as_flow(flow).astype(np.float32, copy=False)


def described(result: FlowResult | Flow, truth: Flow | None) -> dict[str, Any]:
    """Return the numbers of a result, with None for those that JSON does not have."""
    flow = _flow(result)
    lengths = np.hypot(flow[..., 0], flow[..., 1])
    known = lengths[np.isfinite(lengths)]
    found: dict[str, Any] = {
        "width": flow.shape[1],
        "height": flow.shape[0],
        "full_color": typical_length(flow),
        "cut": False,
        "summary": {},
        "error": None if truth is None else _errors(flow, truth),
    }
    if isinstance(result, FlowResult):
        summary = result.summary()
        found |= {
            "scale": result.scale,
            "window": summary["window"],
            "summary": summary,
            "timings": summary["seconds"],
            "energy": result.energy,
            "bound": result.bound,
            "gap": result.gap,
            "cut": result.cut,
            "occluded": summary["occluded"],
            "confidence": summary["mean_confidence"],
            "history": [
                {"iteration": step.iteration, "bound": step.bound, "energy": step.energy}
                for step in result.history
            ],
        }
    # Of the known vectors alone, unlike those of `FlowResult.summary`.
    mean = float(known.mean()) if known.size else 0.0
    found["summary"] |= {"mean_length": mean, "longest": float(known.max(initial=0))}
    numbers: dict[str, Any] = only_finite(found)
    return numbers


def _errors(flow: Flow, truth: Flow) -> dict[str, Any] | None:
    errors = endpoint_error(flow, truth)
    known = errors[np.isfinite(errors)]
    if not known.size:
        return None
    return {
        "epe": float(known.mean(dtype=np.float64)),
        "median": float(np.median(known)),
        "outlier_1px": float((known > 1).mean()),
        "outlier_3px": float((known > 3).mean()),
        "pixels": int(known.size),
    }


def only_finite(value: Any) -> Any:
    """Return the same with None for numbers that JSON does not have; saved files may hold them."""
    if isinstance(value, np.floating | float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: only_finite(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [only_finite(item) for item in value]
    return value


def _megabytes(size: int) -> int:
    return math.ceil(size / 2**20)

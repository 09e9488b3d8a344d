"""The content of the paper's sample figure: flows, and which region is enlarged."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from experiments.bench._measure import StepProgress
from experiments.paper.table1 import WEIGHTS, check_evaluation
from hamflow._types import Flow
from hamflow.errors import FileError, InputError
from hamflow.evaluation import Method, MethodConfig
from hamflow.flow import endpoint_error
from hamflow.visualize import typical_length

Matching = Literal["FF", "FQ", "QQ"]

MATCHINGS: tuple[Matching, ...] = ("FF", "FQ", "QQ")
SHIPPED = "default"
"""The model that is used for all columns if no network is given."""

# The joint model needs costs for all displacements: floats for FF, and bits for the others.
_JOINT = {"FF": "F", "FQ": "Q", "QQ": "Q"}
_LEAST = 8  # the smallest side of the region, in pixels


@dataclass(frozen=True, eq=False)
class Panel:
    """A flow of the figure.

    Attributes
    ----------
    matching : str
        FF, FQ or QQ.
    kind : str
        ``WTA``, ``CRF F`` or ``CRF Q``.
    flow : (H, W, 2) array of float32
    error : float or None
        Mean endpoint error where the truth is known; None without truth.
    """

    matching: str
    kind: str
    flow: Flow
    error: float | None = None


@dataclass(frozen=True)
class Region:
    """A rectangle in the frame, in pixels; x and y are its upper left corner."""

    x: int
    y: int
    width: int
    height: int

    def check(self, shape: tuple[int, int]) -> None:
        """Raise an InputError if it is not inside a frame of (height, width)."""
        inside = (
            min(self.x, self.y) >= 0
            and min(self.width, self.height) >= 1
            and self.x + self.width <= shape[1]
            and self.y + self.height <= shape[0]
        )
        if not inside:
            raise InputError(
                f"The region x = {self.x}, y = {self.y}, {self.width}×{self.height} is not inside "
                f"the frame of {shape[1]}×{shape[0]} pixels; choose another --region."
            )

    def of(self, picture: NDArray[Any]) -> NDArray[Any]:
        """Return this part of a picture."""
        return picture[self.y : self.y + self.height, self.x : self.x + self.width]


def find_networks(
    matchings: Sequence[Matching],
    files: Mapping[Matching, str],
    folder: str | os.PathLike[str] | None = None,
    *,
    layers: int = 7,
) -> dict[Matching, str]:
    """Return the network for each kind of matching, as `hamflow.load_model` takes it.

    Parameters
    ----------
    matchings : sequence of str
        Some of FF, FQ, QQ.
    files : mapping
        Networks that are given, by the kind of matching that they were trained with.
    folder : str or os.PathLike, optional
        The folder of the other networks, such as ``ff-7/last.safetensors``.
    layers : int
        The number of layers in these names.

    Returns
    -------
    dict
        The shipped model `SHIPPED` for all of them if neither files nor a folder are given.

    Raises
    ------
    InputError
        If some networks are given, but not all, or one that is not needed.
    FileError
        If a network is missing in the folder.
    """
    if not matchings or len(set(matchings)) != len(matchings):
        raise InputError("--models must name one or more of FF, FQ, QQ, each once.")
    for name in files:
        if name not in matchings:
            raise InputError(
                f"--{name.lower()} is given, but --models does not name {name}; add it there."
            )
    if folder is None:
        missing = [name for name in matchings if name not in files]
        if files and missing:
            raise InputError(
                f"There is no network for {missing[0]}; give it by --{missing[0].lower()} or "
                "--weights, or omit it in --models."
            )
        return {name: files.get(name, SHIPPED) for name in matchings}
    found = dict(files)
    for name in matchings:
        path = Path(folder) / f"{name.lower()}-{layers}" / WEIGHTS
        if name not in files and not path.is_file():
            raise FileError(
                f"{path}: does not exist; train it by 'python -m experiments paper table1', give "
                f"another file by --{name.lower()}, or omit {name} in --models."
            )
        found.setdefault(name, os.fspath(path))
    return {name: found[name] for name in matchings}


def prepare_methods(
    networks: Mapping[Matching, str], *, d: int = 128, scale: int = 1
) -> dict[tuple[str, Matching], Method]:
    """Return the methods that compute the flows of the figure: local models, then joint models.

    All networks are loaded here, so that errors are raised before minutes of work.

    Parameters
    ----------
    networks : mapping
        As `find_networks` returns it.
    d : int
        Side of the square window, in pixels of the reduced frames.
    scale : int
        Frames are reduced by this factor; the flows have full size.

    Returns
    -------
    dict
        Methods by the kind and the matching of their panels.

    Raises
    ------
    InputError
        If d or scale is out of range, or there is no such network.
    FileError
        If the file of a network cannot be used.
    """
    check_evaluation(d, scale, ("--d", "--scale"))
    kinds: list[tuple[str, Matching]] = [
        *(("WTA", name) for name in networks),
        *((f"CRF {_JOINT[name]}", name) for name in networks),
    ]
    return {
        (kind, name): Method(
            MethodConfig(_method(kind, name), model=networks[name], window=d, scale=scale)
        )
        for kind, name in kinds
    }


def check_pair(
    image0: NDArray[Any], image1: NDArray[Any], truth: Flow | None = None, *, scale: int = 1
) -> None:
    """Raise an InputError if no figure can be made of two frames.

    Their sizes and that of the true flow must be equal, they must be large enough for `scale`, and
    the true flow must be known somewhere.
    """
    _check_sizes({"SECOND": image1, "--truth": truth}, image0)
    if min(image0.shape[:2]) < scale:
        raise InputError(
            f"Frames of {image0.shape[1]}×{image0.shape[0]} pixels cannot be reduced by a factor "
            f"of {scale}; choose a smaller --scale."
        )
    if truth is not None and np.isnan(truth).any(axis=2).all():
        raise InputError("--truth contains no pixel of known flow; omit it.")


def estimate_panels(
    image0: NDArray[Any],
    image1: NDArray[Any],
    methods: Mapping[tuple[str, Matching], Method],
    *,
    truth: Flow | None = None,
    progress: StepProgress = lambda _: None,
) -> list[Panel]:
    """Compute the flows of the figure.

    Parameters
    ----------
    image0, image1 : arrays
        The frames.
    methods : mapping
        As `prepare_methods` returns it.
    truth : (H, W, 2) array, optional
        The true flow, for the errors.
    progress : callable
        Called with the name of each step when it begins, one for each method.

    Raises
    ------
    InputError
        If no figure can be made of these frames; see `check_pair`.
    """
    for method in methods.values():
        check_pair(image0, image1, truth, scale=method.config.scale)
    panels = []
    for (kind, name), method in methods.items():
        progress(f"{name}: {kind}")
        flow = method(image0, image1).flow
        error = None if truth is None else float(np.nanmean(endpoint_error(flow, truth)))
        panels.append(Panel(name, kind, flow, error))
    return panels


def _method(kind: str, matching: str) -> str:
    return f"wta-{matching.lower()}" if kind == "WTA" else kind.lower().replace(" ", "-")


def _check_sizes(others: Mapping[str, NDArray[Any] | None], first: NDArray[Any]) -> None:
    for name, array in others.items():
        if array is not None and array.shape[:2] != first.shape[:2]:
            sizes = [f"{a.shape[1]}×{a.shape[0]}" for a in (first, array)]
            raise InputError(
                f"FIRST and {name} must have the same size, but have {sizes[0]} and {sizes[1]} "
                "pixels (width × height)."
            )


def busiest_region(flow: Flow) -> Region:
    """Return the region with the most motion boundaries, of 40 % of the height of the frame.

    It has the largest sum of the flow's differences between neighboring pixels. A single difference
    counts at most a quarter of the flow's typical length, so that many boundaries count more than a
    single fast object.
    """
    height, width = flow.shape[:2]
    tall = min(height, max(_LEAST, round(0.4 * height)))
    wide = min(width, max(_LEAST, round(0.75 * tall)))
    jumps = np.zeros((height, width))
    for axis in (0, 1):
        change = np.linalg.norm(np.diff(flow, axis=axis), axis=2)
        inner = jumps[:-1] if axis == 0 else jumps[:, :-1]
        inner += np.minimum(np.nan_to_num(change), typical_length(flow) / 4)
    sums = np.pad(jumps.cumsum(0).cumsum(1), ((1, 0), (1, 0)))
    inside = sums[tall:, wide:] - sums[:-tall, wide:] - sums[tall:, :-wide] + sums[:-tall, :-wide]
    # Of several equal regions take the middle one, so that objects are not cut off at its edge.
    best = np.argwhere(inside >= inside.max() * (1 - 1e-9))
    y, x = best[np.square(best - best.mean(axis=0)).sum(axis=1).argmin()]
    return Region(int(x), int(y), wide, tall)

"""What the page can estimate flow with: the presets, and other methods to compare them with."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from hamflow.config import PRESETS, EstimatorConfig, preset_config
from hamflow.matching.local_model import LocalModel

PEERS = {
    "opencv-dis": "OpenCV's DIS, for comparison.",
    "opencv-farneback": "OpenCV's Farnebäck, for comparison.",
    "opencv-deepflow": "OpenCV's DeepFlow, for comparison; slow.",
}
"""Methods of OpenCV (`hamflow.evaluation`), and what the page says about them."""
_LOCAL = "wta"
_TEXTS = {
    "fine": "A closer look after it, at twice the size: better borders and thin things, slower.",
    "balanced": "The default: both directions, completion, subpixel refinement.",
    "fast": "A smaller network and a coarser search: faster, less accurate.",
    "realtime": "Coarser still, in one search, refined up to half of the size.",
    "paper": "The method of the paper: full size, one direction, whole pixels; slow.",
    _LOCAL: "Winner takes all: the cost alone, without the joint model, for comparison.",
    **PEERS,
}


def offered(first: str) -> dict[str, str]:
    """Return all methods by what the page calls them, the proposed one first.

    Parameters
    ----------
    first : str
        The name of a preset, or a TOML file.

    Returns
    -------
    dict of str to str
        What `settings` takes for each name.
    """
    preset_config(first)  # raises an error if there is no such preset
    name = first if first in PRESETS else Path(first).stem
    others = [*reversed(PRESETS), _LOCAL, *(PEERS if find_spec("cv2") else ())]
    return {name: first} | {known: known for known in others if known != name}


def described(names: Iterable[str]) -> list[dict[str, str]]:
    """Return names and texts; one that is not shipped comes from a file of the user's."""
    return [{"name": name, "text": _TEXTS.get(name, "From your own file.")} for name in names]


def settings(method: str) -> str | EstimatorConfig:
    """Return what `hamflow.Estimator` takes for a method that is not OpenCV's."""
    if method != _LOCAL:
        return method
    return replace(PRESETS["paper"], scale=0, matcher=LocalModel())

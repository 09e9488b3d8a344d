"""Image pairs with known flow."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from hamflow.datasets.demo_scene import Scene, demo_scene
from hamflow.datasets.flow_pair import FlowPair
from hamflow.datasets.folder import FolderDataset

if TYPE_CHECKING:
    from hamflow.datasets.synthetic import SyntheticConfig, SyntheticDataset, SyntheticScene

__all__ = [
    "FlowPair",
    "FolderDataset",
    "Scene",
    "SyntheticConfig",
    "SyntheticDataset",
    "SyntheticScene",
    "demo_scene",
]


def __getattr__(name: str) -> Any:
    # On first use: most who read pairs from a disk do not render any.
    if name in ("SyntheticConfig", "SyntheticDataset", "SyntheticScene"):
        value = getattr(importlib.import_module("hamflow.datasets.synthetic"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'hamflow.datasets' has no attribute {name!r}")

"""Image pairs with known flow."""

from __future__ import annotations

from hamflow.datasets.demo_scene import Scene, demo_scene
from hamflow.datasets.flow_pair import FlowPair
from hamflow.datasets.folder import FolderDataset

__all__ = ["FlowPair", "FolderDataset", "Scene", "demo_scene"]

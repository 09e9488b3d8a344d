"""Image pairs with known flow."""

from __future__ import annotations

from hamflow.datasets.demo_scene import Scene, demo_scene

__all__ = ["Scene", "demo_scene"]

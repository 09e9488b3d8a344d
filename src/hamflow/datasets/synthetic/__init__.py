"""Rendered scenes of layers with exact subpixel flow, from photographs or procedural textures."""

from __future__ import annotations

from hamflow.datasets.synthetic.config import SyntheticConfig
from hamflow.datasets.synthetic.demo import demo_scene
from hamflow.datasets.synthetic.scene import (
    SyntheticDataset,
    SyntheticFilm,
    SyntheticScene,
    render_both,
    render_scene,
    render_sequence,
)
from hamflow.datasets.synthetic.sintel import SetReport, write_sintel
from hamflow.datasets.synthetic.textures import Texture, TextureSet, load_textures

__all__ = [
    "SetReport",
    "SyntheticConfig",
    "SyntheticDataset",
    "SyntheticFilm",
    "SyntheticScene",
    "Texture",
    "TextureSet",
    "demo_scene",
    "load_textures",
    "render_both",
    "render_scene",
    "render_sequence",
    "write_sintel",
]

"""Both frames of a scene, as a camera sees them, and both true flows."""

from __future__ import annotations

import tempfile
from pathlib import Path

import bpy
import numpy as np
import OpenEXR

from experiments.blender.materials import any_color, log_uniform
from experiments.blender.scene import Scene
from experiments.blender.shapes import Floats

PAIR = (2, 3)  # the frames of the pair
THREADS = 2


def rendered(scene: Scene) -> tuple[list[Floats], list[Floats]]:
    """Return both frames in bytes, and the flows forward and backward."""
    _prepare(scene)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "frame.exr"
        flows, depths = _truth(scene, path)
        return _developed(scene, _seen(scene, path), depths), flows


def _prepare(scene: Scene) -> None:
    render = scene.scene.render
    render.engine, render.resolution_percentage = "CYCLES", 100
    render.resolution_x, render.resolution_y = scene.width, scene.height
    render.threads_mode, render.threads = "FIXED", THREADS
    settings = render.image_settings
    settings.media_type = "MULTI_LAYER_IMAGE"
    settings.file_format, settings.color_depth = "OPEN_EXR_MULTILAYER", "32"
    cycles = scene.scene.cycles
    cycles.device, cycles.use_adaptive_sampling = "CPU", False
    cycles.max_bounces, cycles.diffuse_bounces, cycles.glossy_bounces = 1, 0, 1


def _truth(scene: Scene, path: Path) -> tuple[list[Floats], list[Floats]]:
    """Return flows and depths, by one ray through the center of each pixel."""
    cycles, lens = scene.scene.cycles, scene.scene.camera.data.dof
    layer = scene.scene.view_layers[0]
    layer.use_pass_vector = layer.use_pass_z = True
    scene.scene.render.use_motion_blur = False
    cycles.use_denoising, cycles.samples = False, 1
    cycles.filter_width, cycles.pixel_filter_type = 0.01, "BOX"
    blurred, lens.use_dof = lens.use_dof, False
    flows, depths = [], []
    for frame, names, signs in zip(PAIR, ("ZW", "XY"), ((-1, 1), (1, -1)), strict=True):
        channels = _frame(scene, frame, path)
        flow = np.stack([channels[f"Vector.{name}"] for name in names], axis=-1)
        flows.append(flow * np.float32(signs))
        depths.append(channels["Depth.Z"])
    layer.use_pass_vector, lens.use_dof = False, blurred
    return flows, depths


def _seen(scene: Scene, path: Path) -> list[Floats]:
    """Return linear colors, with what lens and shutter do to them."""
    render, cycles = scene.scene.render, scene.scene.cycles
    render.use_motion_blur, render.motion_blur_position = scene.chance(0.4), "CENTER"
    render.motion_blur_shutter = scene.rng.uniform(0.15, 0.9)
    blurred = render.use_motion_blur or scene.scene.camera.data.dof.use_dof
    cycles.samples = 5 if blurred else 3
    cycles.use_animated_seed = scene.chance(0.5)  # else what noise leaves behind stays in place
    cycles.use_denoising, cycles.denoiser = True, "OPENIMAGEDENOISE"
    cycles.denoising_prefilter = cycles.denoising_quality = "FAST"
    cycles.filter_width, cycles.pixel_filter_type = 1.5, "BLACKMAN_HARRIS"
    frames = [_frame(scene, frame, path) for frame in PAIR]
    return [np.stack([frame[f"Combined.{c}"] for c in "RGB"], axis=-1) for frame in frames]


def _developed(scene: Scene, images: list[Floats], depths: list[Floats]) -> list[Floats]:
    """Return bytes, with fog, exposure and noise."""
    rng = scene.rng
    if scene.chance(0.3):
        color, reach = any_color(rng)[:3] * 0.7 + 0.15, log_uniform(rng, 4, 60)
        clear = [np.exp(-np.minimum(depth, 500) / reach)[..., None] for depth in depths]
        images = [x * part + color * (1 - part) for x, part in zip(images, clear, strict=True)]
    exposure = rng.uniform(0.35, 0.6) / (np.percentile(images[0], 85) + 1e-3)
    exposure *= rng.uniform(0.1, 0.5) if scene.chance(0.2) else 1
    noise = rng.uniform(0, 0.02) * scene.chance(0.4)
    values = [np.clip(image * exposure, 0, 1) ** (1 / 2.2) for image in images]
    values = [value + rng.normal(size=value.shape) * noise for value in values]
    return [np.clip(np.rint(value * 255), 0, 255).astype(np.uint8) for value in values]


def _frame(scene: Scene, number: int, path: Path) -> dict[str, Floats]:
    """Render one frame, and return its channels."""
    scene.scene.frame_set(number)
    scene.scene.render.filepath = str(path)
    bpy.ops.render.render(write_still=True)
    with OpenEXR.File(str(path), separate_channels=True) as file:
        channels = [item for part in file.parts for item in part.channels.items()]
        return {name.partition(".")[2]: np.array(channel.pixels) for name, channel in channels}

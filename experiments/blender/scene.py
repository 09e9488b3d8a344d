"""A scene of Blender, things that move in it, lights and the camera."""

from __future__ import annotations

from pathlib import Path

import bpy
import numpy as np

from experiments.blender import shapes
from experiments.blender.materials import REST, Paint, log_uniform
from experiments.blender.shapes import Floats

FRAMES = (1, 2, 3, 4)  # the pair is frames 2 and 3; the others give blurred frames their motion
SIZES = ((640, 272), (448, 336), (512, 320), (576, 256))
STILL = np.zeros(3)


class Scene:
    """An empty scene; lengths are meters, the camera is near the origin and looks along y."""

    def __init__(
        self, rng: np.random.Generator, photographs: list[Path], size: tuple[int, int] | None
    ) -> None:
        bpy.ops.wm.read_factory_settings(use_empty=True)
        self.rng, self.scene = rng, bpy.context.scene
        self.width, self.height = size or SIZES[rng.integers(len(SIZES))]
        self.focal = rng.uniform(0.7, 1.5) * self.width
        self.speed = log_uniform(rng, 6, 110)  # of the fastest things, in pixels
        chosen = rng.choice(len(photographs), size=min(6, len(photographs)), replace=False)
        images = [bpy.data.images.load(str(photographs[k])) for k in chosen]
        self.paint = Paint(rng, images)
        self.materials = [self.paint.material() for _ in range(rng.integers(5, 12))]

    def chance(self, share: float) -> bool:
        """Return true with some probability."""
        return bool(self.rng.random() < share)

    def add(
        self,
        mesh: shapes.Mesh,
        material: bpy.types.Material | None = None,
        *,
        smooth: bool = True,
        other: Floats | None = None,
    ) -> bpy.types.Object:
        """Add a mesh; it takes on its other form from the first to the second frame of the pair."""
        points, faces = mesh
        data = bpy.data.meshes.new("mesh")
        data.from_pydata(points.tolist(), [], faces.tolist())
        rest = data.attributes.new(REST, "FLOAT_VECTOR", "POINT")
        rest.data.foreach_set("vector", points.astype(np.float32).ravel())
        any_material = self.materials[self.rng.integers(len(self.materials))]
        data.materials.append(material or any_material)
        data.polygons.foreach_set("use_smooth", [smooth] * len(data.polygons))
        thing = bpy.data.objects.new("thing", data)
        self.scene.collection.objects.link(thing)
        if other is not None:
            thing.shape_key_add(name="one")
            key = thing.shape_key_add(name="other")
            key.data.foreach_set("co", other.astype(np.float32).ravel())
            key.slider_min, key.slider_max = -10, 10
            for frame in FRAMES:
                key.value = frame - 2
                key.keyframe_insert("value", frame=frame)
            _straight(data.shape_keys)
        return thing

    def move(
        self,
        thing: bpy.types.Object,
        place: Floats,
        turn: Floats = STILL,
        step: Floats = STILL,
        spin: Floats = STILL,
    ) -> None:
        """Give a thing its place and turn in the first frame of the pair, and its steps."""
        thing.rotation_mode = "XYZ"
        for frame in FRAMES:
            thing.location = place + step * (frame - 2)
            thing.rotation_euler = turn + spin * (frame - 2)
            thing.keyframe_insert("location", frame=frame)
            thing.keyframe_insert("rotation_euler", frame=frame)
        _straight(thing)

    def step_at(self, depth: float, share: float = 1.0) -> Floats:
        """Return a step in space that is up to `share` of `speed` pixels at a depth."""
        length = self.speed * share * self.rng.random() ** 0.8 * depth / self.focal
        direction = self.rng.normal(size=3) * [1, 0.6, 0.4]
        return direction / np.linalg.norm(direction) * length

    def somewhere(self, near: float, far: float) -> tuple[float, float, float]:
        """Return x and y of a place in view, and how wide the view is there."""
        depth = log_uniform(self.rng, near, far)
        view = depth * self.width / self.focal
        return self.rng.uniform(-0.55, 0.55) * view, depth, view

    def thing(self, place: Floats, size: float, step: Floats) -> None:
        """Add something of any kind."""
        rng, kind = self.rng, self.rng.random()
        fast = min(0.3, self.speed / 150) * bool(step.any())
        spin = rng.normal(size=3) * fast * rng.random() ** 2
        if kind < 0.25:
            box = self.add(shapes.box(size * rng.uniform(0.3, 1.2, 3)), smooth=False)
            self.move(box, place, np.array([0, 0, rng.uniform(0, 6.3)]), step, spin)
        elif kind < 0.55:
            mesh = shapes.stone(rng, size * rng.uniform(0.2, 0.7, 3), rng.uniform(0, 0.4))
            stone = self.add(mesh[:2], other=mesh[2] if self.chance(0.3) else None)
            self.move(stone, place, rng.uniform(0, 6.3, 3), step, spin)
        elif kind < 0.75:
            self.figure(place + np.array([0, 0, 0.6 * size]), size, step)
        elif kind < 0.87:
            sway = rng.normal(size=2) * min(0.15, self.speed / 300)
            mesh = shapes.leaves(rng, size, sway)
            self.add(mesh[:2], smooth=False, other=mesh[2]).location = place
        else:
            motion = 0.05 * min(1.5, self.speed / 30)
            mesh = shapes.cloth(rng, size * rng.uniform(0.6, 1.5), motion)
            turn = np.array([rng.uniform(-0.4, 0.4), 0, rng.uniform(-1.2, 1.2)])
            above = place + np.array([0, 0, size / 2])
            self.move(self.add(mesh[:2], other=mesh[2]), above, turn, step)

    def figure(self, place: Floats, size: float, step: Floats) -> None:
        """Add a figure whose head and limbs turn in their joints."""
        rng = self.rng
        skin = [self.paint.material(0.2) for _ in range(3)]
        swing = min(0.6, self.speed / 60) * rng.uniform(0.1, 1)
        body = self.add(shapes.stone(rng, np.array([0.2, 0.13, 0.33]) * size, 0.1)[:2], skin[0])
        turn = np.array([*rng.uniform(-0.3, 0.3, 2), rng.uniform(0, 6.3)])
        self.move(body, place, turn, step, rng.normal(size=3) * swing * 0.2)
        head = self.add(shapes.stone(rng, np.array([0.11, 0.12, 0.15]) * size, 0.05)[:2], skin[1])
        head.parent, neck = body, np.array([0, 0, 0.46 * size])
        spin = rng.normal(size=3) * swing * 0.3
        self.move(head, neck, rng.normal(size=3) * 0.2, STILL, spin)
        arm, leg = (0.2, 0.24, 0.32, 0.065), (0.1, -0.28, 0.45, 0.09)
        for side in (-1, 1):
            for part, (beside, above, length, thick) in ((1, arm), (2, leg)):
                upper = self.add(shapes.limb(length * size, thick * size), skin[part])
                upper.parent, joint = body, np.array([side * beside, 0, above]) * size
                turn = np.array([rng.uniform(-0.9, 0.9), -side * rng.uniform(0, 0.8), 0])
                self.move(upper, joint, turn, STILL, rng.normal(size=3) * swing)
                lower = self.add(shapes.limb(0.95 * length * size, 0.7 * thick * size), skin[part])
                lower.parent, joint = upper, np.array([0, 0, -length * size])
                turn = np.array([rng.uniform(-1.2, 0.2), 0, 0])
                self.move(lower, joint, turn, STILL, rng.normal(size=3) * swing)

    def sky(self) -> None:
        """Add a large ball around everything, which is seen, but casts neither light nor shade."""
        points, faces = shapes.sphere(48, 24)
        dome = self.add((150 * points, faces), self.paint.sky())
        dome.visible_diffuse = dome.visible_shadow = False

    def lights(self, inside: bool) -> None:
        """Add light from everywhere, perhaps the sun, and lamps."""
        rng = self.rng
        world = bpy.data.worlds.new("world")
        self.scene.world, world.use_nodes = world, True
        nodes, links = world.node_tree.nodes, world.node_tree.links
        nodes.clear()
        shine, out = nodes.new("ShaderNodeBackground"), nodes.new("ShaderNodeOutputWorld")
        links.new(shine.outputs[0], out.inputs[0])
        shine.inputs["Color"].default_value = np.append(rng.uniform(0.5, 1, 3), 1)
        shine.inputs["Strength"].default_value = rng.uniform(0.2, 0.9)
        if not inside and self.chance(0.75):
            sun = bpy.data.lights.new("sun", "SUN")
            sun.energy, sun.angle = rng.uniform(1, 5), rng.uniform(0.01, 0.3)
            thing = bpy.data.objects.new("sun", sun)
            thing.rotation_euler = [rng.uniform(0.1, 1.2), 0, rng.uniform(0, 6.3)]
            self.scene.collection.objects.link(thing)
        for _ in range(rng.integers(1, 4) if inside else rng.integers(0, 2)):
            lamp = bpy.data.lights.new("lamp", "AREA")
            lamp.energy, lamp.size = rng.uniform(100, 600), rng.uniform(0.2, 2)
            thing = bpy.data.objects.new("lamp", lamp)
            thing.location = [rng.uniform(-3, 3), rng.uniform(0, 8), rng.uniform(2.2, 4)]
            self.scene.collection.objects.link(thing)

    def camera(self, height: float, tilt: float, step: Floats, spin: Floats) -> None:
        """Add the camera and its motion; a quarter of the cameras has a depth of field."""
        rng = self.rng
        data = bpy.data.cameras.new("camera")
        data.sensor_width, data.lens = 36, 36 * self.focal / self.width
        data.clip_start, data.clip_end = 0.05, 1000
        data.dof.use_dof = self.chance(0.25)
        data.dof.focus_distance = log_uniform(rng, 1.5, 15)
        data.dof.aperture_fstop = rng.uniform(0.4, 3)
        camera = self.scene.camera = bpy.data.objects.new("camera", data)
        self.scene.collection.objects.link(camera)
        turn = np.array([np.pi / 2 + tilt, rng.uniform(-0.08, 0.08), rng.uniform(-0.15, 0.15)])
        self.move(camera, np.array([0, 0, height]), turn, step, spin)


def _straight(block: bpy.types.ID) -> None:
    """Let all that changes change evenly from frame to frame."""
    for layer in block.animation_data.action.layers:
        for strip in layer.strips:
            for bag in strip.channelbags:
                for curve in bag.fcurves:
                    for point in curve.keyframe_points:
                        point.interpolation = "LINEAR"

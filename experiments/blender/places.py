"""Five kinds of places, with the things in them."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from experiments.blender import shapes
from experiments.blender.materials import log_uniform
from experiments.blender.scene import STILL, Scene

EYES = 1.7  # meters, how high the camera is above the ground


def landscape(rng: np.random.Generator, photographs: list[Path]) -> Scene:
    """Return hilly ground with things on it, and mountains behind them."""
    scene, moving = _begun(rng, photographs)
    scene.add(shapes.ground(rng, 0, rng.uniform(0, 1.5) ** 2, 80), scene.paint.material())
    for _ in range(rng.integers(0, 4)):
        scene.add(shapes.mountains(rng, rng.uniform(25, 80)))
    for _ in range(rng.integers(5, 30)):
        x, y, view = scene.somewhere(3, 35)
        step = scene.step_at(y, 0.7) * [1, 1, 0.3] * scene.chance(moving)
        scene.thing(np.array([x, y, 0]), min(4, view * rng.uniform(0.08, 0.45)), step)
    return _ended(scene, EYES)


def near(rng: np.random.Generator, photographs: list[Path]) -> Scene:
    """Return a close-up of figures or other things."""
    scene, moving = _begun(rng, photographs)
    mesh = shapes.ground(rng, rng.uniform(-0.5, 0.5), rng.uniform(0, 0.6), 80)
    scene.add(mesh, scene.paint.material())
    for _ in range(rng.integers(0, 5)):
        x, y, view = scene.somewhere(8, 40)
        step = scene.step_at(y, 0.4) * scene.chance(moving)
        scene.thing(np.array([x, y, 0]), view * rng.uniform(0.1, 0.4), step)
    for _ in range(rng.integers(1, 4)):
        x, y, view = scene.somewhere(1.2, 4)
        z = EYES + rng.uniform(-0.6, 0.1) * view * scene.height / scene.width
        place, step = np.array([0.8 * x, y, z]), scene.step_at(y) * scene.chance(0.8)
        if scene.chance(0.6):
            scene.figure(place, view * rng.uniform(0.5, 1.3), step)
        else:
            scene.thing(place, view * rng.uniform(0.3, 0.9), step)
    return _ended(scene, EYES)


def air(rng: np.random.Generator, photographs: list[Path]) -> Scene:
    """Return things that fly in front of a wall."""
    scene, moving = _begun(rng, photographs)
    scene.add(shapes.backdrop(rng))
    for _ in range(rng.integers(6, 22)):
        x, y, view = scene.somewhere(2, 12)
        z = rng.uniform(-0.5, 0.5) * view * scene.height / scene.width
        step = scene.step_at(y) * scene.chance(moving)
        scene.thing(np.array([x, y, z]), view * rng.uniform(0.08, 0.5), step)
    return _ended(scene, 0)


def room(rng: np.random.Generator, photographs: list[Path]) -> Scene:
    """Return a room with lamps and things in it."""
    scene, moving = _begun(rng, photographs, inside=True)
    side, depth, high = rng.uniform(2.5, 5), rng.uniform(5, 10), rng.uniform(2.6, 4)
    middle, long, half = depth / 2 - 1, depth + 3, math.pi / 2
    for place, turn, size in (
        ((0, middle, 0), (0, 0, 0), (2 * side, long)),
        ((0, middle, high), (math.pi, 0, 0), (2 * side, long)),
        ((-side, middle, high / 2), (0, half, 0), (high, long)),
        ((side, middle, high / 2), (0, -half, 0), (high, long)),
        ((0, depth, high / 2), (half, 0, 0), (2 * side, high)),
    ):
        wall = scene.add(shapes.wall(*size), scene.paint.material(0.2), smooth=False)
        scene.move(wall, np.array(place), np.array(turn))
    for _ in range(rng.integers(4, 14)):
        x, y, view = scene.somewhere(1.5, depth - 0.5)
        z = rng.uniform(0, 1) * scene.chance(0.4)
        place = np.array([np.clip(x, 0.3 - side, side - 0.3), y, z])
        step = scene.step_at(y) * scene.chance(moving)
        scene.thing(place, min(1.8, view * rng.uniform(0.15, 0.7)), step)
    return _ended(scene, EYES)


def street(rng: np.random.Generator, photographs: list[Path]) -> Scene:
    """Return a street with houses, poles, trees, cars and walkers, from a car that drives."""
    scene, moving = _begun(rng, photographs, (736, 240))
    scene.add(shapes.ground(rng, 0, 0.03, 100), scene.paint.material())
    half = rng.uniform(4, 8)
    for side in (-1, 1):
        y = rng.uniform(-4, 6)
        while y < 90:
            size = rng.uniform([3, 4, 3], [8, 14, 12])
            x = side * (half + size[0] / 2 + rng.uniform(0, 2))
            house = scene.add(shapes.box(size), smooth=False)
            scene.move(house, np.array([x, y + size[1] / 2, 0]))
            y += size[1] + rng.uniform(0, 6) * scene.chance(0.4)
        for y in np.arange(rng.uniform(3, 8), 60, rng.uniform(6, 15)):
            place = np.array([side * (half - 0.6), y, 0])
            if scene.chance(0.7):
                pole = scene.add(shapes.box(np.array([0.12, 0.12, 5])), smooth=False)
                scene.move(pole, place)
            else:
                tree = shapes.stone(rng, np.array([1.2, 1.2, 1.8]), 0.3)
                scene.move(scene.add(tree[:2]), place + np.array([0, 0, 1.8]))
    for _ in range(rng.integers(2, 9)):
        place = np.array([rng.uniform(-half, half), log_uniform(rng, 6, 45), 0])
        if scene.chance(0.6):
            car = scene.add(shapes.box(np.array([1.8, 4.2, rng.uniform(1.3, 2.5)])), smooth=False)
            step = np.array([0, rng.uniform(-1, 1.2) * scene.chance(moving), 0])
            scene.move(car, place, np.array([0, 0, rng.uniform(-0.2, 0.2)]), step)
        else:
            step = scene.step_at(place[1], 0.5) * [1, 1, 0] * scene.chance(moving)
            scene.thing(place, rng.uniform(1, 2), step)
    step = np.array([rng.uniform(-0.05, 0.05), rng.uniform(0, 1.4), 0])
    spin = rng.normal(size=3) * [0.002, 0.001, 0.012]
    scene.camera(EYES, rng.uniform(-0.05, 0.03), step, spin)
    return scene


# In turns; what is near is hardest, and is most of what films show.
PLACES = (landscape, near, air, room, street, landscape, near, near)


def _begun(
    rng: np.random.Generator,
    photographs: list[Path],
    size: tuple[int, int] | None = None,
    *,
    inside: bool = False,
) -> tuple[Scene, float]:
    """Return a scene with lights and the sky, and which share of its things moves."""
    scene = Scene(rng, photographs, size)
    scene.lights(inside)
    if not inside:
        scene.sky()
    return scene, rng.uniform(0.2, 0.9)


def _ended(scene: Scene, height: float) -> Scene:
    """Return the scene with a camera, which moves in three of four scenes."""
    rng, step, spin = scene.rng, STILL, STILL
    if scene.chance(0.75):
        pan = scene.speed * rng.uniform(0, 0.8) * rng.random() / scene.focal
        spin = rng.normal(size=3) * [0.5, 0.3, 0.9] * pan
        step = scene.step_at(4.0, 0.8) * scene.chance(0.7)
    scene.camera(height, rng.uniform(-0.25, 0.12), step, spin)
    return scene

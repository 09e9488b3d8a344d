"""Materials: photographs, patterns and colors, more or less rough and glossy."""

from __future__ import annotations

import math

import bpy
import numpy as np

REST = "rest"  # the attribute of meshes with the places of their vertices in the first form
PATTERNS = ("Noise", "Voronoi", "Wave", "Checker", "Brick")


def any_color(rng: np.random.Generator) -> np.ndarray:
    """Return red, green, blue and 1, seldom vivid."""
    gray, vivid = rng.uniform(0.02, 0.9) ** 1.5, rng.uniform(0.02, 0.9, 3) ** 1.5
    return np.append(gray + (vivid - gray) * rng.random() ** 1.5, 1.0)


def log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    """Return a number whose logarithm is uniform."""
    return float(np.exp(rng.uniform(math.log(low), math.log(high))))


class Paint:
    """Makes materials of some images."""

    def __init__(self, rng: np.random.Generator, images: list[bpy.types.Image]) -> None:
        self.rng, self.images = rng, images

    def material(self, plain: float = 0.12) -> bpy.types.Material:
        """Return a material, of one color with probability `plain`."""
        rng = self.rng
        result = bpy.data.materials.new("material")
        result.use_nodes = True
        self.tree = result.node_tree
        shader = next(node for node in self.tree.nodes if node.type == "BSDF_PRINCIPLED")
        shader.inputs["Roughness"].default_value = rng.uniform(0.15, 1.0)
        shader.inputs["Metallic"].default_value = rng.uniform(0, 1) * (rng.random() < 0.15)
        color = any_color(rng)
        shader.inputs["Base Color"].default_value = color
        kind = rng.random()
        if kind < plain:
            return result
        where = self._mapping(log_uniform(rng, 0.4, 4))
        out = self._photograph(where, color) if kind < 0.65 else self._pattern(where)
        if rng.random() < 0.6:
            out = self._grain(where, out)
        self.tree.links.new(out, shader.inputs["Base Color"])
        return result

    def sky(self) -> bpy.types.Material:
        """Return a material that shines: a photograph, clouds or one color."""
        rng = self.rng
        result = bpy.data.materials.new("sky")
        result.use_nodes = True
        self.tree = result.node_tree
        self.tree.nodes.clear()
        light, out = self._node("Emission"), self._node("OutputMaterial")
        light.inputs["Strength"].default_value = rng.uniform(0.4, 1.0)
        light.inputs["Color"].default_value = np.append(rng.uniform(0.3, 0.9, 3), 1)
        kind = rng.random()
        if kind < 0.5:
            color = self._image(self._mapping(rng.uniform(0.003, 0.01)))
            self.tree.links.new(color, light.inputs["Color"])
        elif kind < 0.8:
            clouds = self._texture("Noise", self._mapping(1), rng.uniform(0.02, 0.06), 6)
            colors = [np.append(rng.uniform(0.3, 0.95, 3), 1) for _ in range(2)]
            self.tree.links.new(self._ramp(clouds, colors, 0.3, 0.7), light.inputs["Color"])
        self.tree.links.new(light.outputs["Emission"], out.inputs["Surface"])
        return result

    def _node(self, name: str):  # type: ignore[no-untyped-def]
        return self.tree.nodes.new(f"ShaderNode{name}")

    def _mapping(self, scale: float):  # type: ignore[no-untyped-def]
        """Return places on an object, turned at random, which stick to it when its form changes."""
        place, mapping = self._node("Attribute"), self._node("Mapping")
        place.attribute_name = REST
        mapping.inputs["Scale"].default_value = [scale] * 3
        mapping.inputs["Rotation"].default_value = self.rng.uniform(0, 3, 3)
        self.tree.links.new(place.outputs["Vector"], mapping.inputs["Vector"])
        return mapping.outputs["Vector"]

    def _image(self, where):  # type: ignore[no-untyped-def]
        node = self._node("TexImage")
        node.image = self.images[self.rng.integers(len(self.images))]
        node.projection, node.projection_blend, node.extension = "BOX", 0.2, "MIRROR"
        self.tree.links.new(where, node.inputs["Vector"])
        return node.outputs["Color"]

    def _photograph(self, where, color):  # type: ignore[no-untyped-def]
        out = self._image(where)
        if self.rng.random() < 0.4:  # a dull one
            out = self._mixed(out, None, self.rng.uniform(0.4, 0.9), "MIX", color)
        return out

    def _pattern(self, where):  # type: ignore[no-untyped-def]
        rng = self.rng
        name = str(rng.choice(PATTERNS))
        out = self._texture(name, where, log_uniform(rng, 1.5, 15), rng.uniform(0, 6))
        low = rng.uniform(0.1, 0.45)
        colors = [any_color(rng), any_color(rng)]
        return self._ramp(out, colors, low, low + rng.uniform(0.1, 0.5))

    def _grain(self, where, color):  # type: ignore[no-untyped-def]
        grain = self._texture("Noise", where, log_uniform(self.rng, 8, 60), 4)
        return self._mixed(color, grain, self.rng.uniform(0.2, 1), "OVERLAY")

    def _texture(self, name: str, where, scale: float, detail: float):  # type: ignore[no-untyped-def]
        node = self._node(f"Tex{name}")
        node.inputs["Scale"].default_value = scale
        if "Detail" in node.inputs:
            node.inputs["Detail"].default_value = detail
        self.tree.links.new(where, node.inputs["Vector"])
        return node.outputs.get("Fac") or node.outputs.get("Distance") or node.outputs[0]

    def _ramp(self, value, colors, low: float, high: float):  # type: ignore[no-untyped-def]
        ramp = self._node("ValToRGB")
        ends = zip(ramp.color_ramp.elements, colors, (low, high), strict=True)
        for element, color, position in ends:
            element.color, element.position = color, position
        self.tree.links.new(value, ramp.inputs["Fac"])
        return ramp.outputs["Color"]

    def _mixed(self, one, other, share, blend, color=None):  # type: ignore[no-untyped-def]
        mix = self._node("MixRGB")
        mix.blend_type = blend
        mix.inputs["Fac"].default_value = share
        self.tree.links.new(one, mix.inputs["Color1"])
        if other is None:
            mix.inputs["Color2"].default_value = color
        else:
            self.tree.links.new(other, mix.inputs["Color2"])
        return mix.outputs["Color"]

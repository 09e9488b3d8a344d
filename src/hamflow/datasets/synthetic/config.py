"""The settings of synthetic scenes."""

from __future__ import annotations

from dataclasses import dataclass

from hamflow._check import check_range
from hamflow.errors import InputError

SMALLEST = 32
LARGEST = 4096
# Fields from 0 to 1.
_SHARES = (
    *("small_share", "camera_share", "still_share", "affine_share", "elastic_share"),
    *("thin_share", "procedural_share", "dull_share", "articulated_share", "perspective_share"),
    "curved_share",
    *("illumination", "illumination_strength", "shadow", "shadow_strength", "fog", "fog_strength"),
    *("specular", "specular_strength"),
    *("motion_blur", "shutter", "defocus", "noise", "vignette", "vignette_strength", "jpeg"),
)


@dataclass(frozen=True)
class SyntheticConfig:
    """Size, motion and appearance of synthetic scenes.

    Probabilities are per scene unless another unit is given; strengths are upper limits.

    Parameters
    ----------
    height : int
        Height of the frames in pixels, 32 to 4096.
    width : int
        Width of the frames in pixels, 32 to 4096.
    max_displacement : float
        No pixel moves farther than this, in pixels. Displacements are drawn log-uniformly, so most
        motions are small and a few reach this limit.
    min_displacement : float
        The lower end of that log-uniform distribution.
    min_layers : int
        How many layers there are at least in front of the background.
    max_layers : int
        How many layers there are at most in front of the background.
    small_share : float
        Probability that nothing moves more than a few pixels.
    camera_share : float
        Probability that the camera moves far.
    still_share : float
        Probability that a layer has no motion of its own, and that the camera stands still.
    affine_share : float
        Probability that a layer is sheared and stretched, not only moved, rotated and scaled.
    elastic_share : float
        Probability that a layer is bent.
    max_rotation : float
        Largest rotation of a layer, in radians.
    max_zoom : float
        Largest zoom of a layer: 0.25 makes it a quarter larger or smaller.
    max_strain : float
        Bound on the derivative of the bending; below 1 the bending is invertible.
    thin_share : float
        Probability that a layer is a thin structure: wires, poles, fences, branches, letters.
    procedural_share : float
        Probability that a layer has a procedural texture although there are photographs.
    dull_share : float
        Probability that a layer is dark or of low contrast.
    articulated_share : float
        Probability that a layer is a chain of two to five limbs whose joints turn, each of them a
        layer of its own.
    perspective_share : float
        Probability that a scene is in space: ground, walls, boxes, poles and flying things before
        a moving camera. Of the settings of layers, such a scene uses `small_share`, `still_share`,
        `thin_share`, `procedural_share` and `dull_share`.
    curved_share : float
        Probability that a thing of a scene in space is curved: a tube, a ball, hills or waving
        cloth instead of a box or a flat thing.
    clean : bool
        Turn off all effects below. Then the second frame, warped by the flow, is the first one
        in all visible pixels.
    illumination : float
        Probability of a change of gain, gamma, color cast and light from the side.
    illumination_strength : float
        Strength of this change.
    shadow : float
        Probability of soft shadows that move over the scene.
    shadow_strength : float
        Strength of these shadows.
    specular : float
        Probability of reflections of lamps: bright spots that do not move with the surface.
    specular_strength : float
        Strength of these reflections.
    fog : float
        Probability of fog: the contrast falls with the distance.
    fog_strength : float
        Strength of the fog.
    motion_blur : float
        Probability of motion blur.
    shutter : float
        Share of the time between the frames in which the shutter is open at most.
    max_blur : float
        How long motion blur is at most, as a share of the shorter side of the frame, to 0.5: 0.1
        is 26 pixels in frames of 256×256, and 0.25 is 64. Long blur also needs fast motion and a
        shutter that is open for long.
    defocus : float
        Probability of layers or frames that are out of focus.
    defocus_strength : float
        Standard deviation of their blur in pixels.
    noise : float
        Probability of shot and read noise.
    noise_strength : float
        Standard deviation of the noise in gray levels.
    vignette : float
        Probability of darker corners.
    vignette_strength : float
        Strength of this darkening.
    jpeg : float
        Probability of JPEG compression.
    """

    height: int = 256
    width: int = 256
    max_displacement: float = 80.0
    min_displacement: float = 0.3
    min_layers: int = 2
    max_layers: int = 12
    small_share: float = 0.2
    camera_share: float = 0.2
    still_share: float = 0.12
    affine_share: float = 0.3
    elastic_share: float = 0.5
    max_rotation: float = 0.5
    max_zoom: float = 0.25
    max_strain: float = 0.2
    thin_share: float = 0.3
    procedural_share: float = 0.12
    dull_share: float = 0.2
    articulated_share: float = 0.0
    perspective_share: float = 0.0
    curved_share: float = 0.0
    clean: bool = False
    illumination: float = 0.5
    illumination_strength: float = 0.3
    shadow: float = 0.3
    shadow_strength: float = 0.6
    specular: float = 0.0
    specular_strength: float = 0.8
    fog: float = 0.2
    fog_strength: float = 0.6
    motion_blur: float = 0.25
    shutter: float = 0.5
    max_blur: float = 0.1
    defocus: float = 0.3
    defocus_strength: float = 2.5
    noise: float = 0.5
    noise_strength: float = 8.0
    vignette: float = 0.2
    vignette_strength: float = 0.5
    jpeg: float = 0.1

    def __post_init__(self) -> None:
        for side in ("height", "width"):
            check_range(self, side, SMALLEST, LARGEST, whole=True)
        check_range(self, "min_layers", 0, 100, whole=True)
        check_range(self, "max_layers", self.min_layers, 100, whole=True)
        check_range(self, "min_displacement", 0.01, 4096)
        check_range(self, "max_displacement", self.min_displacement, 4096)
        check_range(self, "max_rotation", 0, 1)
        check_range(self, "max_zoom", 0, 0.5)
        check_range(self, "max_strain", 0, 0.5)
        check_range(self, "max_blur", 0, 0.5)
        check_range(self, "defocus_strength", 0, 20)
        check_range(self, "noise_strength", 0, 100)
        for name in _SHARES:
            check_range(self, name, 0, 1)
        if self.small_share + self.camera_share > 1:
            raise InputError(
                "The sum of small_share and camera_share must be at most 1, but they are "
                f"{self.small_share} and {self.camera_share}."
            )


def longest_blur(config: SyntheticConfig) -> float:
    """Return the greatest length of motion blur in pixels."""
    return config.max_blur * min(config.height, config.width)

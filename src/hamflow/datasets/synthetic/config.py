"""What a synthetic scene is drawn from."""

from __future__ import annotations

from dataclasses import dataclass

from hamflow._check import check_range
from hamflow.errors import InputError

SMALLEST = 32
_LONGEST_BLUR = 0.1  # of the shorter side
LARGEST = 4096
# Fields in 0..1.
_SHARES = (
    *("small_share", "camera_share", "still_share", "affine_share", "elastic_share"),
    *("thin_share", "procedural_share", "dull_share"),
    *("illumination", "illumination_strength", "shadow", "shadow_strength", "fog", "fog_strength"),
    *("motion_blur", "shutter", "defocus", "noise", "vignette", "vignette_strength", "jpeg"),
)


@dataclass(frozen=True)
class SyntheticConfig:
    """Size, motion and appearance of synthetic scenes.

    Chances are per scene if nothing else is said, strengths are the largest that are drawn.

    Parameters
    ----------
    height, width : int
        Size of the frames in pixels, 32 to 4096 each.
    max_displacement : float
        No pixel moves farther than this, in pixels. How far things move is drawn log-uniformly, so
        most motions are small and a few reach this limit.
    min_displacement : float
        Where that log-uniform distribution starts.
    min_layers, max_layers : int
        How many things there are in front of the background.
    small_share, camera_share : float
        Shares of the scenes in which nothing moves more than a few pixels, and in which the camera
        moves far.
    still_share : float
        Chance that a layer has no motion of its own, and that the camera stands still.
    affine_share : float
        Chance that a layer is sheared and stretched, not only moved, turned and scaled.
    elastic_share : float
        Chance that a layer is bent.
    max_rotation : float
        Of a layer, in radians.
    max_zoom : float
        Of a layer: 0.25 is a quarter larger or smaller.
    max_strain : float
        Bound on the derivative of the bending; below 1 the bending is invertible.
    thin_share : float
        Chance that a layer is a thin structure: wires, poles, fences, branches, letters.
    procedural_share : float
        Chance that a layer has a procedural texture though there are photographs.
    dull_share : float
        Chance that a layer is dark or of low contrast.
    clean : bool
        Turn off all that follows. Then the second frame, warped by the flow, is the first one
        wherever it is visible.
    illumination, illumination_strength : float
        Chance and strength of a change of gain, gamma, color cast and light from the side.
    shadow, shadow_strength : float
        Of soft shadows that move over the scene.
    fog, fog_strength : float
        Of fog: the contrast falls with the distance.
    motion_blur, shutter : float
        Chance of motion blur, and for which part of the time between frames the shutter is open.
    defocus, defocus_strength : float
        Of blurred layers or frames; the strength is a standard deviation in pixels.
    noise, noise_strength : float
        Of shot and read noise; the strength is a standard deviation in gray levels.
    vignette, vignette_strength : float
        Of darker corners.
    jpeg : float
        Chance of JPEG compression.

    Raises
    ------
    InputError
        If a value is outside of its range.
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
    clean: bool = False
    illumination: float = 0.5
    illumination_strength: float = 0.3
    shadow: float = 0.3
    shadow_strength: float = 0.6
    fog: float = 0.2
    fog_strength: float = 0.6
    motion_blur: float = 0.25
    shutter: float = 0.5
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
        check_range(self, "defocus_strength", 0, 20)
        check_range(self, "noise_strength", 0, 100)
        for name in _SHARES:
            check_range(self, name, 0, 1)
        if self.small_share + self.camera_share > 1:
            raise InputError(
                "small_share and camera_share must not be more than 1 together, but are "
                f"{self.small_share} and {self.camera_share}."
            )


def longest_blur(config: SyntheticConfig) -> float:
    """Return how long motion blur may be, in pixels: all of a fast thing would be but a smear."""
    return _LONGEST_BLUR * min(config.height, config.width)

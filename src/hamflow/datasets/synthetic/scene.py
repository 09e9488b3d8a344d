"""Random scenes, and data sets of them."""

from __future__ import annotations

import operator
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, SupportsIndex, overload

import numpy as np
from numpy.typing import NDArray

from hamflow.datasets.synthetic.compose import Canvas, Surface, composite, truth
from hamflow.datasets.synthetic.config import SyntheticConfig
from hamflow.datasets.synthetic.effects import draw_effects, film, to_picture
from hamflow.datasets.synthetic.perspective import set_perspective
from hamflow.datasets.synthetic.stage import set_stage
from hamflow.datasets.synthetic.textures import TextureSet, load_textures
from hamflow.errors import InputError

_GEOMETRY, _EFFECTS, _NOISE, _KIND = range(4)  # each has its own random numbers


@dataclass(frozen=True, eq=False)
class SyntheticScene:
    """Two frames and the true flow between them.

    Attributes
    ----------
    image0, image1 : (H, W, 3) uint8
        The frames, RGB.
    flow : (H, W, 2) float32
        From `image0` to `image1`, also for occluded pixels.
    occluded : (H, W) bool
        Whether the pixel of `image0` is covered or outside of the frame in `image1`.
    backward_flow : (H, W, 2) float32
        From `image1` to `image0`.
    backward_occluded : (H, W) bool
        Whether the pixel of `image1` is covered or outside of the frame in `image0`.
    """

    image0: NDArray[np.uint8]
    image1: NDArray[np.uint8]
    flow: NDArray[np.float32]
    occluded: NDArray[np.bool_]
    backward_flow: NDArray[np.float32]
    backward_occluded: NDArray[np.bool_]


def render_scene(
    config: SyntheticConfig, seed: int | Sequence[int], textures: TextureSet
) -> SyntheticScene:
    """Render a random scene.

    Parameters
    ----------
    config : SyntheticConfig
        The settings.
    seed : int or sequence of int
        Not negative. The same seed, settings and textures give the same bytes.
    textures : TextureSet
        From `load_textures`.

    Returns
    -------
    scene : SyntheticScene
        Frames, flow and occlusions. Flow and occlusions do not depend on the effects, so
        `config.clean` changes only the frames.

    Examples
    --------
    >>> from hamflow.datasets.synthetic import SyntheticConfig, load_textures, render_scene
    >>> scene = render_scene(SyntheticConfig(height=48, width=64), 0, load_textures())
    >>> scene.image0.shape, scene.flow.shape
    ((48, 64, 3), (48, 64, 2))
    """
    return render_sequence(config, seed, textures, frames=2)[0]


def render_both(
    config: SyntheticConfig, seed: int | Sequence[int], textures: TextureSet
) -> tuple[SyntheticScene, SyntheticScene]:
    """Render a scene twice: without and with effects; see `render_scene`."""
    scene = SyntheticFilm(config, seed, textures)
    known = scene.truths()
    return _pairs(scene.clean(), known)[0], _pairs(scene.filmed(), known)[0]


def render_sequence(
    config: SyntheticConfig, seed: int | Sequence[int], textures: TextureSet, frames: int = 3
) -> list[SyntheticScene]:
    """Render several frames of a random scene, in which all motions go on.

    Parameters
    ----------
    config, seed, textures
        As for `render_scene`.
    frames : int
        How many frames, at least 2.

    Returns
    -------
    pairs : list of SyntheticScene
        Each two consecutive frames: `image1` of one pair is `image0` of the next. In scenes in
        space, the limit of the motion holds for all pairs, in others for the first one. Other
        numbers of frames give other scenes.

    Examples
    --------
    >>> from hamflow.datasets.synthetic import SyntheticConfig, load_textures, render_sequence
    >>> pairs = render_sequence(SyntheticConfig(height=48, width=64), 0, load_textures(), frames=3)
    >>> len(pairs), bool((pairs[0].image1 == pairs[1].image0).all())
    (2, True)
    """
    scenes = SyntheticFilm(config, seed, textures, frames)
    return _pairs(scenes.images, scenes.truths())


_Image = NDArray[np.uint8]
_Truth = tuple[NDArray[np.float32], NDArray[np.bool_], NDArray[np.float32], NDArray[np.bool_]]


def render_layers(canvas: Canvas, layers: Sequence[Surface]) -> SyntheticScene:
    """Render layers, from back to front, without effects."""
    return _pairs(_clean(canvas, layers, 2), [_truth(canvas, layers, 0)])[0]


def _pairs(images: Sequence[_Image], truths: Sequence[_Truth]) -> list[SyntheticScene]:
    return [
        SyntheticScene(first, second, *known)
        for (first, second), known in zip(pairwise(images), truths, strict=True)
    ]


def _clean(canvas: Canvas, layers: Sequence[Surface], frames: int) -> list[_Image]:
    return [np.array(to_picture(composite(canvas, layers, frame))) for frame in range(frames)]


def _truth(canvas: Canvas, layers: Sequence[Surface], first: int) -> _Truth:
    """Return flow and occlusions between two consecutive frames."""
    second = first + 1
    return (*truth(canvas, layers, first, second), *truth(canvas, layers, second, first))


class SyntheticFilm:
    """Several frames of a random scene, and the truth between any two of them.

    Parameters
    ----------
    config, seed, textures, frames
        As for `render_sequence`, which gives the truth only between consecutive frames.

    Attributes
    ----------
    canvas : Canvas
        The pixels of the frames.
    surfaces : sequence of Surface
        What the scene is made of, from back to front.

    Examples
    --------
    >>> from hamflow.datasets.synthetic import SyntheticConfig, SyntheticFilm, load_textures
    >>> film = SyntheticFilm(SyntheticConfig(height=48, width=64), 0, load_textures(), frames=5)
    >>> flow, occluded = film.truth(0, 4)
    >>> len(film.images), flow.shape
    (5, (48, 64, 2))
    """

    def __init__(
        self,
        config: SyntheticConfig,
        seed: int | Sequence[int],
        textures: TextureSet,
        frames: int = 2,
    ) -> None:
        if frames < 2:
            raise InputError(f"frames must be at least 2, but is {frames}.")
        self._entropy = _entropy(seed)
        self._config = config
        self._frames = frames
        self.canvas = Canvas(config.height, config.width)
        in_space = self._rng(_KIND).uniform() < config.perspective_share
        self.surfaces: Sequence[Surface] = (set_perspective if in_space else set_stage)(
            self._rng(_GEOMETRY), config, textures, frames
        )

    def _rng(self, purpose: int) -> np.random.Generator:
        return np.random.default_rng([*self._entropy, purpose])

    @cached_property
    def images(self) -> list[_Image]:
        """The frames, (H, W, 3) uint8, with effects unless the settings turn them off."""
        return self.clean() if self._config.clean else self.filmed()

    def truth(self, first: int, second: int) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """Return the flow from one frame to another, and which of its pixels are occluded there.

        A pixel is followed by what it shows, through all that hides it in between.
        """
        return truth(self.canvas, self.surfaces, first, second)

    def truths(self) -> list[_Truth]:
        """Return flow and occlusions between each two consecutive frames."""
        return [_truth(self.canvas, self.surfaces, k) for k in range(self._frames - 1)]

    def clean(self) -> list[_Image]:
        """Render the frames without effects."""
        return _clean(self.canvas, self.surfaces, self._frames)

    def filmed(self) -> list[_Image]:
        """Render the frames with effects."""
        effects = draw_effects(self._rng(_EFFECTS), self._config, self.surfaces, self._frames)
        dressed = effects.dress(self.surfaces)
        noise = self._rng(_NOISE)
        return [film(noise, self.canvas, dressed, effects, k) for k in range(self._frames)]


def _entropy(seed: int | Sequence[int]) -> list[int]:
    numbers = [operator.index(seed)] if isinstance(seed, SupportsIndex) else list(seed)
    if not numbers or min(numbers) < 0:
        raise InputError(f"seed must not be negative, but is {seed}.")
    return numbers


class SyntheticDataset(Sequence[SyntheticScene]):
    """Random scenes, rendered on access.

    ``dataset[i]`` depends only on the settings, the seed, the photographs and `i`: every process
    gives the same bytes, in any order. A pickle of it is small, because the photographs are read
    again where it is used.

    Parameters
    ----------
    config : SyntheticConfig
        The settings of the scenes.
    folder : str or os.PathLike, optional
        Photographs, as in `load_textures`.
    seed : int
        Another seed gives other scenes.
    size : int
        How many scenes there are.
    """

    def __init__(
        self,
        config: SyntheticConfig | None = None,
        folder: str | os.PathLike[str] | None = None,
        seed: int = 0,
        size: int = 1000,
    ) -> None:
        if size < 1:
            raise InputError(f"size must be at least 1, but is {size}.")
        _entropy(seed)
        self.config = SyntheticConfig() if config is None else config
        self.folder = None if folder is None else os.fspath(folder)
        self.seed = seed
        self.size = size
        self._textures: TextureSet | None = load_textures(self.folder)

    def __len__(self) -> int:
        return self.size

    @overload
    def __getitem__(self, index: int) -> SyntheticScene: ...
    @overload
    def __getitem__(self, index: slice) -> list[SyntheticScene]: ...
    def __getitem__(self, index: int | slice) -> SyntheticScene | list[SyntheticScene]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(self.size))]
        return render_scene(self.config, self._seeds(index), self.textures)

    def both(self, index: int) -> tuple[SyntheticScene, SyntheticScene]:
        """Return a scene without and with effects, as `render_both` does."""
        return render_both(self.config, self._seeds(index), self.textures)

    def _seeds(self, index: int) -> list[int]:
        number = operator.index(index)
        if not -self.size <= number < self.size:
            raise IndexError(f"scene {index} of {self.size}")
        return [self.seed, number % self.size]

    @property
    def textures(self) -> TextureSet:
        """The textures of the scenes."""
        if self._textures is None:
            self._textures = load_textures(self.folder)
        return self._textures

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_textures": None}

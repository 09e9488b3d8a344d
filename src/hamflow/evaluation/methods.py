"""Everything that can be measured, by name: presets, the paper's models, OpenCV's methods."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hamflow._scale import enlarged_boxes, enlarged_smoothly, reduced
from hamflow.config import PRESETS, preset_config
from hamflow.crf import CrfConfig, solve
from hamflow.descriptors import Model, load_model
from hamflow.descriptors.model import shipped_file, shipped_models
from hamflow.errors import InputError
from hamflow.estimator import Estimator
from hamflow.evaluation.peers import opencv_methods, opencv_version
from hamflow.matching import float_min_projection, hybrid_min_projection, min_projection
from hamflow.visualize import to_bytes
from hamflow.window import Window, WindowLike

Image = NDArray[Any]

LOCAL = ("wta-ff", "wta-fq", "wta-qq")
"""The local model: winner takes all, with floats, with both, and with bits."""
JOINT = ("crf-f", "crf-q")
"""The joint model, with floats and with bits."""
PEER = "opencv-"
"""How the names of OpenCV's methods begin."""

_WINDOW = 128  # the paper's D
_EVERY_RUN = ("last", "best")


@dataclass(frozen=True, eq=False)
class Estimate:
    """What a method says about a pair, at full resolution.

    Attributes
    ----------
    flow : (H, W, 2) array of float32
    occlusion : (H, W) array of bool, or None
        Pixels of the first frame that are hidden in the second.
    confidence : (H, W) array of float32, or None
        The higher, the smaller the error should be.
    gap : float or None
        Duality gap of the joint model.
    """

    flow: NDArray[np.float32]
    occlusion: NDArray[np.bool_] | None = None
    confidence: NDArray[np.float32] | None = None
    gap: float | None = None


@dataclass(frozen=True)
class MethodConfig:
    """What to measure.

    Parameters
    ----------
    name : str
        A preset of the estimator or a TOML file that changes one; ``wta-ff``, ``wta-fq``,
        ``wta-qq`` (local model) or ``crf-f``, ``crf-q`` (joint model); or ``opencv-`` and one of
        OpenCV's methods, see `method_names`.
    model : str, optional
        Descriptor, as `hamflow.load_model` takes it; ``default`` for the local and the joint model,
        the preset's own for a preset.
    window : Window, int or tuple, optional
        Displacements to look at, in pixels of the reduced frames. Without it, D = 128 for the
        local and the joint model, and a preset decides by itself.
    scale : int
        Frames are reduced by this factor first, and the flow is brought back to full resolution.
    crf : CrfConfig, optional
        Parameters of ``crf-f`` and ``crf-q``: by default the paper's, 5×8 iterations.
    """

    name: str = "balanced"
    model: str | None = None
    window: WindowLike | None = None
    scale: int = 1
    crf: CrfConfig | None = None

    def __post_init__(self) -> None:
        if type(self.scale) is not int or self.scale < 1:
            raise InputError(f"scale must be a whole number, at least 1, not {self.scale!r}.")
        if self.window is not None:
            object.__setattr__(self, "window", Window.of(self.window))
        given = (self.model, self.window) != (None, None)
        if self.name.startswith(PEER) and given:
            raise InputError(f"{self.name} takes neither a model nor a window.")
        if self.crf is not None and self.name not in JOINT:
            raise InputError(
                f"Only {' and '.join(JOINT)} take parameters of the joint model; a preset has "
                "them in its TOML file."
            )

    @property
    def label(self) -> str:
        """A short name that also tells what is not as usual, fit for a table or a file."""
        parts = [self.stem]
        if self.model is not None:
            path = Path(self.model)
            # Every training run calls its weights alike; its folder has the name.
            parts.append(path.parent.name if path.stem in _EVERY_RUN else path.stem)
        if self.scale > 1:
            parts.append(f"scale{self.scale}")
        return "-".join(part for part in parts if part)

    @property
    def stem(self) -> str:
        """The name; of a file, without its folder and suffix."""
        return Path(self.name).stem if self.name.endswith(".toml") else self.name


def method_names() -> list[str]:
    """Return the names that `Method` knows, OpenCV's methods only where they are installed."""
    try:
        peers = sorted(_peers())
    except InputError:
        peers = []
    return [*PRESETS, *LOCAL, *JOINT, *peers]


class Method:
    """A method that is ready to estimate flow.

    Parameters
    ----------
    config : MethodConfig or str
        What to measure; a string is short for ``MethodConfig(name)``.

    Attributes
    ----------
    config : MethodConfig
    settings : dict
        All that the result depends on, ready for JSON: the same settings, the same flow.

    Raises
    ------
    InputError
        If there is no such method, or a package that it needs is not installed.
    FileError
        If a file that it needs cannot be read.

    Examples
    --------
    >>> import numpy as np
    >>> from hamflow.evaluation import Method, MethodConfig
    >>> image = np.random.default_rng(0).integers(0, 256, (40, 60, 3), np.uint8)
    >>> method = Method(MethodConfig("wta-qq", model="pairs", window=16))
    >>> method(image, np.roll(image, 3, axis=1)).flow[20, 30]
    array([3., 0.], dtype=float32)
    """

    def __init__(self, config: MethodConfig | str) -> None:
        self.config = MethodConfig(config) if isinstance(config, str) else config
        self._run, own = _prepared(self.config)
        self.settings: dict[str, Any] = {
            "method": self.config.stem,
            "scale": self.config.scale,
            **own,
        }

    @property
    def label(self) -> str:
        """As that of the config."""
        return self.config.label

    def __call__(self, image0: Image, image1: Image) -> Estimate:
        """Return the estimate for two frames of one size."""
        factor, shape = self.config.scale, (image0.shape[0], image0.shape[1])
        if min(shape) < factor:
            raise InputError(
                f"A frame of {shape[1]} × {shape[0]} pixels cannot be reduced {factor} times; "
                "use a smaller scale."
            )
        small = self._run(reduced(image0, factor), reduced(image1, factor))
        if factor == 1:
            return small
        # Labels are whole numbers that must not be mixed; other flows are smooth.
        whole = self.config.name in (*LOCAL, *JOINT)
        enlarge: Callable[..., Any] = enlarged_boxes if whole else enlarged_smoothly
        return replace(
            small,
            flow=enlarge(small.flow, factor, shape) * np.float32(factor),
            occlusion=_boxes(small.occlusion, factor, shape),
            confidence=_boxes(small.confidence, factor, shape),
        )


def _prepared(config: MethodConfig) -> tuple[Callable[[Image, Image], Estimate], dict[str, Any]]:
    """Return what estimates the flow of reduced frames, and its settings."""
    if config.name in LOCAL or config.name in JOINT:
        name = "default" if config.model is None else config.model
        window = Window.of(_WINDOW if config.window is None else config.window)
        model = load_model(name)
        settings = {"model": model_identity(name), "window": list(window.as_tuple())}
        if config.name in LOCAL:
            return _local(config.name, model, window), settings
        crf = CrfConfig.paper() if config.crf is None else config.crf
        return _joint(config.name, model, window, crf), settings | {"crf": asdict(crf)}
    if config.name.startswith(PEER):
        peers = _peers()
        if config.name not in peers:
            raise InputError(
                f"There is no method {config.name!r}; of OpenCV's, there are "
                f"{', '.join(sorted(peers))}."
            )
        return peers[config.name], {"opencv": opencv_version()}
    if config.name not in PRESETS and not config.name.endswith(".toml"):
        raise InputError(
            f"There is no method {config.name!r}; choose one of {', '.join(method_names())}, or "
            "name a .toml file."
        )
    return _preset(config)


def _preset(config: MethodConfig) -> tuple[Callable[[Image, Image], Estimate], dict[str, Any]]:
    window: Any = "auto" if config.window is None else config.window
    estimator = Estimator(preset_config(config.name), window=window, model=config.model)

    def run(image0: Image, image1: Image) -> Estimate:
        result = estimator.estimate(image0, image1)
        return Estimate(result.flow, result.occlusion, result.confidence, result.gap)

    settings = {
        "estimator": asdict(estimator.config) | {"model": model_identity(estimator.config.model)},
        "window": None if estimator.window is None else list(estimator.window.as_tuple()),
    }
    return run, settings


def _local(name: str, model: Model, window: Window) -> Callable[[Image, Image], Estimate]:
    def run(image0: Image, image1: Image) -> Estimate:
        if name == "wta-qq":
            projection: Any = min_projection(model.bits(image0), model.bits(image1), window)
        else:
            project = float_min_projection if name == "wta-ff" else hybrid_min_projection
            projection = project(model.describe(image0), model.describe(image1), window)
        return Estimate(projection.wta())

    return run


def _joint(
    name: str, model: Model, window: Window, crf: CrfConfig
) -> Callable[[Image, Image], Estimate]:
    def run(image0: Image, image1: Image) -> Estimate:
        if name == "crf-q":
            data: dict[str, Any] = {"bits0": model.bits(image0), "bits1": model.bits(image1)}
        else:
            data = {"phi0": model.describe(image0), "phi1": model.describe(image1)}
        result = solve(**data, image=image0, window=window, config=crf)
        return Estimate(result.flow, gap=result.gap)

    return run


def _peers() -> dict[str, Callable[[Image, Image], Estimate]]:
    def estimate(method: Callable[..., Any]) -> Callable[[Image, Image], Estimate]:
        return lambda first, second: Estimate(method(_color(first), _color(second)))

    return {
        PEER + name.split()[0].lower(): estimate(method)
        for name, method in opencv_methods().items()
    }


def _color(image: Image) -> NDArray[np.uint8]:
    pixels = to_bytes(image)
    return np.repeat(pixels[:, :, None], 3, axis=2) if pixels.ndim == 2 else pixels


def model_identity(model: str | os.PathLike[str]) -> str:
    """Return the name of a model and what tells it from others of the same name."""
    name = os.fspath(model)
    if name == "pairs":
        return name
    path = shipped_file(name) if name in shipped_models() else Path(name)
    return f"{path.name} sha256:{sha256(path.read_bytes()).hexdigest()[:16]}"


def _boxes(field: Any, factor: int, shape: tuple[int, int]) -> Any:
    return None if field is None else enlarged_boxes(field, factor, shape)

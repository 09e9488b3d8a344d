"""All methods that can be evaluated: presets, the paper's models, methods of OpenCV."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hamflow._check import to_rgb
from hamflow._scale import downsample, upsample_linear, upsample_nearest
from hamflow._types import Pixels
from hamflow.config import PRESETS, preset_config
from hamflow.crf import CrfConfig, solve
from hamflow.descriptors import Descriptor, load_model
from hamflow.descriptors.model import HAND_CRAFTED
from hamflow.errors import InputError
from hamflow.estimator import Estimator
from hamflow.evaluation.peers import opencv_methods, opencv_version
from hamflow.matching import float_min_projection, hybrid_min_projection, min_projection
from hamflow.window import Window, WindowLike

LOCAL = ("wta-ff", "wta-fq", "wta-qq")
"""The local model: winner takes all with float descriptors, float and binary, and binary."""
JOINT = ("crf-f", "crf-q")
"""The joint model, with float and with binary descriptors."""
PEER = "opencv-"
"""The prefix of the names of OpenCV's methods."""

_WINDOW = 128  # the paper's D
_TRAINING_FILES = ("last", "best")  # every training run gives its weights these names


@dataclass(frozen=True, eq=False)
class Estimate:
    """What a method estimates for a pair, at full resolution.

    Attributes
    ----------
    flow : (H, W, 2) array of float32
        The flow.
    occlusion : (H, W) array of bool, or None
        Pixels of the first frame that are occluded in the second.
    confidence : (H, W) array of float32, or None
        Higher means that a smaller error is expected.
    gap : float or None
        Duality gap of the joint model.
    """

    flow: NDArray[np.float32]
    occlusion: NDArray[np.bool_] | None = None
    confidence: NDArray[np.float32] | None = None
    gap: float | None = None


@dataclass(frozen=True)
class MethodConfig:
    """A method to evaluate.

    Parameters
    ----------
    name : str
        One of `method_names`, or a TOML file that changes a preset.
    model : str, optional
        Descriptor, as `hamflow.load_model` takes it. By default that of the preset, or ``default``
        for the local and the joint model.
    window : Window, int or tuple, optional
        Displacements to search, in pixels of the reduced frames. By default D = 128 for the local
        and the joint model; a preset chooses its own.
    scale : int
        Frames are first reduced by this factor, and the flow is enlarged to full resolution.
    crf : CrfConfig, optional
        Parameters of ``crf-f`` and ``crf-q``. By default the paper's, with 5×8 iterations.
    max_memory : int or str, optional
        For presets: what the process may take, as for `Estimator`.
    """

    name: str = "balanced"
    model: str | None = None
    window: WindowLike | None = None
    scale: int = 1
    crf: CrfConfig | None = None
    max_memory: int | str | None = None

    def __post_init__(self) -> None:
        if type(self.scale) is not int or self.scale < 1:
            raise InputError(f"scale must be a whole number, at least 1, not {self.scale!r}.")
        if self.window is not None:
            object.__setattr__(self, "window", Window.of(self.window))
        given = (self.model, self.window) != (None, None)
        if self.name.startswith(PEER) and given:
            raise InputError(f"{self.name} takes neither a model nor a window; leave them out.")
        if self.crf is not None and self.name not in JOINT:
            raise InputError(
                f"Only {' and '.join(JOINT)} take parameters of the joint model; a preset has "
                "them in its TOML file."
            )
        if self.max_memory is not None and self.name.startswith((*LOCAL, *JOINT, PEER)):
            raise InputError(f"max_memory is for presets; leave it out with {self.name}.")

    @property
    def label(self) -> str:
        """A short name with the settings that are not the default, for tables and files."""
        parts = [self.stem]
        if self.model is not None:
            path = Path(self.model)
            parts.append(path.parent.name if path.stem in _TRAINING_FILES else path.stem)
        if self.scale > 1:
            parts.append(f"scale{self.scale}")
        return "-".join(part for part in parts if part)

    @property
    def stem(self) -> str:
        """The name; for a TOML file, without its folder and suffix."""
        return Path(self.name).stem if self.name.endswith(".toml") else self.name


def method_names() -> list[str]:
    """Return the names of all methods; those of OpenCV only if it is installed."""
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
        The method; a string is short for ``MethodConfig(name)``.

    Attributes
    ----------
    config : MethodConfig
        The method.
    settings : dict
        Everything that the result depends on, for JSON.

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
        """The label of the config."""
        return self.config.label

    def __call__(self, image0: Pixels, image1: Pixels) -> Estimate:
        """Return the estimate for two frames of the same size."""
        factor, shape = self.config.scale, (image0.shape[0], image0.shape[1])
        if min(shape) < factor:
            raise InputError(
                f"A frame of {shape[1]} × {shape[0]} pixels cannot be reduced {factor} times; "
                "use a smaller scale."
            )
        small = self._run(downsample(image0, factor), downsample(image1, factor))
        if factor == 1:
            return small
        # Flow in whole pixels must not be interpolated; other flow is smooth.
        whole = self.config.name in (*LOCAL, *JOINT)
        enlarge: Callable[..., Any] = upsample_nearest if whole else upsample_linear
        return replace(
            small,
            flow=enlarge(small.flow, factor, shape) * np.float32(factor),
            occlusion=_boxes(small.occlusion, factor, shape),
            confidence=_boxes(small.confidence, factor, shape),
        )


def _prepared(config: MethodConfig) -> tuple[Callable[[Pixels, Pixels], Estimate], dict[str, Any]]:
    """Return the function that estimates the flow of reduced frames, and its settings."""
    if config.name in LOCAL or config.name in JOINT:
        name = "default" if config.model is None else config.model
        window = Window.of(_WINDOW if config.window is None else config.window)
        # The models of the paper compare what the network computes in floating point.
        model = load_model(name, variant=None if name in HAND_CRAFTED else "float")
        settings = {"model": model.fingerprint, "window": list(window.as_tuple())}
        if config.name in LOCAL:
            return _local(config.name, model, window), settings
        crf = CrfConfig.paper() if config.crf is None else config.crf
        return _joint(config.name, model, window, crf), settings | {"crf": asdict(crf)}
    if config.name.startswith(PEER):
        peers = _peers()
        if config.name not in peers:
            raise InputError(
                f"There is no method {config.name!r}; those of OpenCV are "
                f"{', '.join(sorted(peers))}."
            )
        return peers[config.name], {"opencv": opencv_version()}
    if config.name not in PRESETS and not config.name.endswith(".toml"):
        raise InputError(
            f"There is no method {config.name!r}; choose one of {', '.join(method_names())}, or "
            "name a .toml file."
        )
    return _preset(config)


def _preset(config: MethodConfig) -> tuple[Callable[[Pixels, Pixels], Estimate], dict[str, Any]]:
    window: Any = "auto" if config.window is None else config.window
    estimator = Estimator(
        preset_config(config.name),
        window=window,
        model=config.model,
        max_memory=config.max_memory,
    )

    def run(image0: Pixels, image1: Pixels) -> Estimate:
        result = estimator.estimate(image0, image1)
        return Estimate(result.flow, result.occlusion, result.confidence, result.gap)

    settings: dict[str, Any] = {
        "estimator": estimator.config.tables() | estimator.fingerprints,
        "window": None if estimator.window is None else list(estimator.window.as_tuple()),
    }
    if config.max_memory is not None:
        settings["max_memory"] = estimator.max_memory
    return run, settings


def _local(name: str, model: Descriptor, window: Window) -> Callable[[Pixels, Pixels], Estimate]:
    def run(image0: Pixels, image1: Pixels) -> Estimate:
        if name == "wta-qq":
            projection: Any = min_projection(model.bits(image0), model.bits(image1), window)
        else:
            project = float_min_projection if name == "wta-ff" else hybrid_min_projection
            projection = project(model.describe(image0), model.describe(image1), window)
        return Estimate(projection.wta())

    return run


def _joint(
    name: str, model: Descriptor, window: Window, crf: CrfConfig
) -> Callable[[Pixels, Pixels], Estimate]:
    def run(image0: Pixels, image1: Pixels) -> Estimate:
        if name == "crf-q":
            data: dict[str, Any] = {"bits0": model.bits(image0), "bits1": model.bits(image1)}
        else:
            data = {"phi0": model.describe(image0), "phi1": model.describe(image1)}
        result = solve(**data, image=image0, window=window, config=crf)
        return Estimate(result.flow, gap=result.gap)

    return run


def _peers() -> dict[str, Callable[[Pixels, Pixels], Estimate]]:
    def estimate(method: Callable[..., Any]) -> Callable[[Pixels, Pixels], Estimate]:
        return lambda first, second: Estimate(method(to_rgb(first), to_rgb(second)))

    return {
        PEER + name.split()[0].lower(): estimate(method)
        for name, method in opencv_methods().items()
    }


def _boxes(field: Any, factor: int, shape: tuple[int, int]) -> Any:
    return None if field is None else upsample_nearest(field, factor, shape)

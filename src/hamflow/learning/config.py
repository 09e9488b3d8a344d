"""All that a training run is made of, in one place: a TOML file or the command's flags."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import tyro

from hamflow._tables import build, config_of_file
from hamflow.datasets import registry
from hamflow.datasets.synthetic import SyntheticConfig
from hamflow.descriptors.architecture import Architecture
from hamflow.errors import InputError

Model = Literal["ff", "fq", "qq"]
Target = Literal["one", "spread"]
DatasetName = registry.DatasetName

WORK = "training run"
"""What the log of a run calls its work."""

_SEEDS = 2**31  # scenes to validate on have the seeds above


@dataclass(frozen=True)
class AugmentConfig:
    """What happens to a pair before it is learned from.

    Parameters
    ----------
    mirror : bool
        Mirror and transpose at random, the flow with the images.
    rescale : float
        Enlarge or reduce a pair by up to this factor; 1 for never. It is done before cropping.
    photometric : float
        Chance that a pair's brightness, contrast, gamma and colors change, differently in the
        two images.
    strength : float
        How strongly they do: standard deviation of the logarithms.
    blur : float
        Chance for each image to be blurred.
    max_blur : float
        Standard deviation of the widest blur, in pixels.
    noise : float
        Standard deviation of the strongest noise, of a range of 0..1.
    """

    mirror: bool = True
    rescale: float = 1.0
    photometric: float = 0.5
    strength: float = 0.12
    blur: float = 0.2
    max_blur: float = 1.0
    noise: float = 0.02

    def __post_init__(self) -> None:
        for name in ("photometric", "blur"):
            _check(0 <= getattr(self, name) <= 1, name, "from 0 to 1", getattr(self, name))
        for name in ("strength", "max_blur", "noise"):
            _check(0 <= getattr(self, name) <= 10, name, "from 0 to 10", getattr(self, name))
        _check(1 <= self.rescale <= 4, "rescale", "from 1 to 4", self.rescale)


@dataclass(frozen=True)
class DataConfig:
    """Where the pairs come from.

    Parameters
    ----------
    dataset : str
        Scenes rendered while learning (synthetic), or pairs on the disk: one's own (folder), or
        the training part of a public data set; see `hamflow.datasets.open_dataset`.
    root : Path or None
        Synthetic: a folder of photographs, or none for drawn textures. Folder: the tree of
        <group>/<pair>/ with frame1.png, frame2.png and flow.flo or flow.png. Else: the folder of
        the data set, laid out as it is published.
    subset : float
        Share of the pairs on the disk to learn from, evenly sampled; the paper takes 0.2.
    reduce : int
        Reduce pairs on the disk by this whole factor first.
    crop : (int, int) or None
        Height and width of what is cut from a pair on the disk; None ("none" in a file) for whole
        images.
    synthetic : SyntheticConfig
        What synthetic scenes are like.
    """

    dataset: DatasetName = "synthetic"
    root: Path | None = None
    subset: float = 1.0
    reduce: int = 1
    crop: tuple[int, int] | None = (256, 256)
    synthetic: SyntheticConfig = field(default_factory=SyntheticConfig)

    def __post_init__(self) -> None:
        if self.dataset not in get_args(DatasetName):
            names = ", ".join(sorted(get_args(DatasetName)))
            raise InputError(f"dataset must be one of {names}, not {self.dataset!r}.")
        if self.dataset != "synthetic" and self.root is None:
            raise InputError(f"The dataset {self.dataset} needs its root.")
        _check(0 < self.subset <= 1, "subset", "above 0 and at most 1", self.subset)
        _check(1 <= self.reduce <= 16, "reduce", "from 1 to 16", self.reduce)
        if self.crop is not None:
            right = len(self.crop) == 2 and min(self.crop) >= 16
            _check(right, "crop", "a height and a width, at least 16 × 16", self.crop)


@dataclass(frozen=True)
class TrainConfig:
    """A training run.

    Parameters
    ----------
    network : Architecture
        What is learned.
    model : "ff", "fq" or "qq"
        How it is learned: which of the two minimizations see floats.
    window : int
        D, the side of the paper's square window.
    bootstrap : float
        Share of the steps, at the beginning, in which FQ and QQ take the true inner minimizer.
    target : "one" or "spread"
        The true label alone, or with shares for its neighbors.
    temperature : float
        What costs are divided by in the softmax.
    outside : float
        Cost of a target outside of the image.
    balance : float
        Weight of what keeps the bits from becoming constant.
    steps : int
        How many steps to take.
    batch : int
        Pairs in a step, in each process.
    learning_rate : float
        At its highest.
    warmup : int
        Steps in which it rises to that.
    final_rate : float
        Share of it that is left at the last step; the way there is a cosine.
    clip : float
        Largest norm of the gradient.
    seed : int
        Of the weights and of the data.
    start : Path or None
        Weights (safetensors) to start from instead of random ones.
    data : DataConfig
        Where the pairs come from.
    augment : AugmentConfig
        What happens to them.
    validation : DataConfig or None
        Pairs to validate on; None for those of the data, synthetic scenes with other seeds. (In
        the file only.)
    validation_pairs : int
        How many; evenly sampled from those on a disk.
    validate_every : int
        Steps between validations.
    checkpoint_minutes : float
        Minutes between checkpoints.
    workers : int
        Processes that prepare pairs; 0 prepares them in between.
    threads : int
        Threads of the network and of the matching; 0 for as many as there are cores.
    """

    network: Architecture = field(default_factory=Architecture)
    model: Model = "fq"
    window: int = 128
    bootstrap: float = 0.25
    target: Target = "one"
    temperature: float = 1.0
    outside: float = 0.0
    balance: float = 0.0
    steps: int = 4000
    batch: int = 1
    learning_rate: float = 2e-3
    warmup: int = 50
    final_rate: float = 0.02
    clip: float = 1.0
    seed: int = 0
    start: Path | None = None
    data: DataConfig = field(default_factory=DataConfig)
    augment: AugmentConfig = field(default_factory=AugmentConfig)
    # On the command line an optional group would be a command of its own.
    validation: Annotated[DataConfig | None, tyro.conf.Suppress] = None
    validation_pairs: int = 8
    validate_every: int = 250
    checkpoint_minutes: float = 5.0
    workers: int = 1
    threads: int = 0

    def __post_init__(self) -> None:
        if self.model not in get_args(Model):
            raise InputError(f"model must be ff, fq or qq, not {self.model!r}.")
        if self.target not in get_args(Target):
            raise InputError(f"target must be one or spread, not {self.target!r}.")
        if self.model != "ff" and self.network.m != 64:
            raise InputError(f"{self.model} needs descriptors of m = 64, not {self.network.m}.")
        _check(
            2 <= self.window <= 1024 and self.window % 2 == 0,
            "window",
            "even, from 2 to 1024",
            self.window,
        )
        for name in ("steps", "batch", "validate_every"):
            _check(getattr(self, name) >= 1, name, "at least 1", getattr(self, name))
        for name in ("warmup", "seed", "workers", "threads", "validation_pairs", "balance"):
            _check(getattr(self, name) >= 0, name, "at least 0", getattr(self, name))
        _check(self.seed < _SEEDS, "seed", f"below {_SEEDS}", self.seed)
        for name in ("learning_rate", "clip", "temperature", "checkpoint_minutes"):
            _check(getattr(self, name) > 0, name, "positive", getattr(self, name))
        for name in ("learning_rate", "temperature", "outside"):
            right = math.isfinite(getattr(self, name))
            _check(right, name, "finite", getattr(self, name))
        for name in ("bootstrap", "final_rate"):
            _check(0 <= getattr(self, name) <= 1, name, "from 0 to 1", getattr(self, name))


def _check(right: bool, name: str, expected: str, value: object) -> None:
    if not right:
        raise InputError(f"{name} must be {expected}, but is {value}.")


def read_config(path: str | os.PathLike[str]) -> TrainConfig:
    """Return the run that a TOML file describes; what it leaves out has its default.

    Raises
    ------
    FileError
        If the file cannot be read, is not TOML, or has something unknown or wrong in it.
    """
    return config_of_file(path, config_of)


def config_of(values: Mapping[str, Any]) -> TrainConfig:
    """Return the run that nested dictionaries describe, as `config_values` returns them."""
    run = build(TrainConfig, values)
    assert isinstance(run, TrainConfig)
    return run


def config_values(config: TrainConfig) -> dict[str, Any]:
    """Return a run as nested dictionaries of plain values."""
    plain = _plain(dataclasses.asdict(config))
    assert isinstance(plain, dict)
    return plain


def _plain(value: object) -> object:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return list(value)
    return str(value) if isinstance(value, Path) else value

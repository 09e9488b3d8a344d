"""The settings of a training run, which a TOML file or the flags of the command give."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import tyro

from hamflow._check import check_range
from hamflow._tables import build, config_of_file
from hamflow.datasets.registry import DATASETS, DatasetName
from hamflow.datasets.synthetic import SyntheticConfig
from hamflow.descriptors.architecture import Architecture
from hamflow.errors import InputError

Scheme = Literal["ff", "fq", "qq"]
"""Whether the outer and the inner minimization of a min-projection use floats or bits."""
Target = Literal["one", "spread"]
Precision = Literal["float32", "bfloat16"]

WORK = "training run"
"""The name of the work in the log of a run."""

_SEEDS = 2**31  # scenes for validation have larger seeds
_LARGEST = 1e9  # for numbers that must only be finite


def _in_a_file(metavar: str) -> Any:
    """Return how the help page shows a path; None on the command line takes back a file's."""
    return tyro.conf.arg(metavar=metavar, help_behavior_hint="")


def _turns_off(default: str) -> str:
    """Return what the help page says of a switch, which a file may have turned off already."""
    return "(on by default; this turns it off)" if default == "True" else ""


@dataclass(frozen=True)
class AugmentConfig:
    """Augmentation: random changes of a pair before the network is trained on it.

    Parameters
    ----------
    mirror : bool
        Whether images and flow are mirrored and transposed at random.
    rescale : float
        Upsample or downsample a pair by up to this factor before cropping; 1 for never.
    photometric : float
        Probability that brightness, contrast, gamma and colors of a pair change, differently in
        the two images.
    strength : float
        How strongly they change: the standard deviation of the logarithms.
    blur : float
        Probability that an image is blurred, for each of the two.
    max_blur : float
        Standard deviation of the widest blur, in pixels.
    noise : float
        Standard deviation of the strongest noise, for values from 0 to 1.
    """

    mirror: Annotated[bool, tyro.conf.arg(help_behavior_hint=_turns_off)] = True
    rescale: float = 1.0
    photometric: float = 0.5
    strength: float = 0.12
    blur: float = 0.2
    max_blur: float = 1.0
    noise: float = 0.02

    def __post_init__(self) -> None:
        for name in ("photometric", "blur"):
            check_range(self, name, 0, 1)
        for name in ("strength", "max_blur", "noise"):
            check_range(self, name, 0, 10)
        check_range(self, "rescale", 1, 4)


@dataclass(frozen=True)
class DataConfig:
    """Where the pairs come from.

    Parameters
    ----------
    dataset : str
        synthetic renders scenes during training. All others are pairs on the disk: folder (your
        own), or the training split of a public data set; see `hamflow.datasets.open_dataset`.
    root : Path or None
        For synthetic: a folder of photographs; without it, the textures are generated. For folder:
        a tree of GROUP/PAIR/ with frame1.png, frame2.png and flow.flo or flow.png. Otherwise: the
        folder of the data set, laid out as it is published.
    subset : float
        Share of the pairs on the disk to train on, evenly sampled; the paper uses 0.2.
    reduce : int
        Downsample pairs by this whole factor before anything else, also rendered ones: 2 for a
        network that matches images of half the size.
    crop : (int, int) or None
        Height and width of the random crop of a pair on the disk; None ("none" in a file) uses
        whole images.
    synthetic : SyntheticConfig
        How synthetic scenes are made.
    """

    dataset: DatasetName = "synthetic"
    root: Annotated[Path | None, _in_a_file("FOLDER")] = None
    subset: float = 1.0
    reduce: int = 1
    crop: Annotated[tuple[int, int] | None, tyro.conf.arg(metavar="HEIGHT WIDTH")] = (256, 256)
    synthetic: SyntheticConfig = field(default_factory=SyntheticConfig)

    def __post_init__(self) -> None:
        if self.dataset not in DATASETS:
            names = ", ".join(DATASETS)
            raise InputError(f"dataset must be one of {names}, not {self.dataset!r}.")
        if self.dataset != "synthetic" and self.root is None:
            raise InputError(f"The data set {self.dataset} needs its root; give its folder.")
        check_range(self, "subset", 0, 1, above=True)
        check_range(self, "reduce", 1, 16, whole=True)
        if self.crop is not None and (len(self.crop) != 2 or min(self.crop) < 16):
            raise InputError(
                f"crop must be a height and a width, at least 16 × 16, but is {self.crop}."
            )


@dataclass(frozen=True)
class TrainConfig:
    """The settings of a training run.

    Parameters
    ----------
    network : Architecture
        The network to train.
    model : "ff", "fq" or "qq"
        The model of the paper to train it in. The first letter is for the outer minimization, the
        second for the inner one: f uses floats, q uses bits. A coarse network has no window: its
        loss is over all cells of the other image; f and q are then the two images.
    window : int
        D, the side of the paper's square window.
    bootstrap : float
        Share of the steps, at the beginning, in which FQ and QQ use the true flow in place of the
        inner minimizer; a coarse network uses floats on both sides in them.
    target : "one" or "spread"
        The target distribution: only the true label, or its neighbors, too.
    temperature : float
        Costs are divided by this before the softmax (eq. 5 of the paper has 1).
    outside : float
        Cost of a displacement to a place outside of the image.
    balance : float
        Weight of the loss that keeps bits from becoming constant.
    steps : int
        The number of steps.
    batch : int
        Pairs per step, in each process.
    learning_rate : float
        The highest learning rate.
    warmup : int
        Steps in which the learning rate rises to its highest value.
    final_rate : float
        The learning rate of the last step, as a share of the highest; it falls like a cosine.
    clip : float
        Largest norm of the gradient; larger gradients are scaled down to it.
    seed : int
        Seed of the random numbers for weights and data.
    start : Path or None
        Weights (safetensors) to start from instead of random ones.
    data : DataConfig
        Where the pairs come from.
    augment : AugmentConfig
        How they are changed at random.
    validation : DataConfig or None
        Pairs to validate on; None for those of `data`, or synthetic scenes with other seeds. It
        can be given only in a file.
    validation_pairs : int
        How many pairs to validate on; pairs on the disk are evenly sampled.
    validate_every : int
        Steps between validations.
    checkpoint_minutes : float
        Minutes between checkpoints.
    workers : int
        Processes that prepare pairs in the background; 0 prepares them between the steps.
    threads : int
        Threads of the network and of the matching; 0 for as many as there are cores.
    precision : "float32" or "bfloat16"
        Numbers in the layers of the network. On processors with AMX (Intel servers since 2023),
        bfloat16 takes a fraction of the time; costs and losses stay in single precision.
    """

    network: Architecture = field(default_factory=Architecture)
    model: Scheme = "fq"
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
    start: Annotated[Path | None, _in_a_file("FILE")] = None
    data: DataConfig = field(default_factory=DataConfig)
    augment: AugmentConfig = field(default_factory=AugmentConfig)
    # On the command line an optional group would be a command of its own.
    validation: Annotated[DataConfig | None, tyro.conf.Suppress] = None
    validation_pairs: int = 8
    validate_every: int = 250
    checkpoint_minutes: float = 5.0
    workers: int = 1
    threads: int = 0
    precision: Precision = "float32"

    def __post_init__(self) -> None:
        if self.model not in get_args(Scheme):
            raise InputError(f"model must be ff, fq or qq, not {self.model!r}.")
        if self.target not in get_args(Target):
            raise InputError(f"target must be one or spread, not {self.target!r}.")
        if self.precision not in get_args(Precision):
            raise InputError(f"precision must be float32 or bfloat16, not {self.precision!r}.")
        if self.model != "ff" and self.network.kind != "coarse" and self.network.m != 64:
            raise InputError(f"{self.model} needs descriptors of m = 64, not {self.network.m}.")
        check_range(self, "window", 2, 1024, whole=True)
        if self.window % 2:
            raise InputError(f"window must be even, but is {self.window}.")
        for name in ("steps", "batch", "validate_every"):
            check_range(self, name, 1, whole=True)
        for name in ("warmup", "workers", "threads", "validation_pairs"):
            check_range(self, name, 0, whole=True)
        check_range(self, "seed", 0, _SEEDS - 1, whole=True)
        check_range(self, "balance", 0)
        for name in ("clip", "checkpoint_minutes"):
            check_range(self, name, 0, above=True)
        for name in ("learning_rate", "temperature"):
            check_range(self, name, 0, _LARGEST, above=True)
        check_range(self, "outside", -_LARGEST, _LARGEST)
        for name in ("bootstrap", "final_rate"):
            check_range(self, name, 0, 1)


def read_config(path: str | os.PathLike[str]) -> TrainConfig:
    """Read the settings of a run from a TOML file; missing ones have their default."""
    return config_of_file(path, config_of)


def config_of(values: Mapping[str, Any]) -> TrainConfig:
    """Return the settings that `config_values` turned into nested dictionaries."""
    config: TrainConfig = build(TrainConfig, values)
    return config


def config_values(config: TrainConfig) -> dict[str, Any]:
    """Return the settings as nested dictionaries of plain values."""
    plain = _plain(dataclasses.asdict(config))
    assert isinstance(plain, dict)
    return plain


def _plain(value: object) -> object:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return list(value)
    return str(value) if isinstance(value, Path) else value

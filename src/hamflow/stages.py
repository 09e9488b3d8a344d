"""The stages that can be replaced: what each one takes and gives, and the names to choose it by.

A stage is a frozen dataclass: its fields are its parameters, its ``method`` is its name, and a call
does the work. A new one is one file and one line in `STAGES`; presets and TOML files then choose it
as ``method = "name"`` in the table of the stage. Descriptors are chosen by `hamflow.load_model`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import Any, ClassVar, Protocol, TypeVar

from hamflow._types import Bits, Field, Flow, FrameLike, Image, Labels, Mask
from hamflow.errors import InputError
from hamflow.prior import Prior
from hamflow.window import Window

T = TypeVar("T")

STAGES: dict[str, dict[str, str]] = {
    "matcher": {
        "joint": "hamflow.crf.joint_model:JointModel",
        "local": "hamflow.matching.local_model:LocalModel",
    },
    "completion": {
        "choice": "hamflow.refinement.choice:ChoiceCompletion",
        "labeling": "hamflow.refinement.labeling:LabelingCompletion",
        "affine": "hamflow.refinement.completion:AffineCompletion",
        "none": "hamflow.refinement.completion:NoCompletion",
    },
    "refinement": {
        "guarded": "hamflow.refinement.guarded:GuardedRefinement",
        "variational": "hamflow.refinement.variational:VariationalRefinement",
        "upsampling": "hamflow.refinement.pyramid:Upsampling",
    },
    "temporal": {
        "tracks": "hamflow.refinement.temporal:TrackFilter",
        "off": "hamflow.refinement.temporal:NoTemporal",
    },
}
"""The methods of each stage: where their classes are."""


class Match(Protocol):
    """What a matcher returns; `hamflow.crf.CrfResult` is one."""

    @property
    def flow(self) -> Flow:
        """Displacements in whole pixels."""

    @property
    def window(self) -> Window:
        """The displacements that were searched."""

    @property
    def energy(self) -> float | None:
        """Energy of the labeling, if the matcher has one."""

    @property
    def bound(self) -> float | None:
        """What no labeling can be below, if the matcher knows."""

    @property
    def gap(self) -> float | None:
        """``(energy - bound) / |bound|``."""

    @property
    def margin(self) -> Field | None:
        """How much worse, in units of cost, another label would be, if the matcher knows."""

    @property
    def history(self) -> Sequence[Any]:
        """A `hamflow.crf.CrfStep` for each iteration."""


@dataclass(frozen=True, eq=False)
class MatchTask:
    """What a matcher gets.

    Attributes
    ----------
    bits : (Bits, Bits)
        Descriptors of the two images.
    image : (H, W, C) array of float32
        The first image, from 0 to 1.
    window : Window
        The displacements to search.
    initial_labels : (Labels, Labels), optional
        u and v of a candidate.
    prior : Prior, optional
        What a coarser scale found.
    callback : callable, optional
        Told how far the matcher is: by a `hamflow.crf.CrfStep` as in the history, and by a
        `hamflow.crf.CrfPass` in between.
    """

    bits: tuple[Bits, Bits]
    image: Image
    window: Window
    initial_labels: tuple[Labels, Labels] | None = None
    prior: Prior | None = None
    callback: Callable[[Any], object] | None = None


class Matcher(Protocol):
    """From the descriptors of two images to a displacement for each pixel of the first."""

    method: ClassVar[str]

    def __call__(self, task: MatchTask) -> Match:
        """Match two images within a window."""

    def streamed(self) -> Matcher:
        """Return a matcher with the same result that needs no memory for all labels of all pixels.

        That is the matcher itself if it does not need it anyhow.
        """


@dataclass(frozen=True, eq=False)
class MatchEvidence:
    """What a completion knows of one direction, all at the scale of the matches.

    Attributes
    ----------
    image : (H, W, C) array of float32
        The image that the flow starts from, from 0 to 1.
    bits : (Bits, Bits)
        Descriptors of this image and of the one that the flow leads to.
    flow : (H, W, 2) array of float32
        As it was matched; NaN where it is unknown.
    trusted : (H, W) array of bool
        Where it can be relied on.
    back : (Flow, Mask), optional
        Flow of the other direction, and where it can be relied on, if both were matched.
    other : (H, W, C) array of float32, optional
        The image that the flow leads to.
    decided : (H, W) array of float32, optional
        From 0, where another displacement is as good, to 1, where it would be clearly worse.
    coarse : (H, W, 2) array of float32, optional
        The completed flow of the coarser scale, enlarged to this one.
    """

    image: Image
    bits: tuple[Bits, Bits]
    flow: Flow
    trusted: Mask
    back: tuple[Flow, Mask] | None = None
    other: Image | None = None
    decided: Field | None = None
    coarse: Flow | None = None


class Completion(Protocol):
    """From trusted matches to a flow everywhere."""

    method: ClassVar[str]

    def __call__(self, matches: MatchEvidence) -> tuple[Flow, Field]:
        """Return the completed flow, and how far each pixel is from the nearest match."""


class Refinement(Protocol):
    """From a completed flow at the matching scale to a subpixel flow at full size."""

    method: ClassVar[str]

    def __call__(
        self,
        frames: tuple[FrameLike, FrameLike],
        flow: Flow,
        trusted: Mask,
        scale: int,
        opposite: Flow | None = None,
    ) -> Flow:
        """Return the flow from the first frame to the second, at full size.

        `opposite` is the finished flow from the second frame to the first, if there is one.
        """


@dataclass(frozen=True, eq=False)
class Tracks:
    """What a pair of a video hands to the next one.

    Attributes
    ----------
    flows : ((H, W, 2) array of float32, (H, W, 2) array of float32)
        The finished flow, forward and backward.
    confidence : (H, W) array of float32
        How certain the forward flow is, all pairs so far taken together.
    """

    flows: tuple[Flow, Flow]
    confidence: Field


class Temporal(Protocol):
    """From the flows of the pairs of a video, one after the other, to flows that hold together."""

    method: ClassVar[str]

    def __call__(
        self,
        frames: tuple[FrameLike, FrameLike],
        flows: tuple[Flow, Flow],
        confidence: Field,
        before: Tracks | None,
    ) -> tuple[Flow, Tracks | None]:
        """Return the forward flow, and what the next pair gets as `before`.

        `flows` are those of the pair by itself, forward and backward; `before` comes from the pair
        whose second frame is the first one here.
        """


def following(stage: T) -> T:
    """Return a stage as it is for a pair of a video that starts from the pair before.

    What its ``warm_started()`` returns, or itself if there is no such method.
    """
    warm_started = getattr(stage, "warm_started", None)
    found: T = stage if warm_started is None else warm_started()
    return found


def stage_class(stage: str, method: object) -> type[Any]:
    """Return the class of a stage's method.

    Raises
    ------
    InputError
        If the stage has no such method.
    """
    methods = STAGES[stage]
    method = "labeling" if method == "labelling" else method  # as it was spelled before 0.2.0
    if not isinstance(method, str) or method not in methods:
        raise InputError(f"{stage}.method must be one of {', '.join(methods)}, not {method!r}.")
    found: type[Any] = resolve_name(methods[method])
    return found

"""The shapes of requests and answers, from which the OpenAPI description is made."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator
from typing_extensions import Self

_FARTHEST = 1 << 20


class Message(BaseModel):
    """Why a request was refused."""

    detail: str = Field(description="One sentence: what is wrong, and what to do.")


class PresetInfo(BaseModel):
    """A set of settings."""

    name: str
    text: str


class LimitsInfo(BaseModel):
    """How much the page takes and does."""

    upload_bytes: int
    upload_files: int
    pixels: int
    frames: int
    queue: int


class Info(BaseModel):
    """What this server can do."""

    version: str
    presets: list[PresetInfo] = Field(description="The proposed one comes first.")
    limits: LimitsInfo


class SourceInfo(BaseModel):
    """Frames, or a saved result."""

    id: str
    kind: Literal["pair", "sequence", "result"]
    name: str
    width: int
    height: int
    frames: int = Field(description="0 for a result that came without images.")
    names: list[str] = Field(description="What the frames are called.")
    times: list[float] | None = Field(description="When each frame is shown, in seconds.")
    truth: bool = Field(description="Whether the true flow of any pair is known.")
    result: str | None = Field(description="The result that it came with.")
    loading: bool = Field(description="Whether a video is still being decoded.")
    note: str | None = Field(description="What people should know, such as missing frames.")
    shared: bool = Field(description="Whether all browsers see it; then it cannot be removed.")


class JobRequest(BaseModel):
    """The flow of one pair (index), or of a stretch of frames (first and last)."""

    model_config = ConfigDict(extra="forbid")

    source: str
    index: Annotated[int, Field(ge=0, le=_FARTHEST)] | None = Field(
        None, description="Number of the first frame of the pair; 0 if no stretch is given."
    )
    first: Annotated[int, Field(ge=0, le=_FARTHEST)] | None = Field(
        None, description="Number of the first frame of a stretch."
    )
    last: Annotated[int, Field(ge=0, le=_FARTHEST)] | None = Field(
        None, description="Number of its last frame, which is part of the last pair."
    )
    preset: str | None = Field(None, description="The proposed one if none is given.")
    window: Literal["auto"] | Annotated[int, Field(ge=2, le=4096, multiple_of=2)] = Field(
        "auto", description="The displacements to search: found, or the square of this side."
    )

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.first is None) != (self.last is None):
            raise ValueError("a stretch needs both first and last")
        if self.first is not None and self.index is not None:
            raise ValueError("give either index or first and last")
        if self.first is not None and self.last is not None and self.last <= self.first:
            raise ValueError("last must be greater than first")
        return self


class Iteration(BaseModel):
    """What the joint model knew after an iteration."""

    index: int = Field(description="Number of the first frame of the pair.")
    iteration: int
    bound: float
    energy: float
    scale: int = Field(description="By what factor the images are reduced in this search.")
    direction: Literal["forward", "backward"]


class Pass(BaseModel):
    """What the joint model knew after a pass along all rows or columns, within an iteration."""

    index: int
    iteration: int
    bound: float
    scale: int
    direction: Literal["forward", "backward"]


class JobInfo(BaseModel):
    """How far a job is."""

    id: str
    source: str
    index: int
    first: int
    last: int
    preset: str
    window: Literal["auto"] | int
    state: Literal["queued", "running", "done", "failed", "canceled"]
    position: int = Field(description="How many jobs are done before it; 0 if it is running.")
    stage: str | None
    share: float = Field(description="How much is done, from 0 to 1.")
    history: list[Iteration]
    passes: list[Pass] = Field(description="How the bound grows; of the present pair alone.")
    error: str | None
    results: dict[str, str] = Field(description="Ids by the number of the pair's first frame.")
    cuts: list[int] = Field(description="Pairs whose frames have nothing to do with each other.")


class StepInfo(BaseModel):
    """An iteration of the last search."""

    iteration: int
    bound: float | None
    energy: float | None


class ErrorInfo(BaseModel):
    """Errors against the true flow, over the pixels where that is known."""

    epe: float
    median: float
    outlier_1px: float
    outlier_3px: float
    pixels: int


class ResultInfo(BaseModel):
    """What is known about a flow."""

    id: str
    source: str
    index: int
    preset: str | None
    width: int
    height: int
    scale: int
    window: list[int] = Field(description="u0, du, v0, dv in pixels of the images.")
    summary: dict[str, Any]
    timings: dict[str, float | None]
    energy: float | None
    bound: float | None
    gap: float | None
    history: list[StepInfo]
    cut: bool
    layers: list[str]
    full_color: float = Field(description="Pixels that a picture shows in full color.")
    error: ErrorInfo | None
    occluded: float | None = Field(description="Share of the pixels.")
    confidence: float | None = Field(description="Its mean.")
    explained: bool = Field(description="Whether pixels have curves.")


class Curve(BaseModel):
    """What speaks for and against each label of a component; all but labels in bits."""

    labels: list[int] = Field(description="Displacements in pixels of the images.")
    cost: list[float] = Field(description="The smallest Hamming distance with this label.")
    slack: list[float] | None = Field(description="What the joint model leaves of it.")
    prior: list[float] | None = Field(description="What a coarser scale adds to it.")
    wta: int = Field(description="Index of the label that the cost alone chooses.")
    crf: int | None = Field(description="Index of the label that the joint model chose.")


class HammingMap(BaseModel):
    """Hamming distances, in bits, around the match."""

    labels_u: list[int]
    labels_v: list[int]
    cost: list[list[float]] = Field(description="Rows are v, columns are u.")
    around: list[int]


class PixelInfo(BaseModel):
    """Everything that is known about a pixel."""

    x: int
    y: int
    flow: list[float | None] = Field(description="null where it is unknown.")
    match: list[float | None]
    backward: list[float | None] | None
    round_trip: float | None = Field(description="How far there and back is apart, in pixels.")
    occluded: bool | None
    confidence: float | None
    expected_error: float | None = Field(description="In pixels, by the confidence.")
    truth: list[float] | None
    scale: int
    cell: list[int] = Field(description="The pixel of the matching scale.")
    u: Curve | None
    v: Curve | None
    hamming: HammingMap | None
    bits: int | None


class TrackPoint(BaseModel):
    """Where a point is in a frame."""

    index: int
    x: float
    y: float
    visible: bool


class TrackInfo(BaseModel):
    """A point through the frames whose flow is there."""

    points: list[TrackPoint]

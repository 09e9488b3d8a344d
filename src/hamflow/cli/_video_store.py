"""Where ``hamflow video`` puts its results, and how it knows which ones are there already."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

import hamflow
from hamflow._resume import WorkLog
from hamflow.descriptors import load_model
from hamflow.errors import FileError, InputError
from hamflow.estimator import Estimator
from hamflow.io import check_flow_path, write_flow, write_image
from hamflow.io._identity import file_record
from hamflow.io.video import Frames
from hamflow.result import FlowResult

Size = tuple[int, int]


@dataclass(frozen=True)
class Sink:
    """A folder with one file for each pair.

    Attributes
    ----------
    folder : Path
        Has a log of its own.
    suffix : str
        Of the files, which are called as the first frames of their pairs.
    write : callable
        Given the path, the result, and the length in pixels that gets full color.
    colors : bool
        Whether that length matters.
    """

    folder: Path
    suffix: str
    write: Callable[[Path, FlowResult, float], None]
    colors: bool = False

    def path(self, name: str) -> Path:
        """Return the file of a pair."""
        return self.folder / f"{name}{self.suffix}"


class Store:
    """All folders of a run, each with a log of its own; to be used in a ``with`` statement.

    Parameters
    ----------
    sinks : sequence of Sink
        The main one last, so that its files are there only if all others are.
    frames : Frames
        The input.
    estimator : Estimator
        Computes the flow, which depends on its settings.
    every : int
        A pair is made of a frame and the one so many frames later.
    max_flow : float, optional
        The length that gets full color; by default that of the run that is continued, or else
        chosen by the first pair.
    overwrite : bool
        Begin anew: drop what earlier runs wrote to the folders.

    Attributes
    ----------
    size : (int, int) or None
        Height and width of all frames, as far as they are known.
    max_flow : float or None
        The length that gets full color, as far as it is known.

    Raises
    ------
    FileError
        If a folder cannot be written, holds something else or results of other settings, or
        another run is at work there.
    """

    def __init__(
        self,
        sinks: Sequence[Sink],
        frames: Frames,
        estimator: Estimator,
        every: int,
        *,
        max_flow: float | None = None,
        overwrite: bool = False,
    ) -> None:
        self._frames, self._every = frames, every
        self.size: Size | None = None
        self.max_flow = max_flow
        self._sources: dict[str, str | None] = {}
        settings = {"input": frames.identity(), "every": every, **_settings(estimator)}
        with ExitStack() as stack:
            self._logs = {
                sink: stack.enter_context(
                    WorkLog.in_folder(sink.folder, "video", overwrite=overwrite)
                )
                for sink in sinks
            }
            for sink, log in self._logs.items():
                # Stands for all that will be written; pictures are .png, as flow files can be.
                check_flow_path(sink.folder / f".hamflow-check{sink.suffix}")
                log.begin(settings)
            # First those whose files depend on the scale of the colors.
            for sink in sorted(sinks, key=lambda sink: not sink.colors):
                self._continue(sink, self._logs[sink])
            self._held = stack.pop_all()

    def _continue(self, sink: Sink, log: WorkLog) -> None:
        """Take over the size of the frames and the scale of the colors."""
        for record in log.records.values():
            try:
                (width, height), scale = record["size"], float(record["max_flow"])
            except (KeyError, TypeError, ValueError) as error:
                raise FileError(
                    f"{log.path}: the line of {record['key']} is damaged; remove that line."
                ) from error
            if sink.colors and self.max_flow is not None:
                log.check({"max_flow": scale}, {"max_flow": self.max_flow})
            self.size = int(height), int(width)
            self.max_flow = scale if self.max_flow is None else self.max_flow

    def known(self, name: str) -> bool:
        """Say whether all files of a pair are there, of the frames as they are now."""
        # Before the frames are read: a change after this is noticed by the next run.
        source = self._frames.pair_digest(name, self._every)
        if all(log.find(name, source) is not None for log in self._logs.values()):
            return True
        self._sources[name] = source
        return False

    def add(self, name: str, result: FlowResult) -> None:
        """Write all files of a pair."""
        height, width = result.flow.shape[:2]
        self.size = height, width
        if self.max_flow is None:
            self.max_flow = first_scale(result)
        source = self._sources.pop(name)
        for sink, log in self._logs.items():
            path = sink.path(name)
            sink.write(path, result, self.max_flow)
            log.add(
                name,
                source=source,
                files={path.name: file_record(path)},
                size=[width, height],
                max_flow=self.max_flow,
            )

    def remove(self, sink: Sink) -> None:
        """Remove a folder that is not needed any more, but nothing that others put there."""
        self._logs[sink].remove()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()


def first_scale(result: FlowResult) -> float:
    """Return the 99th percentile of the lengths, rounded up: full color for a whole video."""
    lengths = np.hypot(result.flow[..., 0], result.flow[..., 1])
    return float(max(1, np.ceil(np.percentile(lengths, 99))))


def _settings(estimator: Estimator) -> dict[str, Any]:
    """Return what a pair's flow depends on, besides its frames."""
    return {
        **estimator.config.tables(),
        "window": "auto" if estimator.window is None else estimator.window.as_tuple(),
        "version": hamflow.__version__,
        "model": load_model(estimator.config.model).fingerprint,
    }


def flow_sink(folder: Path, suffix: str, *, backward: bool = False) -> Sink:
    """Return a folder of flow files."""

    def write(path: Path, result: FlowResult, _: float) -> None:
        flow = result.backward if backward else result.flow
        assert flow is not None
        try:
            write_flow(path, flow)
        except InputError as error:
            sentence = str(error).removesuffix(".")
            raise InputError(f"{path}: {sentence}; choose another --format.") from error

    return Sink(folder, suffix, write)


def color_sink(folder: Path) -> Sink:
    """Return a folder of pictures in the Middlebury colors."""

    def write(path: Path, result: FlowResult, max_flow: float) -> None:
        write_image(path, result.to_color(max_flow))

    return Sink(folder, ".png", write, colors=True)


def mask_sink(folder: Path) -> Sink:
    """Return a folder of masks, white where the first frame's pixel is hidden in the second."""

    def write(path: Path, result: FlowResult, _: float) -> None:
        assert result.occlusion is not None
        write_image(path, result.occlusion.astype(np.uint8) * np.uint8(255))

    return Sink(folder, ".png", write)


def confidence_sink(folder: Path) -> Sink:
    """Return a folder of gray pictures, white where the flow is certain."""

    def write(path: Path, result: FlowResult, _: float) -> None:
        assert result.confidence is not None
        write_image(path, np.rint(255 * result.confidence).astype(np.uint8))

    return Sink(folder, ".png", write)

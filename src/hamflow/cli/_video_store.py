"""Where ``hamflow video`` puts its results, and how it knows which ones are there already."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import hamflow
from hamflow.descriptors import load_model
from hamflow.errors import FileError, InputError
from hamflow.estimator import Estimator
from hamflow.io import check_flow_path, write_flow, write_image
from hamflow.io._atomic import atomic_write
from hamflow.io.video import Frames
from hamflow.result import FlowResult

RECORD = "run.json"
_MAKER = "hamflow video"
_NAMED = 3  # settings that an error message lists
_REMEDY = "choose another folder, or add --overwrite to begin anew"

Size = tuple[int, int]


@dataclass(frozen=True)
class Sink:
    """A folder with one file for each pair.

    Attributes
    ----------
    folder : Path
        Made with its first file.
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

    @property
    def record(self) -> Path:
        """What tells how the files were made."""
        return self.folder / RECORD

    def path(self, name: str) -> Path:
        """Return the file of a pair."""
        return self.folder / f"{name}{self.suffix}"

    def files(self, frames: Frames) -> Iterator[Path]:
        """Yield the files that a run on these frames could have written."""
        if self.folder.is_dir():
            for path in sorted(self.folder.iterdir()):
                if path.suffix == self.suffix and frames.has_name(path.stem):
                    yield path

    def check(self) -> None:
        """Raise at once what would be said after the first pair."""
        nearest = self.folder
        while not nearest.exists() and nearest != nearest.parent:
            nearest = nearest.parent
        if not nearest.is_dir():
            raise FileError(f"{nearest}: is a file, but is to be a folder; choose another name.")
        # Stands for all that will be written; pictures are .png, as flow files can be.
        check_flow_path(nearest / f".hamflow-check{self.suffix}")


class Store:
    """All folders of a run.

    Parameters
    ----------
    sinks : sequence of Sink
        The main one last, so that its files are there only if all others are.
    frames : Frames
        The input.
    settings : mapping
        What the results depend on, ready for JSON.
    max_flow : float, optional
        The length that gets full color; by default that of the run that is continued, or else
        chosen by the first pair.
    overwrite : bool
        Begin anew, whatever is there.

    Raises
    ------
    FileError
        If a folder cannot be written, or holds what another run made.
    """

    def __init__(
        self,
        sinks: Sequence[Sink],
        frames: Frames,
        settings: Mapping[str, Any],
        *,
        max_flow: float | None = None,
        overwrite: bool = False,
    ) -> None:
        self._sinks = sinks
        self._frames = frames
        self._about = {
            "maker": _MAKER,
            "input": frames.identity(),
            # As it will come back from the file.
            "settings": json.loads(json.dumps(settings)),
        }
        self.size: Size | None = None
        self.max_flow = max_flow
        self._new: list[Sink] = []
        # First those whose files depend on the scale of the colors.
        for sink in sorted(sinks, key=lambda sink: not sink.colors):
            sink.check()
            if overwrite or not sink.record.exists():
                self._new.append(sink)
                if not overwrite and any(sink.files(frames)):
                    raise FileError(
                        f"{sink.folder}: holds files of these names, and no {RECORD} that tells "
                        f"how they were made; {_REMEDY}."
                    )
            else:
                self._continue(sink)

    def _continue(self, sink: Sink) -> None:
        """Take over what a record says, if it is about the same work."""
        record = _read_record(sink.record)
        if record["input"] != self._about["input"]:
            raise FileError(
                f"{sink.folder}: holds results of another input than {self._frames.name} as it is "
                f"now; {_REMEDY}."
            )
        there, here = dict(_flat(record["settings"])), dict(_flat(self._about["settings"]))
        if sink.colors and self.max_flow is not None:
            there["max_flow"], here["max_flow"] = record["max_flow"], self.max_flow
        different = [
            f"{key} was {there.get(key)}, not {here.get(key)}"
            for key in sorted({*there, *here})
            if there.get(key) != here.get(key)
        ]
        if different:
            more = ", ..." if len(different) > _NAMED else ""
            raise FileError(
                f"{sink.folder}: holds results of other settings "
                f"({', '.join(different[:_NAMED])}{more}); use the same, {_REMEDY}."
            )
        width, height = record["size"]
        self.size = height, width
        if self.max_flow is None:
            self.max_flow = record["max_flow"]

    def known(self, name: str) -> bool:
        """Say whether all files of a pair are there."""
        return not self._new and all(sink.path(name).exists() for sink in self._sinks)

    def add(self, name: str, result: FlowResult) -> None:
        """Write all files of a pair."""
        height, width = result.flow.shape[:2]
        self.size = height, width
        if self.max_flow is None:
            self.max_flow = first_scale(result)
        while self._new:
            self._begin(self._new[-1])
            self._new.pop()
        for sink in self._sinks:
            sink.write(sink.path(name), result, self.max_flow)

    def _begin(self, sink: Sink) -> None:
        assert self.size is not None
        try:
            sink.folder.mkdir(parents=True, exist_ok=True)
            # The record first: without it, nobody takes the other files for results.
            sink.record.unlink(missing_ok=True)
            for path in sink.files(self._frames):
                path.unlink()
        except OSError as error:
            raise FileError(
                f"{sink.folder}: cannot be made ready ({error.strerror}); choose another."
            ) from error
        record = {
            **self._about,
            "size": self.size[::-1],
            "max_flow": self.max_flow,
        }
        with atomic_write(sink.record) as file:
            file.write((json.dumps(record, indent=1) + "\n").encode())

    def remove(self, sink: Sink) -> None:
        """Remove a folder that is not needed any more, but nothing that others put there."""
        with suppress(OSError):
            for path in (*sink.files(self._frames), *sink.folder.glob(".hamflow-*.tmp")):
                path.unlink()
            sink.record.unlink(missing_ok=True)
            sink.folder.rmdir()


def first_scale(result: FlowResult) -> float:
    """Return the 99th percentile of the lengths, rounded up: full color for a whole video."""
    lengths = np.hypot(result.flow[..., 0], result.flow[..., 1])
    return float(max(1, np.ceil(np.percentile(lengths, 99))))


def settings_of(estimator: Estimator, every: int) -> dict[str, Any]:
    """Return what a pair's flow depends on, besides its frames."""
    settings = estimator.config.tables()
    settings["window"] = "auto" if estimator.window is None else estimator.window.as_tuple()
    settings["every"] = every
    settings["version"] = hamflow.__version__
    # Another release may have learned better weights.
    settings["model"] = load_model(estimator.config.model).fingerprint
    return settings


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


def _read_record(path: Path) -> dict[str, Any]:
    try:
        record = json.loads(path.read_bytes())
        if record["maker"] != _MAKER:
            raise ValueError("made by another program")
        _ = record["input"], record["settings"], float(record["max_flow"])
        width, height = record["size"]
    except OSError as error:
        raise FileError(f"{path}: cannot be read ({error.strerror}).") from error
    except (KeyError, TypeError, ValueError) as error:
        raise FileError(f"{path}: is not from '{_MAKER}', or damaged; {_REMEDY}.") from error
    return {**record, "size": (int(width), int(height))}


def _flat(tables: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the entries of nested tables by their dotted names."""
    for key, value in tables.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value

"""How ``hamflow video`` writes its results, and how it knows which of them are complete."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from hamflow._resume import WorkLog
from hamflow.cli._video_outputs import Outputs, PictureOptions, Sink
from hamflow.errors import FileError, InputError
from hamflow.estimator import Estimator
from hamflow.io import check_flow_path
from hamflow.io._identity import file_record
from hamflow.io.images import check_image_path
from hamflow.io.video import Frames
from hamflow.scale.outputs import estimator_settings
from hamflow.sequence import VideoItem
from hamflow.visualize import RunningScale, common_length, typical_length

if TYPE_CHECKING:
    from typing_extensions import Self

Size = tuple[int, int]


class PictureScale:
    """The length in full color for each pair: a fixed one, or one that follows the motion."""

    def __init__(self, fixed: float | None) -> None:
        self._fixed = fixed
        self._running = RunningScale()
        self._typical: list[float] = []
        self._used: list[float] = []

    def add(self, length: float, cut: bool) -> float:
        """Take the typical length of the next pair; return the length in full color for it."""
        if cut:
            # There is no motion to show, and another scene follows.
            self._running.cut()
        else:
            self._typical.append(length)
            self._used.append(self._fixed or self._running.add(length))
        return self._used[-1] if self._used else self._fixed or length

    def said(self) -> str:
        """Return what to tell the user, as a part of a sentence."""
        least, most = (f"{f(self._used, default=1):.4g}" for f in (min, max))
        advice = f"{common_length(self._typical):.4g}"
        if least != most:
            return f"full color is {least} to {most} px (the same for all with --max-flow {advice})"
        return f"full color is {most} px (--max-flow {most})"


class Store:
    """All folders of a run, to be used in a ``with`` statement.

    The main folder is the last one, so that its files exist only if all others do. A pair consists
    of a frame and the one that comes `every` frames later.

    Attributes
    ----------
    size : (int, int) or None
        Height and width of all frames; None until they are known, from an earlier run or the first
        pair.
    scale : PictureScale
        The length in full color.
    """

    def __init__(
        self,
        outputs: Outputs,
        frames: Frames,
        estimator: Estimator,
        every: int,
        *,
        overwrite: bool = False,
    ) -> None:
        self._frames, self._every = frames, every
        self._outputs = outputs
        self.size: Size | None = None
        self.scale = PictureScale(outputs.pictures.max_flow)
        self._sources: dict[str, str | None] = {}
        settings = _settings(frames, estimator, every) if outputs.sinks else {}
        with ExitStack() as stack:
            self._logs = {
                sink: stack.enter_context(
                    WorkLog.in_folder(sink.folder, "video", overwrite=overwrite)
                )
                for sink in outputs.sinks
            }
            for sink, log in self._logs.items():
                check = check_flow_path if sink.flow else check_image_path
                check(sink.folder / f"hamflow-check{sink.suffix}")
                if frames.live and log.records:
                    raise FileError(
                        f"{log.path}: holds results of an earlier run, which frames from "
                        f"{frames.name} cannot continue; choose another place, or start again with "
                        "--overwrite."
                    )
                log.begin({**settings, **(_look(outputs.pictures) if sink.colors else {})})
                self._continue(sink, log)
            self._held = stack.pop_all()

    def _continue(self, sink: Sink, log: WorkLog) -> None:
        """Check the records of an earlier run, and take the size of the frames from them."""
        for record in log.records.values():
            try:
                (width, height), _ = record["size"], float(record["length"] if sink.colors else 1)
                self.size = int(height), int(width)
            except (KeyError, TypeError, ValueError) as error:
                raise FileError(
                    f"{log.path}: the line of {record['key']} is damaged; remove that line."
                ) from error

    def known(self, name: str) -> bool:
        """Return whether all files of a pair are complete and belong to the frames as they are."""
        # Computed before the frames are read: the next run will notice a later change.
        source = self._frames.pair_digest(name, self._every)
        # What goes to the standard output must be computed in any case.
        if not self._outputs.piped and all(log.find(name, source) for log in self._logs.values()):
            return True
        self._sources[name] = source
        return False

    def skip(self, name: str) -> bool:
        """Go over a pair that is known; return whether it is a cut."""
        records = {sink: log.records[name] for sink, log in self._logs.items()}
        cut = any(record.get("cut") is True for record in records.values())
        for sink, record in records.items():
            if sink.colors:
                self.scale.add(float(record["length"]), cut)
                break
        return cut

    def add(self, item: VideoItem) -> float:
        """Write all files of a pair; return the length in full color, if something shows it."""
        height, width = item.flow.shape[:2]
        self.size = height, width
        length = typical_length(item.flow) if self._outputs.shown else 1.0
        scale = self.scale.add(length, item.cut) if self._outputs.shown else 1.0
        source = self._sources.pop(item.name)
        for sink, log in self._logs.items():
            path = sink.path(item.name)
            try:
                sink.write(path, item, scale)
            except InputError as error:
                sentence = str(error).removesuffix(".")
                raise InputError(f"{path}: {sentence}; choose another --format.") from error
            log.add(
                item.name,
                source=source,
                files={path.name: file_record(path)},
                size=[width, height],
                time=item.time,
                cut=item.cut,
                **({"length": length, "max_flow": scale} if sink.colors else {}),
            )
        return scale

    def remove(self, sink: Sink) -> None:
        """Remove a folder that is no longer needed, except for files that are not of this run."""
        self._logs[sink].remove()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()


def _settings(frames: Frames, estimator: Estimator, every: int) -> dict[str, Any]:
    """Return what the flow of a pair depends on."""
    return {"input": frames.identity(), "every": every, **estimator_settings(estimator)}


def _look(pictures: PictureOptions) -> dict[str, Any]:
    """Return what pictures depend on, apart from the flow."""
    scale = "running" if pictures.max_flow is None else pictures.max_flow
    return {"style": pictures.style, "key": pictures.key, "max_flow": scale}

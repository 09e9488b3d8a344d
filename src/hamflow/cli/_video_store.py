"""Where ``hamflow video`` writes its results, and how it knows which of them are complete."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np

from hamflow._resume import WorkLog
from hamflow.errors import FileError, InputError
from hamflow.estimator import Estimator
from hamflow.io import check_flow_path
from hamflow.io._identity import file_record
from hamflow.io.images import check_image_path
from hamflow.io.video import Frames
from hamflow.result import FlowResult
from hamflow.scale.outputs import Output, estimator_settings

Size = tuple[int, int]


@dataclass(frozen=True)
class Sink:
    """A folder with one file for each pair, and a log."""

    folder: Path
    suffix: str  # of the files, which have the names of the first frames of the pairs
    output: Output  # what is written

    def path(self, name: str) -> Path:
        """Return the path of the file of a pair."""
        return self.folder / f"{name}{self.suffix}"


class Store:
    """All folders of a run, to be used in a ``with`` statement.

    The main folder is the last of `sinks`, so that its files exist only if all others do. A pair
    consists of a frame and the one that comes `every` frames later. `size`, the height and width of
    all frames, and `max_flow`, the length that gets full color, are None until they are known from
    an earlier run or the first pair.
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
        settings = {"input": frames.identity(), "every": every, **estimator_settings(estimator)}
        with ExitStack() as stack:
            self._logs = {
                sink: stack.enter_context(
                    WorkLog.in_folder(sink.folder, "video", overwrite=overwrite)
                )
                for sink in sinks
            }
            for sink, log in self._logs.items():
                check = check_flow_path if sink.output.flow else check_image_path
                check(sink.folder / f"hamflow-check{sink.suffix}")
                log.begin(settings)
            # First the folders whose files depend on the scale of the colors.
            for sink in sorted(sinks, key=lambda sink: not sink.output.colors):
                self._continue(sink, self._logs[sink])
            self._held = stack.pop_all()

    def _continue(self, sink: Sink, log: WorkLog) -> None:
        """Take the size of the frames and the scale of the colors from an earlier run."""
        for record in log.records.values():
            try:
                (width, height), scale = record["size"], float(record["max_flow"])
            except (KeyError, TypeError, ValueError) as error:
                raise FileError(
                    f"{log.path}: the line of {record['key']} is damaged; remove that line."
                ) from error
            if sink.output.colors and self.max_flow is not None:
                log.check({"max_flow": scale}, {"max_flow": self.max_flow})
            self.size = int(height), int(width)
            self.max_flow = scale if self.max_flow is None else self.max_flow

    def known(self, name: str) -> bool:
        """Return whether all files of a pair are complete and belong to the frames as they are."""
        # Computed before the frames are read: the next run will notice a later change.
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
            # The 99th percentile of the lengths of the first pair suits a whole video.
            lengths = np.hypot(result.flow[..., 0], result.flow[..., 1])
            self.max_flow = float(max(1, np.ceil(np.percentile(lengths, 99))))
        source = self._sources.pop(name)
        for sink, log in self._logs.items():
            path = sink.path(name)
            try:
                sink.output.write(path, result, self.max_flow)
            except InputError as error:
                sentence = str(error).removesuffix(".")
                raise InputError(f"{path}: {sentence}; choose another --format.") from error
            log.add(
                name,
                source=source,
                files={path.name: file_record(path)},
                size=[width, height],
                max_flow=self.max_flow,
            )

    def remove(self, sink: Sink) -> None:
        """Remove a folder that is no longer needed, except for files that are not of this run."""
        self._logs[sink].remove()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

"""What of a batch is done already: its log, in the output folder or at a URL, and its manifest."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from hamflow._resume import LOG, WorkLog, read_log
from hamflow.errors import FileError
from hamflow.io._atomic import remove_stale
from hamflow.scale import storage
from hamflow.scale.manifest import COLUMNS, MANIFEST, TABLE_SUFFIXES, write_manifest
from hamflow.scale.pairs import ImagePair
from hamflow.scale.worker import DONE, Record

if TYPE_CHECKING:
    from typing_extensions import Self

_WORK = "batch"
_PARTS = "run"  # the folder of the parts of a log at a URL
_REQUESTS = 32  # to a storage at the same time


class Store:
    """The output folder of a batch, to be used in a ``with`` statement.

    A pair is complete as soon as its record is in the log, which happens after all of its files
    are complete.

    Parameters
    ----------
    output : str
        A path or a URL.
    settings : mapping
        What the files depend on; an earlier batch in that folder must have had the same.
    overwrite : bool
        Start again, and remove the files of an earlier batch.
    """

    def __init__(self, output: str, settings: Mapping[str, Any], *, overwrite: bool) -> None:
        self._output = output
        with ExitStack() as stack:
            self._parts: LogParts | None = None
            if storage.is_url(output):
                self._parts = stack.enter_context(LogParts(output, overwrite=overwrite))
                self._parts.begin(settings)
                self._log = self._parts.log
            else:
                self._log = stack.enter_context(
                    WorkLog.in_folder(output, _WORK, overwrite=overwrite)
                )
                self._log.begin(settings)
            if overwrite:
                self._remove_manifest()
            self.sweep()
            self._held = stack.pop_all()
        self._stale: set[str] = set()  # pairs with records that are no longer true

    def missing(self, pairs: Sequence[ImagePair]) -> list[ImagePair]:
        """Return the pairs that are not complete, or whose images or files have changed."""
        sizes = self._parts.sizes() if self._parts is not None else None
        if any(storage.is_url(pair.image0) for pair in pairs):
            with ThreadPoolExecutor(_REQUESTS) as pool:
                known = list(pool.map(lambda pair: self._known(pair, sizes), pairs))
        else:
            known = [self._known(pair, sizes) for pair in pairs]
        return [pair for pair, complete in zip(pairs, known, strict=True) if not complete]

    def _known(self, pair: ImagePair, sizes: Mapping[str, int] | None) -> bool:
        # Files at a URL are not known to the log as files.
        record = self._log.find(pair.name)
        if record is None:  # or a file is missing or has changed
            self._stale.add(pair.name)
        if record is None or record.get("status") != DONE:
            return False
        objects = record.get("objects", {})
        if sizes is not None and any(sizes.get(k) != v.get("bytes") for k, v in objects.items()):
            complete = False
        else:
            first, second = record.get("inputs", [None, None])
            complete = storage.same(pair.image0, first) and storage.same(pair.image1, second)
        if not complete:
            self._stale.add(pair.name)
        return complete

    def add(self, finished: Sequence[tuple[ImagePair, Record]]) -> None:
        """Record pairs that are finished, well or not."""
        if not finished:
            return
        records: list[Record] = [{"key": pair.name} | record for pair, record in finished]
        if self._parts is not None:
            for record in records:
                record["objects"] = record.pop("files", {})
        self._log.add_all(records)
        self._stale -= {pair.name for pair, _ in finished}
        if self._parts is not None:
            self._parts.flush()

    def write_manifest(self, pairs: Sequence[ImagePair]) -> list[str]:
        """Write the tables that tell how each pair went, if any did; return their paths."""
        if not self._log.records:  # a log without records is removed
            return []
        return write_manifest(self._output, [self._row(pair) for pair in pairs])

    def _row(self, pair: ImagePair) -> dict[str, Any]:
        record = {} if pair.name in self._stale else self._log.records.get(pair.name, {})
        given = {"name": pair.name, "image0": pair.image0, "image1": pair.image1}
        frames = {"frame0": pair.frame0, "frame1": pair.frame1}
        values = {"status": "pending"} | record | given | frames
        return {name: values.get(name) for name in COLUMNS}

    def _remove_manifest(self) -> None:
        for suffix in TABLE_SUFFIXES:
            path = storage.join(self._output, MANIFEST + suffix)
            if storage.is_url(path):
                storage.remove(path)
            else:
                Path(path).unlink(missing_ok=True)

    def sweep(self) -> None:
        """Remove the temporary files of workers that were killed."""
        if self._parts is None:
            for folder, _, _ in os.walk(self._output):
                remove_stale(folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()


class LogParts:
    """A `WorkLog` at a URL, where files cannot be appended to: in parts, which make it up together.

    The log itself is in a temporary folder. `flush` copies what is new in it to a further part,
    named after the position where it begins; when a batch is continued, they become one part. The
    storage has no locks: only one batch at a time may write to a URL.
    """

    def __init__(self, url: str, *, overwrite: bool) -> None:
        self._url = url
        with ExitStack() as stack:
            folder = stack.enter_context(TemporaryDirectory(prefix="hamflow-"))
            self._file = Path(folder, LOG)
            self._old = self._listed()
            content = self._joined()
            if content:
                self._file.write_bytes(content)
            self.log = stack.enter_context(WorkLog(self._file, _WORK, overwrite=overwrite))
            self._held = stack.pop_all()
        self._dropped = []
        if overwrite and content:
            _, records = read_log(self._file, _WORK, lenient=True)
            self._dropped = [name for record in records for name in record.get("objects", {})]
        self._kept = 0  # bytes of the log that are at the URL

    def begin(self, settings: Mapping[str, Any]) -> None:
        """Write or check the settings; see `WorkLog.begin`."""
        fresh = not self.log.records
        try:
            self.log.begin(settings)
        except FileError as error:
            raise FileError(str(error).replace(str(self._file), self._url)) from error
        for name in self._dropped:
            storage.remove(storage.join(self._url, name))
        # A new log must not be continued by parts of an old one; but an old one must not get lost.
        if fresh:
            self._remove_others()
            self.flush()
        else:
            self.flush()
            self._remove_others()

    def flush(self) -> None:
        """Copy what is new to the URL."""
        with open(self._file, "rb") as file:
            file.seek(self._kept)
            new = file.read()
        if not new:
            return
        part = self._file.with_suffix(".part")
        part.write_bytes(new)
        storage.put(part, self._part(self._kept))
        self._kept += len(new)

    def sizes(self) -> dict[str, int]:
        """Return the sizes of all files below the URL, by their paths there."""
        system, inner = storage.filesystem(self._url)
        start = len(inner.rstrip("/")) + 1
        found = system.find(inner, detail=True)
        return {str(path)[start:]: int(info["size"]) for path, info in found.items()}

    def _part(self, position: int) -> str:
        return storage.join(self._url, f"{_PARTS}/{position:015}.jsonl")

    def _listed(self) -> list[int]:
        folder = storage.join(self._url, _PARTS)
        if not storage.exists(folder):
            return []
        names = [os.path.splitext(name)[0] for name in storage.files_below(folder)]
        return sorted(int(name) for name in names if name.isdecimal())

    def _joined(self) -> bytes:
        content = b""
        for position in self._old:
            if position == len(content):  # others are in an earlier part already
                path = self._file.with_suffix(".part")
                storage.fetch(self._part(position), str(path))
                content += path.read_bytes()
        return content

    def _remove_others(self) -> None:
        for position in self._old:
            if position:
                storage.remove(self._part(position))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

"""Who has which sources, jobs and results: every browser its own, and all what was given."""

from __future__ import annotations

import secrets
import shutil
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from hamflow.viewer.jobs import Job, JobQueue
from hamflow.viewer.limits import Limits
from hamflow.viewer.methods import offered
from hamflow.viewer.opening import Opened, open_given, open_uploaded
from hamflow.viewer.refusals import Refusal, unknown
from hamflow.viewer.results import KeptResult
from hamflow.viewer.source import ByteCache, Source
from hamflow.viewer.workspace import Workspace, size_of

_CACHE_BYTES = 64 << 20


@dataclass(eq=False)
class Session:
    """What one browser has."""

    id: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    sources: dict[str, Source] = field(default_factory=dict)
    jobs: dict[str, Job] = field(default_factory=dict)
    results: dict[str, KeptResult] = field(default_factory=dict)


class Registry:
    """Everything that the page serves.

    Parameters
    ----------
    paths : sequence of Path
        What was given on the command line; see `hamflow.viewer.opening.open_given`.
    truth : Path, optional
        The true flow of it.
    preset : str
        The preset that the page proposes: a name, or a TOML file.
    limits : Limits
        How much the page takes, keeps and does.
    """

    def __init__(
        self,
        paths: Sequence[Path] = (),
        *,
        truth: Path | None = None,
        preset: str = "balanced",
        limits: Limits | None = None,
    ) -> None:
        self.limits = Limits() if limits is None else limits
        self.presets = offered(preset)
        self.workspace = Workspace()
        self.cache = ByteCache(_CACHE_BYTES)
        self._lock = threading.RLock()
        self._sessions: OrderedDict[str, Session] = OrderedDict()
        self._shared = Session()
        self.queue = JobQueue(
            self._keep,
            self.workspace.folder,
            self.presets,
            limit=self.limits.queue,
            memory=self.limits.memory,
        )
        try:
            for opened in open_given(paths, truth, self.workspace.folder, self.limits):
                self._add(self._shared, opened)
                if opened.decode is not None:
                    threading.Thread(target=opened.decode, daemon=True).start()
        except BaseException:
            self.workspace.close()
            raise

    def close(self) -> None:
        """End all work, and remove everything that was kept."""
        self.queue.close()
        self.workspace.close()

    def session(self, given: str | None) -> Session:
        """Return the session of a cookie, or a new one."""
        with self._lock:
            found = None if given is None else self._sessions.get(given)
            if found is None:
                found = Session()
                self._sessions[found.id] = found
                self._forget_sessions()
            self._sessions.move_to_end(found.id)
            return found

    def sources(self, session: Session) -> list[Source]:
        """Return the sources that a browser sees."""
        with self._lock:
            return [*self._shared.sources.values(), *session.sources.values()]

    def source(self, session: Session, name: str) -> Source:
        """Return a source by its id."""
        with self._lock:
            found = session.sources.get(name) or self._shared.sources.get(name)
        if found is None:
            raise unknown("source")
        return found

    def job(self, session: Session, name: str) -> Job:
        """Return a job by its id."""
        with self._lock:
            found = session.jobs.get(name)
        if found is None:
            raise unknown("job")
        return found

    def jobs(self, session: Session) -> list[Job]:
        """Return the jobs of a browser, the oldest first."""
        with self._lock:
            return list(session.jobs.values())

    def result(self, session: Session, name: str) -> KeptResult:
        """Return a result by its id."""
        with self._lock:
            found = session.results.get(name) or self._shared.results.get(name)
        if found is None:
            raise unknown("result")
        return found

    def results_of(self, session: Session, source: Source) -> list[KeptResult]:
        """Return the results of a source that a browser sees, the oldest first."""
        with self._lock:
            everything = [*self._shared.results.values(), *session.results.values()]
        return [result for result in everything if result.source is source]

    def upload(
        self,
        session: Session,
        files: Sequence[tuple[str, Path]],
        truth: tuple[str, Path] | None,
        folder: Path,
    ) -> Source:
        """Open what a browser sent; its files are in a folder that is removed with the source."""
        with self._lock:
            if len(session.sources) >= self.limits.sources:
                raise Refusal(
                    429, f"There are {self.limits.sources} sources already; remove one first."
                )
        room = (self.limits.store_bytes - self._used()) // 2
        opened = open_uploaded(files, truth, folder, self.limits, room)
        with self._lock:
            self._add(session, opened)
        return opened.source

    def check_room(self) -> None:
        """Raise a Refusal if nothing more can be kept."""
        self._make_room()
        if self._used() > self.limits.store_bytes:
            raise Refusal(
                429,
                f"The page keeps at most {self.limits.store_bytes / 1e9:.3g} GB of images and "
                "results; remove a source first.",
            )

    def start_job(
        self,
        session: Session,
        source: Source,
        pairs: range,
        *,
        preset: str,
        window: Literal["auto"] | int,
    ) -> Job:
        """Queue the estimation of some pairs, which are called by their first frames."""
        if preset not in self.presets:
            raise Refusal(
                422, f"There is no preset {preset!r}; choose one of {', '.join(self.presets)}."
            )
        self.check_room()
        job = Job(session.id, source, pairs.start, len(pairs), preset, window)
        self.queue.add(job)
        with self._lock:
            session.jobs[job.id] = job
            ended = [name for name, old in session.jobs.items() if old.ended]
            for name in ended[: max(0, len(session.jobs) - self.limits.history)]:
                del session.jobs[name]
        return job

    def remove_source(self, session: Session, source: Source) -> None:
        """Forget a source, its jobs and its results, and remove their files."""
        if source.shared:
            raise Refusal(409, f"{source.name} was given on the command line, and stays.")
        with self._lock:
            session.sources.pop(source.id, None)
            for job in [job for job in session.jobs.values() if job.source is source]:
                self.queue.cancel(job)
                del session.jobs[job.id]
            for result in [r for r in session.results.values() if r.source is source]:
                del session.results[result.id]
                _remove(result.folder)
        _remove(source.folder)

    def _add(self, session: Session, opened: Opened) -> None:
        source = opened.source
        session.sources[source.id] = source
        for index, file in opened.results.items():
            result = KeptResult(source, index, file=file, new_folder=self.workspace.folder)
            session.results[result.id] = result
            if source.result is None:
                source.result = result.id
            if source.kind == "result" and source.size == (0, 0):
                height, width = result.load().flow.shape[:2]
                source.size = (width, height)

    def _keep(self, job: Job, index: int, folder: Path) -> str:
        result = KeptResult(job.source, index, job.preset, folder, size=size_of(folder))
        with self._lock:
            session = self._sessions.get(job.session)
            if session is not None:
                session.results[result.id] = result
        self._make_room()
        return result.id

    def _everything(self) -> Iterator[KeptResult]:
        for session in (self._shared, *self._sessions.values()):
            yield from session.results.values()

    def _used(self) -> int:
        with self._lock:
            owners = [self._shared, *self._sessions.values()]
            folders = [s.folder for owner in owners for s in owner.sources.values() if s.folder]
            results = sum(result.size for result in self._everything())
        return results + sum(size_of(folder) for folder in folders)

    def _make_room(self) -> None:
        """Give up what explains results, the oldest first, until the rest fits."""
        excess = self._used() - self.limits.store_bytes
        with self._lock:
            results = list(self._everything())
        for result in results:
            if excess <= 0:
                return
            folder = result.give_up_explanation()
            if folder is not None:
                freed = size_of(folder)
                _remove(folder)
                result.size -= freed
                excess -= freed

    def _forget_sessions(self) -> None:
        """Forget the browsers that came back least recently and have nothing running."""
        for session in list(self._sessions.values()):
            if len(self._sessions) <= self.limits.sessions:
                return
            if all(job.ended for job in session.jobs.values()):
                for source in list(session.sources.values()):
                    self.remove_source(session, source)
                for result in session.results.values():
                    _remove(result.folder)
                del self._sessions[session.id]


def describe_job(job: Job, position: int) -> dict[str, Any]:
    """Return what the page gets to know of a job."""
    return {
        "id": job.id,
        "source": job.source.id,
        "index": job.first,
        "first": job.first,
        "last": job.first + job.pairs,
        "preset": job.preset,
        "window": job.window,
        "state": job.state,
        "position": position,
        "stage": job.stage,
        "share": job.share,
        "history": job.history,
        "passes": job.passes,
        "error": job.error,
        "results": {str(index): name for index, name in sorted(job.results.items())},
        "cuts": list(job.cuts),
    }


def _remove(folder: Path | None) -> None:
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)

"""The interface to jobs: start, follow, cancel."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

from fastapi import FastAPI
from fastapi.responses import StreamingResponse

from hamflow.viewer.answers import Mine, refused
from hamflow.viewer.jobs import Job
from hamflow.viewer.refusals import Refusal
from hamflow.viewer.registry import Registry, describe_job
from hamflow.viewer.schemas import JobInfo, JobRequest
from hamflow.viewer.source import Source

_PER_SECOND = 20
_BYTES_PER_SECOND = 1e6


def add_jobs(api: FastAPI, registry: Registry) -> None:
    """Let the application answer about jobs."""

    def info(job: Job) -> dict[str, Any]:
        return describe_job(job, registry.queue.position(job))

    @api.get("/api/jobs", response_model=list[JobInfo])
    def jobs(session: Mine) -> Any:
        """Return the jobs of this browser, the oldest first."""
        return [info(job) for job in registry.jobs(session)]

    @api.post(
        "/api/jobs", status_code=201, response_model=JobInfo, responses=refused(404, 409, 413, 429)
    )
    def start(session: Mine, wanted: JobRequest) -> Any:
        """Estimate the flow of a pair, or of a stretch of frames."""
        source = registry.source(session, wanted.source)
        pairs = _wanted_pairs(source, wanted)
        preset = next(iter(registry.presets)) if wanted.preset is None else wanted.preset
        return info(registry.start_job(session, source, pairs, preset=preset, window=wanted.window))

    @api.get("/api/jobs/{job}", response_model=JobInfo, responses=refused(404))
    def job_info(session: Mine, job: str) -> Any:
        """Return how far a job is."""
        return info(registry.job(session, job))

    @api.delete("/api/jobs/{job}", response_model=JobInfo, responses=refused(404))
    def cancel(session: Mine, job: str) -> Any:
        """Cancel a job, also while it runs; results that are there remain."""
        found = registry.job(session, job)
        registry.queue.cancel(found)
        return info(found)

    @api.get(
        "/api/jobs/{job}/events",
        response_class=StreamingResponse,
        responses={
            **refused(404),
            200: {
                "description": "Server-sent events; the data of each is a JobInfo.",
                "content": {"text/event-stream": {}},
            },
        },
    )
    async def events(session: Mine, job: str) -> StreamingResponse:
        """Follow a job until it ends."""
        found = registry.job(session, job)
        return StreamingResponse(
            _events(found, lambda: info(found)),
            media_type="text/event-stream",
            headers={"Cache-Control": "no-store"},
        )


async def _events(job: Job, info: Callable[[], dict[str, Any]]) -> AsyncIterator[str]:
    seen = ""
    while True:
        ended = job.ended  # asked first, so that the last state is sent
        state = json.dumps(info())
        if state != seen:
            seen = state
            yield f"data: {state}\n\n"
        if ended:
            return
        # A long film has long states: not too many of them.
        await asyncio.sleep(max(1 / _PER_SECOND, len(state) / _BYTES_PER_SECOND))


def _wanted_pairs(source: Source, wanted: JobRequest) -> range:
    """Return the pairs that somebody wants, by their first frames."""
    if source.kind == "result" or (not source.frames and not source.loading):
        raise Refusal(409, f"{source.name} has no images, so that nothing can be estimated.")
    if wanted.first is not None and wanted.last is not None:
        pairs = range(wanted.first, wanted.last)
    else:
        first = 0 if wanted.index is None else wanted.index
        pairs = range(first, first + 1)
    if pairs.stop >= len(source.frames):
        raise Refusal(
            422,
            f"{source.name} has {len(source.frames)} frames, so that the last pair begins with "
            f"frame {len(source.frames) - 2}.",
        )
    return pairs

"""The interface to sources: what the server can do, uploads, frames."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated, Any

from fastapi import FastAPI, File, Query, Response, UploadFile

from hamflow import __version__
from hamflow.viewer.answers import WIDEST, Mine, png_answer, refused
from hamflow.viewer.methods import described
from hamflow.viewer.opening import cleaned, truth_suffix
from hamflow.viewer.refusals import Refusal
from hamflow.viewer.registry import Registry
from hamflow.viewer.schemas import Info, SourceInfo

_SHOWN_LIMITS = ("upload_bytes", "upload_files", "pixels", "frames", "queue")
_BLOCK = 1 << 20


def add_sources(api: FastAPI, registry: Registry) -> None:
    """Let the application answer about sources."""

    @api.get("/api/info", response_model=Info)
    def info() -> Any:
        """Return what this server can do."""
        registry.queue.start()  # somebody is there: be ready when a job comes
        limits = registry.limits
        return {
            "version": __version__,
            "presets": described(registry.presets),
            "limits": {name: getattr(limits, name) for name in _SHOWN_LIMITS},
        }

    @api.get("/api/sources", response_model=list[SourceInfo])
    def sources(session: Mine) -> Any:
        """Return what flow can be estimated of, and results that were saved."""
        return [source.describe() for source in registry.sources(session)]

    @api.post(
        "/api/sources",
        status_code=201,
        response_model=SourceInfo,
        responses=refused(413, 415, 429),
    )
    def upload(
        session: Mine,
        files: Annotated[
            list[UploadFile],
            File(
                min_length=1,
                description="Images in their order, one video, or one saved result (.npz).",
            ),
        ],
        truth: Annotated[
            UploadFile | None, File(description="The true flow of the first pair.")
        ] = None,
    ) -> Any:
        """Add images, a video or a saved result."""
        most = registry.limits.upload_files
        if len(files) > most:
            raise Refusal(413, f"{len(files)} files are more than the {most} of one upload.")
        registry.check_room()
        folder = registry.workspace.folder()
        try:
            named = [
                (file.filename or "unnamed", _stored(file, folder / f"upload-{number:04d}"))
                for number, file in enumerate(files)
            ]
            true = None
            if truth is not None and truth.filename:
                suffix = truth_suffix(truth.filename)
                true = (cleaned(truth.filename), _stored(truth, folder / f"truth{suffix}"))
            return registry.upload(session, named, true, folder).describe()
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise

    @api.delete("/api/sources/{source}", status_code=204, responses=refused(404, 409))
    def remove_source(session: Mine, source: str) -> Response:
        """Remove a source with its jobs and results."""
        registry.remove_source(session, registry.source(session, source))
        return Response(status_code=204)

    @api.get(
        "/api/sources/{source}/frames/{number}",
        response_class=Response,
        responses={**refused(404, 415), 200: {"content": {"image/png": {}}}},
    )
    def frame(
        session: Mine,
        source: str,
        number: int,
        width: Annotated[int | None, Query(ge=1, le=WIDEST)] = None,
    ) -> Response:
        """Return a frame as an 8-bit PNG file."""
        found = registry.source(session, source)
        return png_answer(registry, (found.id, number, width), lambda: found.frame(number), width)


def _stored(file: UploadFile, path: Path) -> Path:
    """Write an uploaded file; its bytes are bounded by the front already."""
    with path.open("xb") as target:
        shutil.copyfileobj(file.file, target, _BLOCK)
    return path

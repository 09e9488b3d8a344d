"""The programming interface behind the page: what FastAPI answers."""

from __future__ import annotations

import asyncio
import gzip
import json
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import Depends, FastAPI, File, Query, Request, Response, UploadFile
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, StreamingResponse

from hamflow import __version__
from hamflow.errors import HamflowError
from hamflow.viewer.front import SESSION
from hamflow.viewer.jobs import Job
from hamflow.viewer.methods import described
from hamflow.viewer.opening import cleaned, truth_suffix
from hamflow.viewer.refusals import Refusal
from hamflow.viewer.registry import Registry, Session, describe_job
from hamflow.viewer.results import FORMATS, KeptResult
from hamflow.viewer.schemas import (
    Info,
    JobInfo,
    JobRequest,
    Message,
    PixelInfo,
    ResultInfo,
    SourceInfo,
    TrackInfo,
)
from hamflow.viewer.source import Source, as_png
from hamflow.viewer.standalone import Shown, page_html
from hamflow.viewer.tracking import track

STAGES = [
    *("reading", "descriptors", "matching", "check", "completion", "refinement", "assessment"),
    *("saving", "done"),
]
_FOREVER = {"Cache-Control": "private, max-age=31536000, immutable"}
_LOOPBACK = ("127.", "::1")
_PER_SECOND = 20
_BYTES_PER_SECOND = 1e6
# Of a union, the error of its first member would be told.
_CLEARER = {"window": "Must be 'auto' or an even number from 2 to 4096"}
_BLOCK = 1 << 20
_WIDEST = 1 << 15
_LONGEST_VIEW = 4000

LayerName = Literal["flow", "backward", "occlusion", "confidence", "error", "truth"]
Format = Literal["flo", "png", "kitti.png", "npz", "html"]
Coordinate = Annotated[int, Query(ge=0, lt=_WIDEST * 4)]


def _refused(*statuses: int) -> dict[int | str, dict[str, Any]]:
    texts = {
        401: "The token is missing.",
        403: "From a page of another site.",
        404: "It does not exist, or belongs to another browser.",
        409: "It does not fit what is there.",
        413: "Too large.",
        415: "Not a file that Hamflow reads.",
        421: "By a name that is not this server's.",
        422: "A wrong value.",
        429: "Too much at a time.",
        431: "Too long headers.",
    }
    return {status: {"model": Message, "description": texts[status]} for status in statuses}


def _session(request: Request) -> Session:
    found: Session = request.scope[SESSION]
    return found


Mine = Annotated[Session, Depends(_session)]


def create_api(registry: Registry) -> FastAPI:
    """Return the application; each request has its session in its scope."""
    api = FastAPI(
        title="Hamflow viewer",
        version=__version__,
        description=(
            "What the page of `hamflow serve` is made of. Sources, jobs and results belong to the "
            "session of a browser, which is a cookie; those given on the command line are shared."
        ),
        docs_url=None,
        redoc_url=None,
        responses=_refused(401, 403, 421, 422, 431),
    )
    _add_errors(api)
    _add_sources(api, registry)
    _add_jobs(api, registry)
    _add_results(api, registry)
    return api


def _add_errors(api: FastAPI) -> None:
    @api.exception_handler(Refusal)
    async def refused(_request: Request, error: Refusal) -> JSONResponse:
        return JSONResponse({"detail": error.sentence}, error.status)

    @api.exception_handler(HamflowError)
    async def wrong(_request: Request, error: HamflowError) -> JSONResponse:
        return JSONResponse({"detail": str(error)}, 422)

    @api.exception_handler(400)
    async def unreadable(_request: Request, _error: Exception) -> JSONResponse:
        return JSONResponse({"detail": "The body of the request cannot be parsed."}, 422)

    @api.exception_handler(RequestValidationError)
    async def invalid(_request: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        place = next((str(part) for part in first["loc"][1:]), "request")
        text = str(first["msg"]).removeprefix("Value error, ")
        text = _CLEARER.get(place, text).rstrip(".")
        return JSONResponse({"detail": f"{place}: {text}."}, 422)


def _add_sources(api: FastAPI, registry: Registry) -> None:
    @api.get("/api/info", response_model=Info)
    def info() -> Any:
        """Return what this server can do."""
        registry.queue.start()  # somebody is there: be ready when a job comes
        limits = registry.limits
        return {
            "version": __version__,
            "presets": described(registry.presets),
            "stages": STAGES,
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
        responses=_refused(413, 415, 429),
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

    @api.delete("/api/sources/{source}", status_code=204, responses=_refused(404, 409))
    def remove_source(session: Mine, source: str) -> Response:
        """Remove a source with its jobs and results."""
        registry.remove_source(session, registry.source(session, source))
        return Response(status_code=204)

    @api.get(
        "/api/sources/{source}/frames/{number}",
        response_class=Response,
        responses={**_refused(404, 415), 200: {"content": {"image/png": {}}}},
    )
    def frame(
        session: Mine,
        source: str,
        number: int,
        width: Annotated[int | None, Query(ge=1, le=_WIDEST)] = None,
    ) -> Response:
        """Return a frame as an 8-bit PNG file."""
        found = registry.source(session, source)
        return _png(registry, (found.id, number, width), lambda: found.frame(number), width)


_SHOWN_LIMITS = ("upload_bytes", "upload_files", "pixels", "frames", "queue")


def _add_jobs(api: FastAPI, registry: Registry) -> None:
    def info(job: Job) -> dict[str, Any]:
        return describe_job(job, registry.queue.position(job))

    @api.get("/api/jobs", response_model=list[JobInfo])
    def jobs(session: Mine) -> Any:
        """Return the jobs of this browser, the oldest first."""
        return [info(job) for job in registry.jobs(session)]

    @api.post(
        "/api/jobs", status_code=201, response_model=JobInfo, responses=_refused(404, 409, 413, 429)
    )
    def start(session: Mine, wanted: JobRequest) -> Any:
        """Estimate the flow of a pair, or of a stretch of frames."""
        source = registry.source(session, wanted.source)
        pairs = _wanted_pairs(source, wanted)
        preset = next(iter(registry.presets)) if wanted.preset is None else wanted.preset
        return info(registry.start_job(session, source, pairs, preset=preset, window=wanted.window))

    @api.get("/api/jobs/{job}", response_model=JobInfo, responses=_refused(404))
    def job_info(session: Mine, job: str) -> Any:
        """Return how far a job is."""
        return info(registry.job(session, job))

    @api.delete("/api/jobs/{job}", response_model=JobInfo, responses=_refused(404))
    def cancel(session: Mine, job: str) -> Any:
        """Cancel a job, also while it runs; results that are there remain."""
        found = registry.job(session, job)
        registry.queue.cancel(found)
        return info(found)

    @api.get(
        "/api/jobs/{job}/events",
        response_class=StreamingResponse,
        responses={
            **_refused(404),
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


def _add_results(api: FastAPI, registry: Registry) -> None:
    @api.get("/api/results/{result}", response_model=ResultInfo, responses=_refused(404, 415))
    def result_info(session: Mine, result: str) -> Any:
        """Return what is known about a flow."""
        return registry.result(session, result).describe()

    @api.get(
        "/api/results/{result}/layers/{name}",
        response_class=Response,
        responses={
            **_refused(404, 415),
            200: {
                "description": "Little-endian numbers; the headers X-Dtype and X-Shape tell which.",
                "content": {"application/octet-stream": {}},
            },
        },
    )
    def layer(
        request: Request,
        session: Mine,
        result: str,
        name: LayerName,
        type: Literal["float16", "float32"] = "float16",
    ) -> Response:
        """Return an array."""
        array = registry.result(session, result).layer(name, type == "float32")
        headers = {
            "X-Dtype": array.dtype.name,
            "X-Shape": ",".join(str(side) for side in array.shape),
            "Vary": "Accept-Encoding",
            **_FOREVER,
        }
        content = array.tobytes()
        if _far_and_willing(request):
            content = gzip.compress(content, 1)
            headers["Content-Encoding"] = "gzip"
        return Response(content, media_type="application/octet-stream", headers=headers)

    @api.get(
        "/api/results/{result}/warped",
        response_class=Response,
        responses={**_refused(404, 409, 415), 200: {"content": {"image/png": {}}}},
    )
    def warped(session: Mine, result: str) -> Response:
        """Return the second frame, warped to the first, as a PNG file."""
        found = _with_images(registry.result(session, result))
        return _png(registry, ("warped", found.id), found.warped)

    @api.get("/api/results/{result}/pixel", response_model=PixelInfo, responses=_refused(404, 415))
    def pixel(session: Mine, result: str, x: Coordinate, y: Coordinate) -> Response:
        """Return everything that is known about a pixel."""
        answer = registry.result(session, result).pixel(x, y)
        # Already checked by its making: a second check would take longer than the answer.
        return Response(json.dumps(answer), media_type="application/json")

    @api.get(
        "/api/results/{result}/track",
        response_model=TrackInfo,
        responses=_refused(404, 409, 415),
    )
    def track_point(
        session: Mine,
        result: str,
        x: Annotated[float, Query(ge=0, le=_WIDEST * 4)],
        y: Annotated[float, Query(ge=0, le=_WIDEST * 4)],
    ) -> Any:
        """Return the track of a point of the first frame through the results that are there."""
        found = _with_images(registry.result(session, result))
        return {"points": track(found, registry.results_of(session, found.source), x, y)}

    @api.get(
        "/api/results/{result}/download/{format}",
        response_class=Response,
        responses={
            **_refused(404, 409, 415),
            200: {"content": {"application/octet-stream": {}, "image/png": {}, "text/html": {}}},
        },
    )
    def download(
        session: Mine,
        result: str,
        format: Format,
        view: Annotated[
            str | None, Query(max_length=_LONGEST_VIEW, description="Of the page, as JSON.")
        ] = None,
        also: Annotated[
            list[str] | None, Query(max_length=3, description="More results for the page.")
        ] = None,
    ) -> Response:
        """Return the flow as a file, or as a page that needs no server."""
        found = registry.result(session, result)
        if format == "html":
            others = [registry.result(session, name) for name in also or []]
            content = _page_of([found, *others], _parsed_view(view))
        else:
            path = registry.workspace.file(f".{format}")
            try:
                found.write(path, format)
                content = path.read_bytes()
            finally:
                with suppress(OSError):
                    path.unlink()
        name = f"flow_{found.index:04d}.{format}"
        return Response(
            content,
            media_type=FORMATS[format],
            headers={"Content-Disposition": f'attachment; filename="{name}"'},
        )


def _parsed_view(text: str | None) -> dict[str, Any] | None:
    try:
        view = None if text is None else json.loads(text)
    except ValueError:
        view = ()
    if view is not None and not isinstance(view, dict):
        raise Refusal(422, "view: Must be an object in JSON.")
    return view


def _page_of(results: list[KeptResult], view: dict[str, Any] | None) -> bytes:
    """Return results of one pair as a page."""
    first = results[0]
    source, index = first.source, first.index
    if any(other.source is not source or other.index != index for other in results):
        raise Refusal(409, "Only results of the same pair can be on one page.")
    frames = [source.frame(k) for k in (index, index + 1) if k < len(source.frames)]
    shown = Shown(source.name, frames, [result.shown() for result in results])
    return page_html([shown], title=f"{source.name} – Hamflow", view=view).encode()


def _stored(file: UploadFile, path: Path) -> Path:
    """Write an uploaded file; its bytes are bounded by the front already."""
    with path.open("xb") as target:
        shutil.copyfileobj(file.file, target, _BLOCK)
    return path


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


def _with_images(result: KeptResult) -> KeptResult:
    if result.index + 1 >= len(result.source.frames):
        raise Refusal(409, f"{result.source.name} has no images; give them with the result.")
    return result


def _png(
    registry: Registry, key: object, pixels: Callable[[], Any], width: int | None = None
) -> Response:
    content = registry.cache.get(key)
    if content is None:
        content = as_png(pixels(), width)
        registry.cache.put(key, content)
    return Response(content, media_type="image/png", headers=_FOREVER)


def _far_and_willing(request: Request) -> bool:
    """Whether compressing pays: on this machine sending is faster than that."""
    near = request.client is None or request.client.host.startswith(_LOOPBACK)
    return not near and "gzip" in request.headers.get("Accept-Encoding", "")

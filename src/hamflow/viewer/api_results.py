"""The interface to results: numbers, layers, pixels, tracks, downloads."""

from __future__ import annotations

import gzip
import json
from contextlib import suppress
from typing import Annotated, Any, Literal

from fastapi import FastAPI, Query, Request, Response

from hamflow.viewer.answers import FOREVER, WIDEST, Mine, png_answer, refused
from hamflow.viewer.refusals import Refusal
from hamflow.viewer.registry import Registry
from hamflow.viewer.results import FORMATS, KeptResult
from hamflow.viewer.schemas import PixelInfo, ResultInfo, TrackInfo
from hamflow.viewer.standalone import Shown, page_html
from hamflow.viewer.tracking import track

_LOOPBACK = ("127.", "::1")
_LONGEST_VIEW = 4000

LayerName = Literal["flow", "backward", "occlusion", "confidence", "error", "truth"]
Format = Literal["flo", "png", "kitti.png", "npz", "html"]
Coordinate = Annotated[int, Query(ge=0, lt=WIDEST)]
Place = Annotated[float, Query(ge=0, le=WIDEST)]


def add_results(api: FastAPI, registry: Registry) -> None:
    """Let the application answer about results."""

    @api.get("/api/results/{result}", response_model=ResultInfo, responses=refused(404, 415))
    def result_info(session: Mine, result: str) -> Any:
        """Return what is known about a flow."""
        return registry.result(session, result).describe()

    @api.get(
        "/api/results/{result}/layers/{name}",
        response_class=Response,
        responses={
            **refused(404, 415),
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
            **FOREVER,
        }
        content = array.tobytes()
        if _far_and_willing(request):
            content = gzip.compress(content, 1)
            headers["Content-Encoding"] = "gzip"
        return Response(content, media_type="application/octet-stream", headers=headers)

    @api.get(
        "/api/results/{result}/warped",
        response_class=Response,
        responses={**refused(404, 409, 415), 200: {"content": {"image/png": {}}}},
    )
    def warped(session: Mine, result: str) -> Response:
        """Return the second frame, warped to the first, as a PNG file."""
        found = _with_images(registry.result(session, result))
        return png_answer(registry, ("warped", found.id), found.warped)

    @api.get("/api/results/{result}/pixel", response_model=PixelInfo, responses=refused(404, 415))
    def pixel(session: Mine, result: str, x: Coordinate, y: Coordinate) -> Response:
        """Return everything that is known about a pixel."""
        answer = registry.result(session, result).pixel(x, y)
        # Already checked by its making: a second check would take longer than the answer.
        return Response(json.dumps(answer), media_type="application/json")

    @api.get(
        "/api/results/{result}/track", response_model=TrackInfo, responses=refused(404, 409, 415)
    )
    def track_point(session: Mine, result: str, x: Place, y: Place) -> Any:
        """Return the track of a point of the first frame through the results that are there."""
        found = _with_images(registry.result(session, result))
        return {"points": track(found, registry.results_of(session, found.source), x, y)}

    @api.get(
        "/api/results/{result}/download/{format}",
        response_class=Response,
        responses={
            **refused(404, 409, 415),
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
    return page_html([shown], view=view)[0].encode()


def _with_images(result: KeptResult) -> KeptResult:
    if result.index + 1 >= len(result.source.frames):
        raise Refusal(409, f"{result.source.name} has no images; give them with the result.")
    return result


def _far_and_willing(request: Request) -> bool:
    """Whether compressing pays: on this machine sending is faster than that."""
    near = request.client is None or request.client.host.startswith(_LOOPBACK)
    return not near and "gzip" in request.headers.get("Accept-Encoding", "")

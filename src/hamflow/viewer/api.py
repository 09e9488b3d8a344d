"""The programming interface behind the page: what FastAPI answers."""

from __future__ import annotations

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse

from hamflow import __version__
from hamflow.errors import HamflowError
from hamflow.viewer.answers import refused
from hamflow.viewer.api_jobs import add_jobs
from hamflow.viewer.api_results import add_results
from hamflow.viewer.api_sources import add_sources
from hamflow.viewer.refusals import Refusal
from hamflow.viewer.registry import Registry

# Of a union, the error of its first member would be told.
_CLEARER = {"window": "Must be 'auto' or an even number from 2 to 4096"}


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
        responses=refused(401, 403, 421, 422, 431),
    )
    _add_errors(api)
    add_sources(api, registry)
    add_jobs(api, registry)
    add_results(api, registry)
    return api


def _add_errors(api: FastAPI) -> None:
    @api.exception_handler(Refusal)
    async def not_fulfilled(_request: Request, error: Refusal) -> JSONResponse:
        return JSONResponse({"detail": str(error)}, error.status)

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

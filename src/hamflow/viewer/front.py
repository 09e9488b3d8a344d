"""What answers first: it guards the server, knows the browsers, and serves the files of the page.

It needs no framework, so that the page is there while the rest of the server is still being
imported.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from hamflow.viewer.guard import HEADERS, Guard
from hamflow.viewer.refusals import Refusal
from hamflow.viewer.registry import Registry

Scope = MutableMapping[str, Any]
Event = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Event]]
Send = Callable[[Event], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

PAGE = Path(__file__).parent / "page"
SESSION = "hamflow.session"
"""Where the session of the browser is in the scope of a request."""
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
}
_SMALL_BODY = 1 << 16
_LONGEST_HEADERS = 1 << 14
_UPLOADS = "/api/sources"


class Front:
    """The outermost application, in the terms of ASGI.

    Parameters
    ----------
    guard : Guard
        Decides who may come in.
    registry : Registry
        Knows the sessions.
    """

    def __init__(self, guard: Guard, registry: Registry) -> None:
        self._guard = guard
        self._registry = registry
        self._loading: asyncio.Task[App] | None = None
        self._files = {path.name: path for path in PAGE.iterdir() if path.suffix in _TYPES}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            try:
                await self._answer(scope, receive, _with_headers(send))
            except Refusal as refusal:
                await _send_refusal(_with_headers(send), refusal)

    async def _api(self) -> App:
        """Return what answers the rest, as soon as it is there."""
        if self._loading is None:
            self._loading = asyncio.create_task(asyncio.to_thread(_load_api, self._registry))
        return await asyncio.shield(self._loading)

    async def _live(self, receive: Receive, send: Send) -> None:
        loading: asyncio.Task[App] | None = None
        while True:
            event = await receive()
            if event["type"] == "lifespan.startup":
                loading = asyncio.create_task(self._api())
                await send({"type": "lifespan.startup.complete"})
            else:
                if loading is not None:
                    await loading
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        if sum(len(name) + len(value) for name, value in scope["headers"]) > _LONGEST_HEADERS:
            raise Refusal(431, "The headers of the request are too long.")
        headers = {
            name.decode("latin-1").lower(): value.decode("latin-1")
            for name, value in scope["headers"]
        }
        method, path = scope["method"], scope["path"]
        self._guard.check(method, headers)
        cookies = _cookies(headers.get("cookie", ""))
        asked = parse_qs(scope["query_string"].decode("latin-1")).get("token", [None])[0]
        new_token = path == "/" and asked is not None
        guard = self._guard
        guard.check_token(asked if new_token else cookies.get(guard.token_cookie))
        new_cookies = {guard.token_cookie: asked} if new_token and guard.token else {}

        if path.startswith("/page/"):
            await self._send_file(method, path.removeprefix("/page/"), send)
            return
        given = cookies.get(guard.session_cookie)
        session = self._registry.session(given)
        # Who follows a link from another site does not show the cookie that he has.
        if session.id != given and headers.get("sec-fetch-site") != "cross-site":
            new_cookies[guard.session_cookie] = session.id
        if path == "/":
            await self._send_file(method, "index.html", _with_cookies(send, new_cookies))
            return
        api = await self._api()
        scope = {**scope, SESSION: session}
        limit = self._registry.limits.upload_bytes if path == _UPLOADS else _SMALL_BODY
        await api(scope, _bounded(receive, headers, limit), _with_cookies(send, new_cookies))

    async def _send_file(self, method: str, name: str, send: Send) -> None:
        if method not in ("GET", "HEAD"):
            raise Refusal(405, "The page can only be read.")
        # Only names that were found at the start are served, so no path leads anywhere else.
        file = self._files.get(name)
        if file is None:
            raise Refusal(404, "The page has no such file.")
        content = await asyncio.to_thread(file.read_bytes)
        await send(_start(200, _TYPES[file.suffix], len(content), {"Cache-Control": "no-cache"}))
        body = b"" if method == "HEAD" else content
        await send({"type": "http.response.body", "body": body})


def _load_api(registry: Registry) -> App:
    # Imported here: it takes longer than all that the page itself needs.
    from hamflow.viewer.api import create_api  # noqa: PLC0415

    return create_api(registry)


def _start(status: int, kind: str, length: int, more: dict[str, str] | None = None) -> Event:
    headers = {"Content-Type": kind, "Content-Length": str(length), **(more or {})}
    return {
        "type": "http.response.start",
        "status": status,
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }


async def _send_refusal(send: Send, refusal: Refusal) -> None:
    content = json.dumps({"detail": str(refusal)}).encode()
    await send(_start(refusal.status, "application/json", len(content)))
    await send({"type": "http.response.body", "body": content})


def _with_headers(send: Send) -> Send:
    """Add the headers that protect the page to an answer."""
    fixed = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]

    async def sending(event: Event) -> None:
        if event["type"] == "http.response.start":
            event = {**event, "headers": [*event.get("headers", []), *fixed]}
        await send(event)

    return sending


def _with_cookies(send: Send, cookies: dict[str, Any]) -> Send:
    """Let the browser keep some cookies, which no script can read."""
    lines = [
        (b"set-cookie", f"{name}={value}; Path=/; HttpOnly; SameSite=Strict".encode())
        for name, value in cookies.items()
    ]

    async def sending(event: Event) -> None:
        if event["type"] == "http.response.start" and lines:
            event = {**event, "headers": [*event.get("headers", []), *lines]}
        await send(event)

    return sending


def _bounded(receive: Receive, headers: dict[str, str], limit: int) -> Receive:
    """Refuse a body of more than `limit` bytes, as announced or as it comes."""
    sentence = f"The request has more than the {limit} bytes that are taken."
    announced = headers.get("content-length", "0")
    if not announced.isdecimal() or int(announced) > limit:
        raise Refusal(413, sentence)
    left = limit

    async def receiving() -> Event:
        nonlocal left
        event = await receive()
        if event["type"] == "http.request":
            left -= len(event.get("body", b""))
            if left < 0:
                # Of another exception, FastAPI would say that the body cannot be parsed.
                from starlette.exceptions import HTTPException  # noqa: PLC0415

                raise HTTPException(413, sentence)
        return event

    return receiving


def _cookies(header: str) -> dict[str, str]:
    try:
        return {name: morsel.value for name, morsel in SimpleCookie(header).items()}
    except CookieError:
        return {}

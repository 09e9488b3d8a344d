"""What all parts of the interface share: the session, refusals, pictures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import Depends, Request, Response

from hamflow.viewer.front import SESSION
from hamflow.viewer.registry import Registry, Session
from hamflow.viewer.schemas import Message
from hamflow.viewer.source import as_png

FOREVER = {"Cache-Control": "private, max-age=31536000, immutable"}
"""What never changes under its address."""
WIDEST = 1 << 20
"""Pixels of a side, at most."""


def refused(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return what the description says about these statuses."""
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
"""The session of the browser that asks."""


def png_answer(
    registry: Registry, key: object, pixels: Callable[[], Any], width: int | None = None
) -> Response:
    """Return an image as a PNG file, which is kept for the next time."""
    content = registry.cache.get(key)
    if content is None:
        content = as_png(pixels(), width)
        registry.cache.put(key, content)
    return Response(content, media_type="image/png", headers=FOREVER)

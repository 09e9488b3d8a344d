"""What the page says about each preset."""

from __future__ import annotations

from collections.abc import Iterable

_TEXTS = {
    "balanced": "The default: both directions, completion, subpixel refinement.",
    "fast": "A smaller network and a coarser search: faster, less accurate.",
    "realtime": "Coarser still, in one search, refined up to half of the size.",
    "paper": "The method of the paper: full size, one direction, whole pixels; slow.",
}


def described(names: Iterable[str]) -> list[dict[str, str]]:
    """Return names and texts; one that is not shipped comes from a file of the user's."""
    return [{"name": name, "text": _TEXTS.get(name, "From your own file.")} for name in names]

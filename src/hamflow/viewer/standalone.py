"""The page as one file: results, images and the program that shows them, without a server.

The program is that of ``hamflow serve``; only where it gets its data from differs.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import os
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from hamflow import __version__
from hamflow.errors import InputError
from hamflow.io._atomic import atomic_write
from hamflow.viewer.coding import Blobs
from hamflow.viewer.contents import Contents, Shown, ShownResult, only_finite

__all__ = ["LIMIT", "Shown", "ShownResult", "page_html", "write_page"]

LIMIT = 64 * 2**20
"""Bytes that a page has at most, unless told otherwise."""

_STYLE = '<link rel="stylesheet" href="page/style.css">'
_PROGRAM = '<script type="module" src="page/main.js"></script>'


def write_page(
    path: str | os.PathLike[str], shown: Sequence[Shown], *, limit: int = LIMIT
) -> list[str]:
    """Write the page of `page_html`, and return its notes."""
    page, notes = page_html(shown, limit=limit)
    with atomic_write(path) as file:
        file.write(page.encode())
    return notes


def page_html(
    shown: Sequence[Shown],
    *,
    title: str | None = None,
    view: Mapping[str, Any] | None = None,
    limit: int = LIMIT,
) -> tuple[str, list[str]]:
    """Return a page that shows results, as one HTML document that needs nothing else.

    Parameters
    ----------
    shown : sequence of Shown
        What is on the page.
    title : str, optional
        The title of the window; by default the names.
    view : mapping, optional
        What is seen first: mode, layers, pixels in full color, and the marked pixel.
    limit : int
        Bytes that the page has at most. What explains pixels is left out first (the slacks, then
        the descriptors), then backward flows; the page says what it lacks.

    Returns
    -------
    page : str
    notes : list of str
        What was left out because of the limit, in sentences that are also on the page.

    Raises
    ------
    InputError
        If there is nothing to show, sizes do not fit, or the rest is larger than the limit.
    """
    if not shown or not all(each.results for each in shown):
        raise InputError("A page needs at least one result for all that it shows.")
    contents = Contents(limit)
    for each in shown:
        contents.add(each)
    notes = contents.add_options()
    data = {
        "version": __version__,
        "sources": contents.sources,
        "frames": contents.frames,
        "runs": contents.runs,
        "results": contents.results,
        "notes": notes,
        "view": None if view is None else dict(view),
    }
    name = title or ", ".join(dict.fromkeys(each.name for each in shown))
    return _assembled(name, data, contents.blobs), notes


def _assembled(title: str, data: dict[str, Any], blobs: Blobs) -> str:
    """Put program, style and data into the page."""
    folder = files("hamflow.viewer").joinpath("page")

    def text(name: str) -> str:
        return folder.joinpath(name).read_text(encoding="utf-8")

    modules = sorted(item.name for item in folder.iterdir() if item.name.endswith(".js"))
    imports = {f"hamflow/{name}": _module(text(name)) for name in modules}
    style = text("style.css")
    scripts = {
        "importmap": json.dumps({"imports": imports}),
        "module": 'import "hamflow/main.js";',
    }
    hashes = " ".join(_hash(script) for script in scripts.values())
    policy = (
        f"default-src 'none'; script-src {hashes} data:; style-src {_hash(style)}; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    plain = json.dumps(only_finite(data), allow_nan=False, separators=(",", ":"))
    plain = plain.replace("<", "\\u003c")  # so that no text can end the element
    parts = [
        f'<script type="application/json" id="hamflow-data">{plain}</script>',
        *(
            f'<script type="text/plain" id="blob-{number}">{blob}</script>'
            for number, blob in enumerate(blobs.texts)
        ),
        *(f'<script type="{kind}">{script}</script>' for kind, script in scripts.items()),
    ]
    page = text("index.html")
    head = f'<meta http-equiv="Content-Security-Policy" content="{html.escape(policy)}">\n'
    for before, after in (
        ('<meta charset="utf-8">\n', '<meta charset="utf-8">\n' + head),
        ("<title>Hamflow</title>", f"<title>{html.escape(title)} – Hamflow</title>"),
        (_STYLE, f"<style>{style}</style>"),
        (_PROGRAM, ""),
        ("</body>", "\n".join([*parts, "</body>"])),
    ):
        assert page.count(before) == 1, before
        page = page.replace(before, after)
    return page


def _module(program: str) -> str:
    """Return the address of a module that is part of the page.

    Modules without a file have no folder, so they import each other by names that the page maps.
    """
    named = re.sub(r'(from|import) "\./(\w+\.js)"', r'\1 "hamflow/\2"', program)
    return f"data:text/javascript;base64,{base64.b64encode(named.encode()).decode('ascii')}"


def _hash(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")
    return f"'sha256-{digest}'"

"""The help page of a command: short on top, details below, no line longer than the screen."""

from __future__ import annotations

import io
import shutil
import textwrap
from collections.abc import Callable
from contextlib import redirect_stdout
from inspect import cleandoc

_WIDEST = 100  # longer lines are hard to read


def default_hint(default: str) -> str:
    """Return the default of an option for the help page, if it tells the user something."""
    # The description of a switch that is on, and so has the name --no-..., says what that does.
    return "" if default in ("", "None", "False", "True") else f"(default: {default})"


def filled(docstring: str) -> str:
    """Join the lines of each paragraph, because tyro would keep some of the line breaks."""
    lines = [""]
    for line in docstring.splitlines():
        last = lines[-1]
        aligned = len(line) - len(line.lstrip()) == len(last) - len(last.lstrip())
        if aligned and line.strip() and last.strip() and "---" not in line + last:
            lines[-1] += f" {line.strip()}"
        else:
            lines.append(line)
    return "\n".join(lines[1:])


def print_page(parse: Callable[[], object], docstring: str) -> None:
    """Print the page that tyro prints in `parse`, with the details of the docstring below.

    Raises the SystemExit of tyro, which comes after each help page.
    """
    page = io.StringIO()
    try:
        with redirect_stdout(page):
            parse()
    finally:
        usage, _, rest = page.getvalue().partition("\n")
        # tyro wraps neither the usage nor a description, so it is given none.
        print(textwrap.fill(usage, _columns(), subsequent_indent=" " * 4, break_on_hyphens=False))
        summary, *details = cleandoc(docstring).split("\nParameters\n---")[0].split("\n\n")
        print(f"\n{_wrapped(summary)}")
        print("\n".join(line.rstrip() for line in rest.rstrip().splitlines()))
        for paragraph in details:
            print(f"\n{_wrapped(paragraph)}".rstrip())


def _columns() -> int:
    return shutil.get_terminal_size().columns


def _wrapped(paragraph: str) -> str:
    """Return a paragraph with lines that fit; an indented one is an example and stays as it is."""
    if paragraph.startswith(" "):
        return paragraph
    return textwrap.fill(paragraph, min(_columns(), _WIDEST), break_on_hyphens=False)

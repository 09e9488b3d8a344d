"""The pages of the API reference: one for each package, with all of its public names."""

from __future__ import annotations

import inspect
import io
from contextlib import redirect_stdout, suppress
from importlib import import_module
from pathlib import Path
from textwrap import indent
from types import ModuleType

from sphinx.ext.autodoc.mock import mock

from hamflow.cli.app import COMMANDS
from hamflow.cli.main import main

# In the order of the data. A module without __all__ shows what it defines itself.
MODULES = {
    "hamflow": "Estimation, videos, files",
    "hamflow.flow": "Warping, resizing and composing flows",
    "hamflow.visualize": "Pictures",
    "hamflow.io": "Files",
    "hamflow.io.video": "Frames of videos",
    "hamflow.motion": "Tracks, frames in between, stabilization, masks",
    "hamflow.scale.batch": "Many pairs",
    "hamflow.scale.ray": "Many pairs on a Ray cluster",
    "hamflow.datasets": "Data sets and rendered scenes",
    "hamflow.evaluation": "Metrics, evaluation, comparison, submission",
    "hamflow.descriptors": "Descriptors",
    "hamflow.matching": "Min-projections and messages",
    "hamflow.crf": "The joint model",
    "hamflow.refinement": "Check, completion, refinement, assessment",
    "hamflow.pipeline.explain": "Why a pixel got its match",
    "hamflow.stages": "The protocols of stages",
    "hamflow.config": "Presets",
    "hamflow.errors": "Errors",
}


MOCKED = ["ray"]  # large packages that are imported for their types and calls alone


def imported(name: str) -> ModuleType:
    """Import a module whose large dependencies need not be installed."""
    with mock(MOCKED):
        return import_module(name)


def public_names(name: str) -> list[str]:
    """Return the functions and classes that a module offers, in alphabetical order."""
    module = imported(name)
    named = getattr(module, "__all__", None)
    found = []
    for key in named if named is not None else vars(module):
        value = getattr(module, key)
        if key.startswith("_") or not (inspect.isclass(value) or inspect.isroutine(value)):
            continue
        if named is not None or value.__module__ == name:
            found.append(key)
    return sorted(found, key=str.lower)


def page(name: str, title: str) -> str:
    """Return the page of a module: a table of its names, then each of them in full.

    What the top level hands on is described there, and only there.
    """
    names = public_names(name)
    module, top = imported(name), imported("hamflow")
    handed_on = {key for key in names if name != top.__name__ and key in top.__all__}
    head = f"{title}: {name}"
    lines = [head, "=" * len(head), "", f".. automodule:: {name}", "   :no-members:", ""]
    listed = [f"hamflow.{key}" if key in handed_on else key for key in names]
    lines += [
        ".. autosummary::",
        "   :nosignatures:",
        "",
        *(f"   {qualified}" for qualified in listed),
        "",
    ]
    for key in names:
        if key in handed_on:
            continue
        value = getattr(module, key)
        if inspect.isclass(value):
            lines += [f".. autoclass:: {name}.{key}", "   :members:"]
            lines += [*(["   :show-inheritance:"] if issubclass(value, Exception) else []), ""]
        else:
            lines += [f".. autofunction:: {name}.{key}", ""]
    return "\n".join(lines)


def commands() -> str:
    """Return a page with the help of every command, as it is printed."""
    lines = ["Command line", "============", "", "What ``hamflow COMMAND --help`` prints.", ""]
    for name in (command.name for command in COMMANDS):
        printed = io.StringIO()
        with redirect_stdout(printed), suppress(SystemExit):  # help pages end the program
            main([name, "--help"])
        title = f"hamflow {name}"
        lines += [title, "-" * len(title), "", ".. code-block:: text", ""]
        lines += [indent(printed.getvalue().rstrip(), "   "), ""]
    return "\n".join(lines)


def pages(folder: Path) -> dict[Path, str]:
    """Return all pages of the reference with their index, by their files."""
    found = {name.replace(".", "_"): page(name, title) for name, title in MODULES.items()}
    index = ["API reference", "=============", "", ".. toctree::", "   :maxdepth: 1", ""]
    found["index"] = "\n".join([*index, *(f"   {stem}" for stem in found), ""])
    found["commands"] = commands()
    return {folder / f"{stem}.rst": text for stem, text in found.items()}

"""The documentation as a site: ``make docs``. Pages are Markdown that also reads well on GitHub."""

from __future__ import annotations

import logging
import os
import re
import sys
from importlib.metadata import version as installed_version
from pathlib import Path

import sphinx.ext.autosummary
from docutils import nodes
from docutils.utils.math import latex2mathml
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path.insert(0, str(HERE))
import api_pages  # noqa: E402

logging.getLogger("hamflow").setLevel(logging.WARNING)  # of the examples in the gallery

REPOSITORY = "https://github.com/hamflow/hamflow"
PROJECT_PAGES = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")

project = "Hamflow"
author = "The Hamflow developers"
copyright = "The Hamflow developers, Apache-2.0"
release = version = installed_version("hamflow")

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx.ext.viewcode",
    "numpydoc",
    "myst_nb",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "examples", "gallery/*.ipynb"]
default_role = "py:obj"
sphinx.ext.autosummary.WELL_KNOWN_ABBREVIATIONS += ("eq.", "eqs.")  # no ends of sentences
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # numpydoc's sections have the types, with shapes
autosummary_generate = False
autodoc_mock_imports = api_pages.MOCKED
numpydoc_show_class_members = False  # members are written out below their class
numpydoc_class_members_toctree = False
# Sections, their order and their names, and summaries that say what is done.
numpydoc_validation_checks = {"GL06", "GL07", "PR06", "PR10", "SS05"}
intersphinx_mapping: dict[str, tuple[str, str | None]] = {}  # the build needs no network

html_math_renderer = "mathml"
myst_heading_anchors = 4
myst_enable_extensions = ["dollarmath"]
nb_execution_mode = "force"  # the tutorial shows what this version computes
nb_execution_raise_on_error = True
nb_execution_timeout = 300

sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"plot_",
    "abort_on_example_error": True,
    "show_memory": False,
    "write_computation_times": False,
    "download_all_examples": False,
    "remove_config_comments": True,
    "within_subsection_order": "FileNameSortKey",
}

html_theme = "furo"
html_title = f"Hamflow {release}"
html_static_path = ["_static"]
html_css_files = ["hamflow.css"]
html_logo = None
html_theme_options = {
    "source_repository": f"{REPOSITORY}/",
    "source_branch": "main",
    "source_directory": "docs/",
}


def rewritten(text: str, source: Path, page: Path) -> str:
    """Return the Markdown of `source` with links that are right on `page` of the site.

    Links to pages of the site lead there, and links to other files of the repository to GitHub.
    """

    def link(match: re.Match[str]) -> str:
        target, anchor = (source.parent / match[1]).resolve(), match[2] or ""
        if target.name in PROJECT_PAGES and target.parent == ROOT:
            target = HERE / "project" / target.name.lower()
        if target.is_relative_to(HERE):
            return f"]({os.path.relpath(target, page.parent)}{anchor})"
        if not target.is_relative_to(ROOT):
            return match[0]
        kind = "tree" if target.is_dir() else "blob"
        return f"]({REPOSITORY}/{kind}/main/{target.relative_to(ROOT).as_posix()}{anchor})"

    return re.sub(r"\]\((?![a-z]+:|#)([^)#\s]+)(#[^)\s]*)?\)", link, text)


def rewrite_links(app: Sphinx, docname: str, source: list[str]) -> None:
    """Rewrite the links of a page that is in docs/."""
    page = Path(app.env.doc2path(docname))
    if page.suffix == ".md":
        source[0] = rewritten(source[0], page, page)


def write_pages(app: Sphinx) -> None:
    """Write the pages that are not files of docs/: the API, and files at the project's root."""
    pages = api_pages.pages(HERE / "api")
    for name in PROJECT_PAGES:
        page = HERE / "project" / name.lower()
        pages[page] = rewritten((ROOT / name).read_text(encoding="utf-8"), ROOT / name, page)
    for page, text in pages.items():
        page.parent.mkdir(exist_ok=True)
        if not page.is_file() or page.read_text(encoding="utf-8") != text:  # else it is up to date
            page.write_text(text, encoding="utf-8")


def show_math(translator: HTML5Translator, node: nodes.math | nodes.math_block) -> None:
    """Write a formula as MathML, which browsers show by themselves: no script from elsewhere."""
    block = isinstance(node, nodes.math_block)
    mathml = latex2mathml.tex2mathml(node.astext(), as_block=block)
    translator.body.append(f'<div class="math">{mathml}</div>' if block else mathml)
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    """Write pages and rewrite links before anything is read."""
    app.add_html_math_renderer("mathml", (show_math, None), (show_math, None))
    app.connect("builder-inited", write_pages)
    app.connect("source-read", rewrite_links)
    app.connect("env-get-outdated", lambda *_: ["index"])  # what it lists depends on other files

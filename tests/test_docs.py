"""The links of the pages of the documentation lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from _paths import ROOT

PAGES = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "howto").glob("*.md")]
)
LINK = re.compile(r"\]\((?![a-z]+:)([^)#\s]*)(?:#([^)\s]+))?\)")


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub and the site make them."""
    headings = re.findall("^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    plain = [re.sub(r"[`*]|\]\(.*?\)|\[", "", text) for text in headings]
    return {re.sub(r"[^\w\- ]", "", text.lower()).strip().replace(" ", "-") for text in plain}


def broken_links(page: Path) -> list[str]:
    found = []
    for target, anchor in LINK.findall(page.read_text(encoding="utf-8")):
        file = (page.parent / target).resolve() if target else page
        # The gallery is made when the site is built.
        source = re.sub(r"gallery/(\w+)\.rst$", r"examples/\1.py", str(file))
        if not Path(source).exists() or (
            anchor and file.suffix == ".md" and anchor not in anchors(file)
        ):
            found.append(f"{target}#{anchor}" if anchor else target)
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links(page: Path) -> None:
    assert broken_links(page) == []


def test_broken_links_are_found(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# One *two*\n[x](b.md) [y](#one-two) [z](#three) [w](http://e)")
    assert broken_links(tmp_path / "a.md") == ["b.md", "#three"]

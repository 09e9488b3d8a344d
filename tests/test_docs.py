"""The pages of the documentation: their examples run, and their links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import hamflow
from _paths import ROOT
from _videos import write_video
from hamflow.datasets import demo_scene

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


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files that the examples use, in the working directory."""
    monkeypatch.chdir(tmp_path)
    scene = demo_scene(64, 96)
    frames = [scene.image0, scene.image1, np.roll(scene.image1, 2, axis=1)]
    hamflow.write_image("frame1.png", frames[0])
    hamflow.write_image("frame2.png", frames[1])
    write_video(tmp_path / "clip.mp4", frames)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "needs"),
    [
        ("quickstart", None),
        ("direction", None),
        ("howto/confidence", None),
        ("howto/from-opencv", "cv2"),
        ("howto/from-raft", "torch"),
    ],
)
@pytest.mark.usefixtures("files")
def test_examples(name: str, needs: str | None) -> None:
    if needs is not None:
        pytest.importorskip(needs)
    text = (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
    codes = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert codes
    names: dict[str, object] = {}
    for code in codes:
        if "video(0" in code:  # there may be no camera
            compile(code, name, "exec")
        else:
            exec(code, names)

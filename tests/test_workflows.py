"""The workflows of continuous integration run nothing that somebody else can change."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from _paths import ROOT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PINNED = re.compile(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_by_their_hashes(path: Path) -> None:
    uses = re.findall(r"uses: (.+)", path.read_text())
    assert uses
    assert [u for u in uses if not (u.startswith("./") or PINNED.fullmatch(u))] == []


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_checkouts_keep_no_credentials(path: Path) -> None:
    text = path.read_text()
    assert text.count("actions/checkout@") == text.count("persist-credentials: false")

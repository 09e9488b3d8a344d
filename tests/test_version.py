"""One version in all files that name it, and notes for the release."""

from __future__ import annotations

import runpy

import pytest

from _paths import ROOT

SCRIPT = ROOT / ".github" / "check_version.py"


@pytest.mark.skipif(not SCRIPT.is_file(), reason="a source distribution has no workflows")
def test_one_version_everywhere() -> None:
    names = runpy.run_path(str(SCRIPT))
    (version,) = set(names["versions"]().values())
    assert version != "none"
    assert "### " in names["notes"](version)
    assert names["notes"]("99.0") == ""

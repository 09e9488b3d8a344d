"""The script that looks at the local page in a browser."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
import tyro

from experiments.scripts import viewer_page


@pytest.mark.slow
def test_lines_and_pictures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if not (shutil.which("chromium") or shutil.which("google-chrome") or os.environ.get("CI")):
        pytest.skip("needs a browser")
    words = f"viewer_page {tmp_path} --height 100 --width 150 --preset realtime --pixels 3"
    monkeypatch.setattr("sys.argv", words.split())
    tyro.cli(viewer_page.main)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0].split(" /")[0] for line in lines] == [
        "first paint",
        "from a pixel to its curves",
        "drawing the flow",
        "panning",
        "Wrote",
        "Wrote",
    ]
    assert sorted(file.name for file in tmp_path.iterdir()) == ["viewer-four.png", "viewer.png"]

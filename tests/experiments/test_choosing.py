"""docs/choosing.md is what the measurements in experiments/results say."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from _paths import ROOT
from experiments.scripts import choosing


def test_page_is_up_to_date() -> None:
    expected = (ROOT / "docs" / "choosing.md").read_text(encoding="utf-8")
    assert choosing.page() == expected, "run 'make results' and commit docs/choosing.md"


def test_tables_are_whole() -> None:
    blocks = re.findall(r"(?:^\|.*\n)+", choosing.page(), re.MULTILINE)
    assert len(blocks) == 4
    for block in blocks:
        assert len({row.count("|") for row in block.splitlines()}) == 1
    costs = next(block for block in blocks if "installed" in block)
    assert all(name in costs for name in choosing.NAMES.values())


def test_the_page_follows_the_measurements(tmp_path: Path) -> None:
    for name in ("pair.json", choosing.FILE):
        shutil.copy(choosing.RESULTS / name, tmp_path)
    found = choosing.read(tmp_path)
    found["cost"]["opencv-dis"][0]["seconds"] = 1234.5
    found["rendered"]["errors"]["fast"] = 0.001
    (tmp_path / choosing.FILE).write_text(json.dumps(found))
    text = choosing.page(tmp_path)
    assert "| OpenCV DIS | 1234.50 |" in text
    assert "**0.00**" in text  # the lowest error of a row is bold


def test_chart(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    choosing.draw(path=tmp_path / "chart.png")
    assert (tmp_path / "chart.png").read_bytes()[:4] == b"\x89PNG"


def test_a_method_alone() -> None:
    seconds, memory = choosing._alone("realtime", 96, 64, 1)
    assert seconds > 0
    assert memory > 10_000_000


def test_errors_on_rendered_scenes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choosing, "NAMES", {"realtime": "`realtime`", "raft-small": "RAFT"})
    small = choosing.SyntheticConfig(height=48, width=64, max_displacement=4)
    monkeypatch.setattr(choosing, "_SCENES", small)
    found = choosing.rendered(None, 2)
    assert found["count"] == 2
    assert set(found["errors"]) == {"realtime"}

"""The hashes that compare two versions of the code."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.scripts import hashes


def test_equal_results_have_equal_hashes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(hashes, "PRESETS", ["fast"])
    monkeypatch.setattr(hashes, "HEIGHT", 40)
    monkeypatch.setattr(hashes, "WIDTH", 56)
    hashes.main()
    first = capsys.readouterr().out
    hashes.main()
    assert capsys.readouterr().out == first
    lines = first.splitlines()
    assert [line[:18].rstrip() for line in lines[1:]] == [
        *("fast scene 0", "fast scene 1", "fast video 0", "fast video 1")
    ]
    assert len({tuple(line[18:].split()) for line in lines}) == 5


def test_one_changed_value_changes_the_hash() -> None:
    flow = np.zeros((4, 5, 2), np.float32)
    before = hashes.digest(flow)
    flow[3, 4, 1] = 1e-30
    assert len(before) == 16
    assert hashes.digest(flow) != before
    assert hashes.digest(None).strip() == "-"

"""docs/results.md is what the measurements in experiments/results say."""

from __future__ import annotations

import re

import pytest

from _paths import ROOT
from experiments.paper.table1 import NETWORKS, columns_of
from experiments.scripts import results
from hamflow.io._text import read_rows


def test_page_is_up_to_date() -> None:
    expected = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    assert results.page() == expected, "run 'make results' and commit docs/results.md"


def test_tables_are_whole() -> None:
    for line in results.page().splitlines():
        if line.startswith("|"):
            assert "nan" not in line.lower()
    blocks = re.findall(r"(?:^\|.*\n)+", results.page(), re.MULTILINE)
    assert len(blocks) >= 8
    for block in blocks:
        assert len({row.count("|") for row in block.splitlines()}) == 1


@pytest.mark.parametrize("name", ["sintel-clean", "synthetic"])
def test_table1_has_all_networks_of_the_paper(name: str) -> None:
    rows = read_rows(results.RESULTS / f"table1-{name}.csv")[1]
    pairs = {row["pair"] for row in rows}
    cells = {(row["train"], int(row["layers"]), row["column"], row["pair"]) for row in rows}
    assert cells == {
        (network.train, network.layers, column, pair)
        for network in NETWORKS
        for column in columns_of(network)
        for pair in pairs
    }
    assert len(rows) == len(cells)

"""docs/results.md is what the measurements in results/ say."""

from __future__ import annotations

import importlib.util
import re
import sys
from types import ModuleType

import pytest

from _paths import ROOT
from experiments.paper.table1 import NETWORKS, columns_of
from hamflow.evaluation.records import read_csv


@pytest.fixture(scope="module")
def results() -> ModuleType:
    spec = importlib.util.spec_from_file_location("results", ROOT / "benchmarks" / "results.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["results"] = module
    spec.loader.exec_module(module)
    return module


def test_page_is_up_to_date(results: ModuleType) -> None:
    expected = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    assert results.page() == expected, "run 'make results' and commit docs/results.md"


def test_tables_are_whole(results: ModuleType) -> None:
    for line in results.page().splitlines():
        if line.startswith("|"):
            assert "nan" not in line.lower()
    blocks = re.findall(r"(?:^\|.*\n)+", results.page(), re.MULTILINE)
    assert len(blocks) >= 8
    for block in blocks:
        assert len({row.count("|") for row in block.splitlines()}) == 1


@pytest.mark.parametrize("name", ["sintel-clean", "synthetic"])
def test_table1_has_all_networks_of_the_paper(name: str) -> None:
    rows = read_csv(ROOT / "results" / f"table1-{name}.csv")
    pairs = {row["pair"] for row in rows}
    cells = {(row["train"], int(row["layers"]), row["column"], row["pair"]) for row in rows}
    assert cells == {
        (network.train, network.layers, column, pair)
        for network in NETWORKS
        for column in columns_of(network)
        for pair in pairs
    }
    assert len(rows) == len(cells)

"""What ``paper table1`` says of the paper's findings."""

from __future__ import annotations

from experiments.paper.findings import findings, known_over, shown, table_of
from experiments.paper.published import TABLE1
from experiments.paper.table1 import Network


def rows_of(figures: dict[tuple[str, int], dict[str, tuple[float, float] | None]]) -> list[dict]:  # type: ignore[type-arg]
    return [
        {
            "train": train.lower(),
            "layers": layers,
            "column": column,
            "epe_noc": errors[0],
            "epe_all": errors[1],
            "pixels_noc": 80,
            "pixels": 100,
        }
        for (train, layers), columns in figures.items()
        for column, errors in columns.items()
        if errors is not None
    ]


def test_the_papers_own_findings_hold_in_its_table() -> None:
    table = table_of(rows_of(TABLE1))
    found = findings(table)
    assert [finding.holds for finding in found] == [True] * 5
    close = found[0].figures
    assert "1.17 (5 layers)" in close
    assert "1.19 (7 layers)" in close


def test_findings_that_do_not_hold() -> None:
    figures = {
        ("FF", 5): {"trained": (2.0, 3.0), "qq": (1.9, 3.0), "crf_f": (1.0, 1), "crf_q": (1.5, 1)},
        ("FQ", 5): {"trained": (4.0, 6.0), "qq": (3.9, 3.0), "crf_q": (4.0, 1)},
        ("QQ", 5): {"qq": (3.5, 3.0), "crf_q": (1.0, 1)},
    }
    found = findings(table_of(rows_of(figures)))
    assert [finding.holds for finding in found] == [False] * 5


def test_findings_of_a_part() -> None:
    figures = {("QQ", 5): {"qq": (3.5, 3.0), "crf_q": (1.0, 1.0)}}
    assert findings(table_of(rows_of(figures))) == []


def test_errors_as_they_are_shown() -> None:
    assert shown({"noc": 5.25, "all": 10.379}) == shown((5.25, 10.38)) == "5.25 (10.38)"
    assert shown({"noc": None, "all": 1.0}) == "– (1.00)"
    assert shown(None) == "–"


def test_findings_without_noc() -> None:
    figures = {("FQ", 5): {"trained": (2.0, 3.0), "qq": (4.0, 2.0)}}
    table = table_of(rows_of(figures))
    assert known_over(table) == "noc"
    for cell in table[Network("fq", 5)].values():
        cell["noc"] = None
    assert known_over(table) == "all"
    (finding,) = findings(table, "all")
    assert not finding.holds
    assert finding.figures == "WTA QQ / WTA as trained: FQ-5 0.67"


def test_pooling_counts_pixels() -> None:
    row = {"train": "qq", "layers": 5, "column": "qq"}
    rows = [
        row | {"epe_noc": 1.0, "epe_all": 2.0, "pixels_noc": 10, "pixels": 30},
        row | {"epe_noc": "", "epe_all": "5.0", "pixels_noc": "0", "pixels": "10"},
    ]
    assert table_of(rows)[Network("qq", 5)]["qq"] == {"noc": 1.0, "all": 2.75}

"""The direction of imports between the packages, which docs/architecture.md explains."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from _paths import ROOT

SOURCES = ROOT / "src" / "hamflow"
BASE = (
    "errors _types _check _log _native _processes _progress _runtime _memory _room _beside prior "
    "stages window"
)
"""Modules that everything may import, and which import only each other."""
COMMON = "io _tables flow visualize _scale"
ROUTE = (
    f"{COMMON} descriptors matching crf refinement config pipeline result estimation regions "
    "estimator large sequence"
)
ANYTHING = None
MAY_IMPORT: dict[str, str | None] = {
    # Each package, lowest first, and what it may import besides the base and itself.
    **dict.fromkeys(BASE.split(), ""),
    "io": "",
    "_tables": "io",
    "_resume": "io",
    "flow": "io",
    "visualize": "io flow",
    "_scale": "io flow",
    "descriptors": COMMON,
    "matching": COMMON,  # not the descriptors, nor the other way around
    "crf": f"{COMMON} matching",
    "refinement": COMMON,  # does not know how the matches were found
    "config": f"{COMMON} descriptors matching crf refinement",
    "pipeline": f"{COMMON} descriptors matching crf refinement config",
    "result": f"{COMMON} crf",
    "estimation": f"{COMMON} crf config refinement pipeline result",
    "regions": f"{COMMON} crf config pipeline result",
    "estimator": f"{COMMON} descriptors matching crf refinement config pipeline result "
    "estimation regions",
    "large": f"{COMMON} config pipeline estimation estimator",
    "sequence": f"{COMMON} config pipeline result estimator",
    "motion": ROUTE,
    "datasets": f"{COMMON} _resume",  # not the estimator
    "evaluation": f"{ROUTE} _resume datasets",
    "scale": f"{ROUTE} _resume datasets",
    "viewer": f"{ROUTE} motion datasets evaluation",
    "learning": f"{COMMON} _resume descriptors matching crf datasets",
    "cli": ANYTHING,
    "__main__": ANYTHING,
    "__init__": ANYTHING,
}
FILES = sorted(SOURCES.rglob("*.py"))


def imported(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and name of all that is imported, also inside functions, or used as `name.attribute`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: write the whole name"
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            yield node.lineno, f"{node.value.id}.{node.attr}"


def wrong_imports(package: str, tree: ast.AST) -> list[str]:
    """What a package imports though it may not."""
    rule, found = MAY_IMPORT[package], []
    always = (package, "", "__version__", *BASE.split())
    for line, name in imported(tree):
        home, _, rest = name.partition(".")
        part = rest.partition(".")[0]
        allowed = rule is ANYTHING or part in (*always, *rule.split())
        if (
            (home == "hamflow" and not allowed)
            or (home == "torch" and package != "learning")
            or home == "experiments"
        ):
            found.append(f"line {line}: {package} must not import {name}")
    return found


def package_of(file: Path) -> str:
    return file.relative_to(SOURCES).parts[0].removesuffix(".py")


def test_every_package_is_in_the_table() -> None:
    assert {package_of(file) for file in FILES} | {"_native"} == set(MAY_IMPORT)


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_imports_go_one_way(package: str) -> None:
    for file in FILES:
        if package_of(file) == package:
            tree = ast.parse(file.read_text(encoding="utf-8"))
            assert wrong_imports(package, tree) == [], file.relative_to(SOURCES)


def test_the_table_goes_one_way() -> None:
    names = list(MAY_IMPORT)
    for number, rule in enumerate(MAY_IMPORT.values()):
        assert set((rule or "").split()) <= set(names[:number])


@pytest.mark.parametrize(
    ("package", "code"),
    [
        ("matching", "from hamflow.descriptors import bits"),
        ("sequence", "from hamflow.motion.tracks import track"),
        ("matching", "def f():\n    from hamflow import descriptors"),
        ("refinement", "import hamflow.crf.dual"),
        ("datasets", "import hamflow\nhamflow.Estimator"),
        ("errors", "import hamflow.io"),
        ("evaluation", "import torch.nn"),
        ("cli", "from experiments.paper import table1"),
    ],
)
def test_wrong_imports_are_found(package: str, code: str) -> None:
    assert wrong_imports(package, ast.parse(code)) != []

"""Every module, function and test that docs/paper.md names exists, so that the page stays true."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
NAMES = sorted(set(re.findall(r"`((?:hamflow|experiments)(?:\.\w+)+)`", PAGE)))
TESTS = sorted(set(re.findall(r"`tests/(\w+)::(test_\w+)`", PAGE)))
NATIVE = sorted(set(re.findall(r"`(native/[\w./]+)`", PAGE)))


@cache
def defined_in(path: Path) -> dict[str, ast.AST]:
    """Return what a module defines or imports at its top level, by name."""
    return members(ast.parse(path.read_text(encoding="utf-8")))


def members(node: ast.AST) -> dict[str, ast.AST]:
    found: dict[str, ast.AST] = {}
    for child in getattr(node, "body", []):
        if isinstance(child, ast.FunctionDef | ast.ClassDef):
            found[child.name] = child
        elif isinstance(child, ast.ImportFrom | ast.Import):
            found |= {alias.asname or alias.name: child for alias in child.names}
        elif isinstance(child, ast.AnnAssign) and isinstance(child.target, ast.Name):
            found[child.target.id] = child
        elif isinstance(child, ast.If):  # if TYPE_CHECKING
            found |= members(child)
        elif isinstance(child, ast.Assign):
            found |= {name.id: child for name in child.targets if isinstance(name, ast.Name)}
    return found


def module_file(folder: Path) -> Path | None:
    """Return the file of a module or package, if there is one; a stub tells the names best."""
    files = (folder / "__init__.pyi", folder / "__init__.py", folder.with_suffix(".py"))
    return next((file for file in files if file.is_file()), None)


def exists(name: str) -> bool:
    """Whether a dotted name is a module, or something in one (perhaps handed on), or a member."""
    parts = name.split(".")
    top = ROOT / "src" if parts[0] == "hamflow" else ROOT
    for length in range(len(parts), 0, -1):
        file = module_file(top.joinpath(*parts[:length]))
        if file is None:
            continue
        rest = parts[length:]
        if not rest:
            return True
        node = defined_in(file).get(rest[0])
        if isinstance(node, ast.ImportFrom) and node.module:  # a name that a package hands on
            package = ".".join(parts[:length])
            source = f"{package}.{node.module}" if node.level else node.module
            return exists(".".join([source, *rest]))
        for part in rest[1:]:
            node = members(node).get(part) if node is not None else None
        return node is not None
    return False


@cache
def functions_in(folder: str) -> frozenset[str]:
    files = (ROOT / "tests" / folder).rglob("test_*.py")
    return frozenset(name for file in files for name in defined_in(file))


def test_the_page_names_a_lot() -> None:
    assert len(NAMES) > 30
    assert len(TESTS) > 40
    assert len(NATIVE) > 5


def test_what_does_not_exist_is_found() -> None:
    assert exists("hamflow.crf.dual.Dual.iterate")
    for name in ("hamflow.crf.dual.Dual.nothing", "hamflow.crf.nothing", "hamflow.nothing.at.all"):
        assert not exists(name)
    assert "test_nothing" not in functions_in("crf")


@pytest.mark.parametrize("name", NAMES)
def test_names(name: str) -> None:
    if name.startswith("experiments.") and not (ROOT / "experiments").is_dir():
        pytest.skip("a source distribution has no experiments")
    assert exists(name)


@pytest.mark.parametrize(("folder", "name"), TESTS)
def test_tests(folder: str, name: str) -> None:
    assert name in functions_in(folder)


@pytest.mark.parametrize("path", NATIVE)
def test_native_files(path: str) -> None:
    assert (ROOT / path).is_file()


@pytest.mark.parametrize("number", range(1, 10))
def test_every_equation_is_on_the_page_and_in_the_code(number: int) -> None:
    assert re.search(rf"eq\. {number}\w?\b|eq\. \d, {number}\b", PAGE)
    cited = re.compile(rf"[Ee]qs?\. (\d\w?(, | and | to ))*{number}\w?\b|[Ee]qs?\. 6 to 9")
    sources = [*(ROOT / "src").rglob("*.py"), *(ROOT / "native").rglob("*.inl")]
    assert any(cited.search(source.read_text(encoding="utf-8")) for source in sources)

"""Check that all files name the version of a release; with ``--notes`` print its changes.

``python3 .github/check_version.py [--notes] VERSION``
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PLACES = {
    "pyproject.toml": r'^version = "(.*)"$',
    "src/hamflow/__init__.py": r'^__version__ = "(.*)"$',
    "CITATION.cff": r"^version: (.*)$",
    "recipe/recipe.yaml": r'^  version: "(.*)"$',
    "CHANGELOG.md": r"^## \[(\d.*?)\]",  # the newest one that is not Unreleased
}


def versions() -> dict[str, str]:
    """Return the version that each file names."""
    found = {}
    for name, pattern in PLACES.items():
        match = re.search(pattern, (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE)
        found[name] = match[1] if match else "none"
    return found


def notes(version: str) -> str:
    """Return the section of the changelog about a version."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    match = re.search(rf"^## \[{re.escape(version)}\].*?\n(.*?)(?=^## \[|\Z)", text, re.M | re.S)
    return match[1].strip() if match else ""


if __name__ == "__main__":
    *options, wanted = sys.argv[1:]
    if "--notes" in options:
        print(notes(wanted))
    elif wrong := {name: found for name, found in versions().items() if found != wanted}:
        sys.exit(f"The release is {wanted}, but these files name another version: {wrong}")

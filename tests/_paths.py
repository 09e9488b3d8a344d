"""Where the tests find what is not part of the package."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
"""The checkout."""
DATA = Path(os.environ.get("HAMFLOW_DATA", ROOT.parent / "shared" / "data"))
"""Real pairs with ground truth: a folder of folders, as `FolderDataset` reads them."""
PHOTOGRAPHS = DATA.parent / "textures"


def needs_data(test):  # type: ignore[no-untyped-def]
    """Mark a test or a class that reads the real pairs, and skip it where they are absent."""
    absent = pytest.mark.skipif(not DATA.is_dir(), reason="no real pairs; set HAMFLOW_DATA")
    return pytest.mark.data(absent(test))

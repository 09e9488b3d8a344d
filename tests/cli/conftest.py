from __future__ import annotations

from pathlib import Path

import pytest

from _videos import moving, write_folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """im1.png to im5.png."""
    return write_folder(tmp_path / "in", moving(5))

"""Where the output goes: pipes that close early, terminals with few characters."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import hamflow

COMMAND = [sys.executable, "-m", "hamflow"]


@pytest.mark.skipif(os.name != "posix", reason="pipes")
@pytest.mark.parametrize("words", [["--help"], ["viz", "--help"], ["doctor"]])
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_has_seen_enough(words: list[str], unbuffered: str) -> None:
    """As in ``hamflow --help | head``."""
    reading, writing = os.pipe()
    os.close(reading)
    environment = os.environ | {"PYTHONUNBUFFERED": unbuffered}
    try:
        done = subprocess.run(
            [*COMMAND, *words], stdout=writing, stderr=subprocess.PIPE, env=environment, check=False
        )
    finally:
        os.close(writing)
    assert done.stderr == b""
    assert done.returncode in (1, 141)  # 1 is rich's


def test_a_terminal_without_the_characters(tmp_path: Path) -> None:
    """The size has a ×, the path has letters that ASCII does not have."""
    folder = tmp_path / "Bäume"
    folder.mkdir()
    image = np.random.default_rng(0).integers(0, 256, (24, 32, 3), np.uint8)
    hamflow.write_image(folder / "a.png", image)
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    words = ["pair", folder / "a.png", folder / "a.png", "--preset", "realtime", "-o"]
    for place, code in ((folder / "ü.flo", 0), (folder / "ü.flo", 1), (folder / "ü.xyz", 1)):
        done = subprocess.run(
            [*COMMAND, *words, place],
            capture_output=True,
            env=environment,
            check=False,
        )
        assert done.returncode == code
        assert b"Traceback" not in done.stderr
        assert b"?" in (done.stderr if code else done.stdout)

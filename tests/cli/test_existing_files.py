"""Files that exist are treated alike by all commands."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import hamflow
from hamflow.cli.main import main


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder with two images and a flow."""
    image = np.random.default_rng(0).integers(0, 256, (24, 32, 3), np.uint8)
    for name in ("1.png", "2.png"):
        hamflow.write_image(tmp_path / name, image)
    hamflow.write_flow(tmp_path / "flow.flo", np.ones((24, 32, 2), np.float32))
    return tmp_path


PAIR = "pair 1.png 2.png --preset realtime -o {}"
COMMANDS = {
    "pair": (PAIR, "new.flo"),
    "pair --viz": (f"{PAIR.format('other.flo')} --viz {{}}", "new.png"),
    "pair --json": (f"{PAIR.format('other.flo')} --json {{}}", "new.json"),
    "convert": ("convert flow.flo {}", "new.pfm"),
    "warp": ("warp 2.png flow.flo -o {}", "new.png"),
    "warp --mask": ("warp 2.png flow.flo -o other.png --mask {}", "new.png"),
    "view": ("view 1.png 2.png --preset realtime -o {}", "new.html"),
    "viz": ("viz flow.flo -o {}", "new.png"),
    "export": ("export fast -o {}", "new.onnx"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_an_existing_file_is_kept(
    name: str, files: Path, monkeypatch: pytest.MonkeyPatch, fails: Callable[..., str]
) -> None:
    monkeypatch.chdir(files)
    line, new = COMMANDS[name]
    words = line.format(new).split()
    Path(new).write_bytes(b"precious")
    before = sorted(files.iterdir())
    assert fails(*words) == f"hamflow: {new}: already exists; add --overwrite to replace it.\n"
    assert Path(new).read_bytes() == b"precious"
    assert sorted(files.iterdir()) == before
    assert main([*words, "--overwrite"]) == 0
    assert Path(new).read_bytes() != b"precious"


@pytest.mark.parametrize("command", ["plan", "evaluate", "compare"])
def test_what_is_replaced_says_so(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([command, "--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert re.search(r"--json FILE [^-]* An existing file is replaced\.", said)

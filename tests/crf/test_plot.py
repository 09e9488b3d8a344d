from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest

import hamflow
from _problems import run_python
from hamflow import FileError, InputError, crf
from hamflow.crf import CrfStep, plot_convergence

HISTORY = (
    CrfStep(1, -4_855_962.0, -4_778_902.0, 1.2),
    CrfStep(2, -4_842_968.0, -4_794_265.0, 2.0),
    CrfStep(3, -4_837_865.0, -4_796_573.0, 2.8),
)
MAGIC = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}


@pytest.mark.parametrize("suffix", [".png", ".PNG", ".svg", ".pdf"])
def test_formats(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"plot{suffix}"
    plot_convergence(HISTORY, path, "a title with $ and _")
    assert path.read_bytes().startswith(MAGIC[suffix.lower()])
    assert os.listdir(tmp_path) == [path.name]


def test_picture_is_legible(tmp_path: Path) -> None:
    path = tmp_path / "plot.png"
    plot_convergence(HISTORY, path)
    image = hamflow.read_image(path)
    height, width = image.shape[:2]
    assert min(height, width) >= 800
    # Both curves in their colors, on white.
    assert (image[2, 2] == 255).all()
    for color in ((0x00, 0x72, 0xB2), (0xD5, 0x5E, 0x00)):
        assert (np.abs(image[..., :3].astype(int) - color).max(axis=2) < 8).sum() > 500


def test_what_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # As text rather than as outlines, to be read here.
    import matplotlib as mpl  # noqa: PLC0415

    monkeypatch.setitem(mpl.rcParams, "svg.fonttype", "none")
    path = tmp_path / "plot.svg"
    plot_convergence(HISTORY, path, "Some scene")
    text = path.read_text()
    gap = 100 * HISTORY[-1].gap
    for words in ("Some scene", "seconds", "millions", "bound Ψ", "energy E", f"gap {gap:.2g} %"):
        assert words in text


@pytest.mark.parametrize(
    "history",
    [
        HISTORY[:1],
        [CrfStep(1, -5.0, -4.0, 0.1), CrfStep(2, -4.5, -4.5, 0.2)],  # no gap any more
        [CrfStep(1, 7.0, 7.0, 0.0)],  # never any
        [CrfStep(1, 0.0, 3.0, 0.1)],  # no relative gap
        [CrfStep(1, -1e3, 2e3, 0.1), CrfStep(2, -1e3, -1e3 + 1e-6, 0.2)],  # many decades
        [CrfStep(k, -2.0, -1.0, 0.5) for k in (1, 2)],  # no time between them
    ],
)
def test_odd_histories(history: list[CrfStep], tmp_path: Path) -> None:
    for suffix in (".png", ".svg"):
        plot_convergence(history, tmp_path / f"plot{suffix}")
        assert (tmp_path / f"plot{suffix}").stat().st_size > 1000


def test_of_the_solver(tmp_path: Path) -> None:
    image = np.random.default_rng(0).integers(0, 256, (20, 30, 3), np.uint8)
    bits0, bits1 = (hamflow.pair_bits(frame) for frame in (image, image[::-1]))
    history: list[CrfStep] = []
    config = crf.CrfConfig(outer=2, gap_tolerance=0)
    crf.solve(
        bits0=bits0, bits1=bits1, image=image, window=8, config=config, callback=history.append
    )
    assert len(history) == 2
    crf.plot_convergence(history, str(tmp_path / "plot.png"))
    assert os.listdir(tmp_path) == ["plot.png"]


@pytest.mark.parametrize("name", ["plot.gif", "plot", "plot.png.txt"])
def test_other_suffixes(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"suffix.*\.pdf, \.png, \.svg"):
        plot_convergence(HISTORY, tmp_path / name)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "history",
    [[], [CrfStep(1, -np.inf, 0.0, 1.0)], [CrfStep(1, 0.0, np.nan, 1.0)]],
)
def test_bad_histories(history: list[CrfStep], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="history"):
        plot_convergence(history, tmp_path / "plot.png")
    assert os.listdir(tmp_path) == []


def test_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="does not exist"):
        plot_convergence(HISTORY, tmp_path / "missing" / "plot.png")


def test_without_matplotlib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(InputError, match=r"pip install 'hamflow\[plot\]'"):
        plot_convergence(HISTORY, tmp_path / "plot.png")
    assert os.listdir(tmp_path) == []


def test_what_is_loaded(tmp_path: Path) -> None:
    """Nothing of matplotlib before it is needed, and never pyplot with its global state."""
    code = f"""
import sys
from hamflow import crf
print("matplotlib" in sys.modules)
crf.plot_convergence([crf.CrfStep(1, -5.0, -4.0, 0.1)], {str(tmp_path / "plot.png")!r})
print("matplotlib" in sys.modules, "matplotlib.pyplot" in sys.modules)
"""
    run = run_python("-c", code)
    assert (run.returncode, run.stdout) == (0, "False\nTrue False\n"), run.stderr

"""The benchmark of the kernels at a small size: that it measures, not how fast it is."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import hamflow
from experiments.bench import kernels, peers
from experiments.bench._measure import MIXES, copy_bandwidth, register_peak
from experiments.cli.app import main
from hamflow.errors import InputError

cmake = pytest.mark.skipif(shutil.which("cmake") is None, reason="needs cmake")


@pytest.fixture
def quick_bench(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out what takes seconds or gigabytes: large copies and other people's programs."""
    monkeypatch.setattr(kernels, "CACHE_SIZES", {"L2 cache": 1 << 17})
    monkeypatch.setattr(peers, "available", lambda: {"numpy sgemm": lambda: 1e9})


@cmake
@pytest.mark.usefixtures("quick_bench")
def test_bench_kernels(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = out / "b.json"
    size = ["--width", "64", "--height", "48", "--d", "16", "--rounds", "1"]
    assert main(["bench", "kernels", *size, "--json", str(file)]) == 0
    report = json.loads(file.read_text())
    assert (report["width"], report["height"], report["d"]) == (64, 48, 16)
    assert report["machine"]["level"] == hamflow.get_isa()
    assert report["machine"]["threads"] == hamflow.get_num_threads()
    # Counted one by one: all labels u, and the labels v whose target row is inside.
    assert report["entries inside"] == 64 * 16 * sum(48 - abs(k) for k in range(-8, 8))
    for group in ("seconds", "per second", "copy bytes per second", "ratios", "growth"):
        assert report[group]
        assert all(value > 0 for value in report[group].values()), group
    for kernel in ("QQ", "QQ with argmins", "FF", "FQ forward", "FQ backward", "gather"):
        assert kernel in report["seconds"]
    for ratio in ("QQ / register peak", "message int16 / QQ time", "FF / sgemm", "FQ / QQ time"):
        assert ratio in report["ratios"]
    for group in ("extra bytes", "extra bytes by d", "fq gathered bytes per second"):
        assert report[group]
    assert "register peak" in capsys.readouterr().out


@pytest.mark.parametrize("size", [("--d", "12"), ("--d", "0"), ("--width", "0"), ("--rounds", "0")])
def test_bench_sizes(size: tuple[str, str], fails: Callable[..., str]) -> None:
    assert "multiple of 8" in fails("bench", "kernels", *size)


def test_bench_says_at_once_where_it_cannot_write(out: Path, fails: Callable[..., str]) -> None:
    file = out / "missing" / "b.json"
    assert str(file) in fails("bench", "kernels", "--json", file)


@cmake
def test_peaks_at_every_level() -> None:
    for level in hamflow.isa_levels():
        hamflow.set_isa(level)
        assert all(register_peak(mix) > 1e6 for mix in MIXES)
    hamflow.set_num_threads(1)
    assert copy_bandwidth(1 << 16) > 1e6


@cmake
def test_peaks_refuse_what_they_do_not_know() -> None:
    with pytest.raises(InputError, match="usage: peaks"):
        register_peak("addition")
    hamflow.set_isa("reference")
    with pytest.raises(InputError, match="usage: peaks"):
        register_peak(MIXES[0])

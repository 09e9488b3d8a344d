"""``hamflow submit``."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from _submissions import FLO, LOG, PNG, files_in, raw_png, stub
from _trees import scene
from hamflow.cli.main import main

QUICK = ("--method", "opencv-dis")


def run(*args: object) -> int:
    return main(["submit", *(str(arg) for arg in args)])


@pytest.fixture
def dis(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command with a method that takes no time."""
    monkeypatch.setattr("hamflow.cli.submit.Method", lambda config: stub(lambda f: f, config.label))


@pytest.mark.usefixtures("dis")
def test_command(sintel: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert run("sintel", sintel, "-o", out, "--passes", "clean", *QUICK) == 0
    said = capsys.readouterr().out
    assert f"3 files computed; all 3 are verified in {out}." in said
    assert "run this without --passes to add the other one" in said
    assert run("sintel", sintel, "-o", out, *QUICK) == 0
    said = capsys.readouterr().out
    assert f"3 files computed, 3 computed before; all 6 are verified in {out}." in said
    assert "Mean time per pair: 0.00 s." in said
    assert "sintel has 1104 test pairs, but this data set has 6" in said
    assert f"bundler {out / 'clean'} {out / 'final'} NAME.lzma" in said
    assert run("sintel", sintel, "-o", out, "--preset", "fast") == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == (
        f"hamflow: {out / LOG}: holds results of other settings (method was opencv-dis, not "
        "fast); use the same settings, choose another place, or start again with --overwrite.\n"
    )


def test_command_for_kitti(
    kitti: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    many = stub(lambda flow: flow + np.float32(600) * (np.arange(56)[:, None] == 1))
    monkeypatch.setattr("hamflow.cli.submit.Method", lambda config: many)
    assert run("kitti", kitti, "-o", tmp_path / "out", *QUICK) == 0
    said = capsys.readouterr().out
    assert "77 pixels in 2 files would move by more than 512 pixels and are marked" in said
    assert f"Upload {tmp_path / 'out/flow.zip'}." in said


def test_command_interrupted(
    kitti: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def answer(flow: NDArray[np.float32]) -> NDArray[np.float32]:
        if len(flow) == 37:
            raise KeyboardInterrupt
        return flow

    monkeypatch.setattr("hamflow.cli.submit.Method", lambda config: stub(answer))
    assert run("kitti", kitti, "-o", tmp_path, *QUICK) == 130
    assert f"is kept in {tmp_path}, and the same command continues" in capsys.readouterr().out
    assert files_in(tmp_path) == [f"flow/{PNG[0]}", LOG]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((*QUICK, "--preset", "fast"), "--preset and --method exclude each other"),
        (("--preset", ""), "There is no preset ''"),
        (("--method", ""), "There is no method ''"),
        (("--preset", "opencv-dis"), "There is no preset 'opencv-dis'"),
        (("--method", "fast"), "There is no method 'fast'"),
        (("--verify", "--scale", "2", "--overwrite"), "leave out --scale and --overwrite."),
        (("--verify", "--method", ""), "--verify only checks files; leave out --method."),
    ],
)
def test_command_with_wrong_options(
    kitti: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    *,
    options: tuple[str, ...],
    words: str,
) -> None:
    assert run("kitti", kitti, "-o", tmp_path / "out", *options) == 1
    assert words in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("dis")
def test_command_verifies(sintel: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("sintel", sintel, "-o", tmp_path, *QUICK, "--passes", "clean") == 0
    capsys.readouterr()
    before = {name: (tmp_path / name).stat().st_mtime_ns for name in files_in(tmp_path)}
    assert run("sintel", sintel, "-o", tmp_path, "--verify", "--passes", "clean") == 0
    said = capsys.readouterr().out
    assert f"3 files verified in {tmp_path}; there is no error." in said
    assert "sintel has 552 test pairs, but this data set has 3" in said
    assert before == {name: (tmp_path / name).stat().st_mtime_ns for name in files_in(tmp_path)}
    assert run("sintel", sintel, "-o", tmp_path, "--verify") == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert f"hamflow: {tmp_path}: is not ready for upload: 3 missing (final/" in captured.err
    (tmp_path / "clean" / FLO[0]).write_bytes(b"PIEH")
    assert run("sintel", sintel, "-o", tmp_path, "--verify", "--passes", "clean") == 1
    assert f"1 damaged (clean/{FLO[0]}: " in capsys.readouterr().err
    assert run("sintel", sintel, "-o", tmp_path / "none", "--verify") == 1
    assert f"none/{LOG}: does not exist" in capsys.readouterr().err


def test_whole_route(kitti: Path, tmp_path: Path) -> None:
    """The preset that users will take, with the model that is inside it."""
    code = run("kitti2015", kitti, "-o", tmp_path, "--preset", "fast", "--model", "pairs")
    assert code == 0
    samples = raw_png((tmp_path / "flow" / PNG[0]).read_bytes()).astype(np.float64)
    error = np.abs((samples[:, :, :2] - 2**15) / 64 - scene(0).flow)[~scene(0).occluded]
    assert np.median(error) < 0.5

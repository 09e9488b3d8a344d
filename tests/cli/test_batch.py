"""``hamflow batch``."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from _batches import contents, inline, write_frames  # noqa: F401
from _video_calls import QUICK, Calls
from hamflow.cli.batch import SOME_FAILED
from hamflow.cli.main import main
from hamflow.datasets import SyntheticConfig
from hamflow.datasets.synthetic import write_sintel

pytestmark = pytest.mark.usefixtures("inline")
COMMAND = ("batch", *QUICK)


def run(*words: object) -> int:
    return main([*COMMAND, *map(str, words)])


def test_folder(tmp_path: Path, calls: Calls, capsys: pytest.CaptureFixture[str]) -> None:
    frames, out = write_frames(tmp_path / "in", 4), tmp_path / "out"
    assert run(frames, "-o", out, "--viz", "--json", "--format", "npy") == 0
    assert capsys.readouterr().out.startswith("3 pairs done, ")
    written = set(contents(out))
    assert {"flow/f00.npy", "viz/f00.png", "json/f00.json"} <= written
    assert len(written) == 9
    assert run(frames, "-o", out, "--viz", "--json", "--format", "npy") == 0
    assert capsys.readouterr().out == f"0 pairs done, 3 done before: {out}\n"


def test_some_failed(tmp_path: Path, calls: Calls, capsys: pytest.CaptureFixture[str]) -> None:
    frames, out = write_frames(tmp_path / "in", 10), tmp_path / "out"
    for number in range(3, 10):
        (frames / f"f{number:02}.png").write_bytes(b"broken")
    with pytest.raises(SystemExit) as ended:
        run(frames, "-o", out)
    assert ended.value.code == SOME_FAILED == 3
    captured = capsys.readouterr()
    assert "2 pairs done, 7 failed, " in captured.out
    assert captured.err.count("Failed: f0") == 5
    assert f"Failed: more pairs, which {out}/manifest.csv lists." in captured.err


def test_log_json(tmp_path: Path, calls: Calls, capsys: pytest.CaptureFixture[str]) -> None:
    frames, out = write_frames(tmp_path / "in", 3), tmp_path / "out"
    (frames / "f02.png").write_bytes(b"broken")
    with pytest.raises(SystemExit):
        run(frames, "-o", out, "--log-json")
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [event["event"] for event in events] == ["pair", "pair", "end"]
    good, bad, end = events
    assert (good["name"], good["status"], good["done"], good["total"]) == ("f00", "done", 1, 2)
    assert bad["status"] == "failed"
    assert "f02.png" in bad["error"]
    assert bad["seconds_left"] == 0
    assert (end["done"], end["failed"], end["known"]) == (1, 1, 0)
    assert end["manifest"][0] == str(out / "manifest.csv")


def test_data_set(tmp_path: Path, calls: Calls) -> None:
    root = tmp_path / "sintel"
    write_sintel(root, SyntheticConfig(height=32, width=48), 3)
    words = ("--dataset", "sintel", "--pass", "final", "--subset", "scene_00001")
    assert run(root, "-o", tmp_path / "out", *words) == 0
    assert list(contents(tmp_path / "out")) == ["flow/scene_00001/frame_0001.flo"]
    assert "final" in calls.pairs[0][0]


def test_interrupted(tmp_path: Path, calls: Calls, capsys: pytest.CaptureFixture[str]) -> None:
    frames = write_frames(tmp_path / "in", 3)

    def interrupt(first: str) -> None:
        raise KeyboardInterrupt

    calls.before_call = interrupt
    assert run(frames, "-o", tmp_path / "out") == 130
    assert "Stopped early; finished pairs are kept" in capsys.readouterr().err


def test_wrong_words(tmp_path: Path, fails: Callable[..., str]) -> None:
    frames = write_frames(tmp_path / "in", 3)
    out = tmp_path / "out"
    assert "SOURCE is missing" in fails("-o", out)
    assert "--pass, --split and --subset are for a --dataset" in fails(
        frames, "-o", out, "--split", "test"
    )
    assert "the one folder of the data set" in fails(
        frames, frames, "-o", out, "--dataset", "sintel"
    )
    assert "write them with hamflow synth" in fails(frames, "-o", out, "--dataset", "synthetic")
    assert "--format must be one of" in fails(frames, "-o", out, "--format", "gif")
    assert "does not exist" in fails(tmp_path / "nothing", "-o", out)
    assert not out.exists()

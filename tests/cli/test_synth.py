from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from _problems import started_python
from _synthetic import FailingJob
from hamflow.cli.main import main
from hamflow.datasets import FlowPair, SyntheticConfig, SyntheticDataset
from hamflow.datasets.synthetic import SetReport, _workers, write_sintel
from hamflow.errors import FileError, HamflowError, InputError
from hamflow.io import read_flow, read_image

SIZE = ("--width", "64", "--height", "48", "--max-displacement", "20")
CONFIG = SyntheticConfig(height=48, width=64, max_displacement=20)
PER_SCENE = 7


COMMAND = ("synth", *SIZE, "--workers", "1", "-n", "1")


def run(out: Path, number: int, *args: object) -> int:
    return main([*COMMAND, *map(str, ("-o", out, "-n", number, *args))])


def files(root: Path) -> dict[str, bytes]:
    """All files but the log, in which the order and the times differ."""
    paths = sorted(path for path in root.rglob("*") if path.is_file() and path.name != "run.jsonl")
    return {str(path.relative_to(root)): path.read_bytes() for path in paths}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("sets") / "deep" / "set"
    assert run(root, 3) == 0
    return root


def test_layout(written: Path) -> None:
    names = set(files(written))
    expected = set()
    for scene in ("scene_00000", "scene_00001", "scene_00002"):
        for name in ("clean", "final"):
            expected |= {f"training/{name}/{scene}/frame_000{k}.png" for k in (1, 2)}
        expected |= {
            f"training/{name}/{scene}/frame_0001.png" for name in ("occlusions", "invalid")
        }
        expected.add(f"training/flow/{scene}/frame_0001.flo")
    assert names == expected
    assert len(names) == 3 * PER_SCENE


def test_reads_back_as_it_was_rendered(written: Path) -> None:
    dataset = SyntheticDataset(CONFIG, size=3)
    for number in range(3):
        clean, final = dataset.both(number)
        training, scene = written / "training", f"scene_{number:05d}"
        for name, shown in (("clean", clean), ("final", final)):
            pair = FlowPair(
                scene,
                training / name / scene / "frame_0001.png",
                training / name / scene / "frame_0002.png",
                training / "flow" / scene / "frame_0001.flo",
                occluded_path=training / "occlusions" / scene / "frame_0001.png",
                invalid_path=training / "invalid" / scene / "frame_0001.png",
            )
            assert np.array_equal(pair.image0, shown.image0)
            assert np.array_equal(pair.image1, shown.image1)
            assert np.array_equal(pair.flow, shown.flow)
            assert pair.occluded is not None
            assert np.array_equal(pair.occluded, shown.occluded)
    assert any(not np.array_equal(dataset[i].image0, dataset.both(i)[0].image0) for i in range(3))


def test_settings_are_kept(written: Path) -> None:
    header, *lines = (written / "run.jsonl").read_text().splitlines()
    assert [json.loads(line)["key"] for line in lines] == [f"scene_{k:05}" for k in range(3)]
    settings = json.loads(header)["settings"]
    assert settings["width"] == 64
    assert settings["seed"] == 0
    assert settings["max_displacement"] == 20


def test_any_number_of_workers(written: Path, tmp_path: Path) -> None:
    assert run(tmp_path / "two", 3, "--workers", 2) == 0
    assert files(tmp_path / "two") == files(written)


def test_continues(written: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "set"
    assert run(out, 2) == 0
    assert "Wrote 2 scenes of 64×48 pixels" in capsys.readouterr().out
    # Something was lost, and something is older than all the rest.
    (out / "training/final/scene_00001/frame_0002.png").unlink()
    kept = out / "training/flow/scene_00000/frame_0001.flo"
    os.utime(kept, (1, 1))
    assert run(out, 3) == 0
    assert "Wrote 2 scenes of 64×48 pixels" in (said := capsys.readouterr().out)
    assert "(1 existed before)" in said
    assert files(out) == files(written)
    assert kept.stat().st_mtime == 1
    assert run(out, 3) == 0
    assert "Wrote 0 scenes" in capsys.readouterr().out
    # A planted file, and a damaged one.
    kept.write_bytes(b"PI")
    mask = out / "training/occlusions/scene_00002/frame_0001.png"
    mask.write_bytes(mask.read_bytes()[:-1] + b"x")
    assert run(out, 3) == 0
    assert "Wrote 2 scenes" in capsys.readouterr().out
    assert files(out) == files(written)


def test_overwrite(written: Path, tmp_path: Path) -> None:
    out = tmp_path / "set"
    assert run(out, 2, "--seed", 5) == 0
    (out / "training/notes.txt").write_text("mine")
    assert run(out, 1, "--overwrite") == 0
    names = {name for name in files(written) if "scene_00000" in name}
    expected = {name: files(written)[name] for name in names}
    assert files(out) == expected | {"training/notes.txt": b"mine"}


def test_clean_only(written: Path, tmp_path: Path) -> None:
    out = tmp_path / "set"
    assert run(out, 1, "--clean") == 0
    assert not (out / "training/final").exists()
    for name in ("clean/scene_00000/frame_0002.png", "flow/scene_00000/frame_0001.flo"):
        assert (out / "training" / name).read_bytes() == (written / "training" / name).read_bytes()


def test_photographs_and_seed(tmp_path: Path) -> None:
    photographs = tmp_path / "photographs"
    photographs.mkdir()
    noise = np.random.default_rng(0).integers(0, 256, (40, 50, 3), np.uint8)
    Image.fromarray(noise).save(photographs / "a.png")
    out = tmp_path / "set"
    assert run(out, 1, "--textures", photographs, "--seed", 7) == 0
    expected = SyntheticDataset(CONFIG, photographs, seed=7)[0]
    folder = out / "training/final/scene_00000"
    assert np.array_equal(read_image(folder / "frame_0001.png"), expected.image0)
    flow = read_flow(out / "training/flow/scene_00000/frame_0001.flo")
    assert np.array_equal(flow, expected.flow)


# What goes wrong


@pytest.mark.parametrize(
    ("args", "named"),
    [
        (("--seed", 1), "seed"),
        (("--max-displacement", 21), "max_displacement"),
        (("--clean",), "clean"),
    ],
)
def test_other_settings(
    args: tuple[object, ...], named: str, written: Path, fails: Callable[..., str]
) -> None:
    before = files(written)
    message = fails("-o", written, "-n", 3, *args)
    assert f"holds results of other settings ({named} was " in message
    assert files(written) == before


def test_other_photographs(written: Path, tmp_path: Path, fails: Callable[..., str]) -> None:
    Image.new("RGB", (32, 32)).save(tmp_path / "a.png")
    assert "(photographs was " in fails("-o", written, "-n", 3, "--textures", tmp_path)


def test_foreign_folder(tmp_path: Path, fails: Callable[..., str]) -> None:
    (tmp_path / "training").mkdir()
    (tmp_path / "training/mine.png").write_text("mine")
    assert "holds files, but no run.jsonl" in fails("-o", tmp_path, "-n", 1)
    assert files(tmp_path) == {"training/mine.png": b"mine"}


def test_output_is_a_file(tmp_path: Path, fails: Callable[..., str]) -> None:
    (tmp_path / "file").write_text("text")
    for out in (tmp_path / "file", tmp_path / "file" / "set"):
        assert f"{out}: cannot be created as a folder" in fails("-o", out, "-n", 1)


@pytest.mark.parametrize(
    ("args", "named"),
    [
        (("-n", 0), "--number must be at least 1"),
        (("--workers", 0), "workers must be at least 1"),
        (("--seed", -1), "seed must not be negative"),
        (("--width", 31), "--width must be a whole number from 32"),
        (("--max-displacement", 1e9), "--max-displacement must be a number from"),
        (("--textures", "/no/such/folder"), "/no/such/folder: does not exist"),
    ],
)
def test_bad_options(
    args: tuple[object, ...], named: str, tmp_path: Path, fails: Callable[..., str]
) -> None:
    assert named in fails("-o", tmp_path / "set", "-n", 1, *args)
    assert not (tmp_path / "set").exists()


def test_unreadable_photograph(tmp_path: Path, fails: Callable[..., str]) -> None:
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "bad.jpg").write_text("no photograph")
    assert "bad.jpg" in fails("-o", tmp_path / "set", "-n", 1, "--textures", tmp_path / "p")


# Interruption


def test_interrupt_in_this_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    calls = []
    original = SyntheticDataset.both

    def both(self: SyntheticDataset, index: int) -> Any:
        calls.append(index)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return original(self, index)

    monkeypatch.setattr(SyntheticDataset, "both", both)
    assert run(tmp_path / "set", 3) == 130
    said = capsys.readouterr()
    assert "Stopped early with 1 of 3 scenes" in said.out
    assert said.err == "hamflow: Interrupted.\n"
    monkeypatch.undo()
    assert run(tmp_path / "set", 3) == 0
    assert "(1 existed before)" in capsys.readouterr().out


def ended(group: int) -> bool:
    """Whether all processes of a group end within a few seconds."""
    give_up = time.monotonic() + 60
    while time.monotonic() < give_up:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False


@pytest.mark.usefixtures("interruptible")
@pytest.mark.skipif(os.name != "posix", reason="needs process groups")
def test_interrupt_with_workers(written: Path, tmp_path: Path) -> None:
    out = tmp_path / "set"
    words = ["synth", "-o", out, "-n", 5000, *SIZE, "--workers", 2]
    first = out / "training/flow/scene_00002/frame_0001.flo"
    with started_python("-m", "hamflow", *map(str, words)) as process:
        give_up = time.monotonic() + 300
        while not first.exists() and time.monotonic() < give_up:
            time.sleep(0.05)
        # What Ctrl-C does: all processes get it.
        os.killpg(process.pid, signal.SIGINT)
        said, errors = process.communicate(timeout=120)
    assert process.returncode == 130
    assert errors == "hamflow: Interrupted.\n"
    assert "Stopped early with" in said
    assert ended(process.pid)
    found = files(out)
    assert not [name for name in found if name.endswith(".tmp")]
    for name, content in files(written).items():
        assert found[name] == content
    assert len(found) % PER_SCENE == 0  # begun scenes were finished


# The function behind the command


def test_function(tmp_path: Path) -> None:
    steps: list[tuple[int, int]] = []
    report = write_sintel(tmp_path, CONFIG, 2, callback=lambda *step: steps.append(step))
    assert report == SetReport(written=2, known=0)
    assert steps == [(0, 2), (1, 2), (2, 2)]
    assert write_sintel(tmp_path, CONFIG, 1) == SetReport(written=0, known=1)
    with pytest.raises(InputError, match="count"):
        write_sintel(tmp_path, CONFIG, 0)


def test_workers_that_fail() -> None:
    with pytest.raises(FileError, match="is the third"):
        list(_workers.run(FailingJob(), [0, 3, 1], 2))
    with pytest.raises(HamflowError, match="use fewer workers"):
        list(_workers.run(FailingJob(), [0, 5, 1], 2))


def test_other_kinds(tmp_path: Path) -> None:
    """Each option changes something."""
    size = ["--width", "64", "--height", "48", "--max-displacement", "8"]
    kinds = {
        "plain": ["--perspective-share", "1"],
        "curved": ["--perspective-share", "1", "--curved-share", "1"],
        "spots": ["--perspective-share", "1", "--specular", "1"],
        "limbs": ["--articulated-share", "1"],
        "flat": [],
    }
    for name, options in kinds.items():
        out = tmp_path / name
        assert main(["synth", "-o", str(out), "-n", "3", "--workers", "1", *size, *options]) == 0
    found = [tuple(files(tmp_path / name).values()) for name in kinds]
    assert len(set(found)) == len(kinds)

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

import hamflow
from _paths import ROOT
from _problems import run_python
from hamflow import _native
from hamflow.cli import doctor
from hamflow.cli.app import COMMANDS
from hamflow.cli.main import main
from hamflow.config import PRESETS
from hamflow.datasets.registry import DatasetName
from hamflow.evaluation._benchmarks import BENCHMARKS
from hamflow.io import FLOW_SUFFIXES
from hamflow.visualize import add_key

Files = tuple[Path, Path]


@pytest.fixture
def frames(tmp_path: Path) -> Files:
    """Two images in a folder of their own, the second moved by (3, 0)."""
    first = np.random.default_rng(0).integers(0, 256, (40, 50, 3), np.uint8)
    folder = tmp_path / "frames"
    folder.mkdir()
    paths = folder / "a.png", folder / "b.png"
    hamflow.write_image(paths[0], first)
    hamflow.write_image(paths[1], np.roll(first, 3, axis=1))
    return paths


# --- pair ----------------------------------------------------------------------------------------


QUICK = ["--preset", "fast", "--model", "pairs"]


def test_pair(frames: Files, out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    args = [str(path) for path in frames]
    flow_file, picture = out / "f.flo", out / "f.png"
    others = {name: out / f"{name}.png" for name in ("occlusion", "confidence")}
    options = [word for name, file in others.items() for word in (f"--{name}", str(file))]
    options += ["--backward", str(out / "b.pfm"), "--json", str(out / "s.json")]
    code = main(["pair", *args, "-o", str(flow_file), "--viz", str(picture), *options, *QUICK])
    assert code == 0
    result = hamflow.estimate(*args, preset="fast", model="pairs")
    assert result.occlusion is not None
    assert result.confidence is not None
    assert (hamflow.read_flow(flow_file) == result.flow).all()
    assert (hamflow.read_flow(out / "b.pfm") == result.backward).all()
    assert np.abs(result.flow[10:30, 10:35] - (3, 0)).max() < 0.05
    scale = float(np.percentile(np.linalg.norm(result.flow, axis=2), 95))
    colors = hamflow.flow_to_color(result.flow, max_flow=scale)
    assert (hamflow.read_image(picture) == add_key(colors, scale)).all()
    assert (hamflow.read_image(others["occlusion"])[..., 0] == 255 * result.occlusion).all()
    shown = hamflow.read_image(others["confidence"])[..., 0]
    assert np.abs(shown / 255 - result.confidence).max() < 0.003
    said = json.loads((out / "s.json").read_text())
    assert said["gap"] == pytest.approx(result.gap)
    assert said["window"] == list(result.window.as_tuple())
    printed = capsys.readouterr()
    assert printed.err == ""
    assert "50×40 pixels" in printed.out
    assert f"duality gap {result.gap:.2%}" in printed.out
    assert str(flow_file) in printed.out.replace("\n", "")


def test_pair_with_the_paper_s_preset(frames: Files, out: Path) -> None:
    args = ["pair", *map(str, frames), "-o", str(out / "f.flo"), "--window", "16"]
    assert main([*args, "--preset", "paper", "--model", "pairs"]) == 0
    images = [hamflow.read_image(path) for path in frames]
    bits0, bits1 = (hamflow.pair_bits(image) for image in images)
    result = hamflow.crf.solve(
        bits0=bits0,
        bits1=bits1,
        image=images[0],
        window=16,
        config=hamflow.crf.CrfConfig.paper(),
    )
    assert (hamflow.read_flow(out / "f.flo") == result.flow).all()


def test_pair_with_a_preset_of_one_s_own(frames: Files, out: Path) -> None:
    preset = out / "own.toml"
    preset.write_text(
        'preset = "fast"\nmodel = "pairs"\n[matcher]\ntau2 = 30.0\n[completion]\nmethod = "none"\n'
        '[refinement]\nmethod = "upsampling"\nsmooth = false\n'
    )
    args = ["pair", *map(str, frames), "-o", str(out / "f.flo"), "--preset", str(preset)]
    assert main(args) == 0
    flow = hamflow.read_flow(out / "f.flo")
    assert (flow == np.rint(flow)).all()
    assert (flow[10:30, 10:35] == (3, 0)).all()


def test_pair_plot(frames: Files, out: Path) -> None:
    args = ["pair", *map(str, frames), "-o", str(out / "f.flo"), "--window", "16", *QUICK]
    assert main([*args, "--plot", str(out / "c.svg")]) == 0
    assert b"<svg" in (out / "c.svg").read_bytes()


def test_rectangular_window(frames: Files, out: Path) -> None:
    args = [str(path) for path in frames]
    options = ["--window=-2,8,0,1", "--preset", "paper", "--model", "pairs"]
    assert main(["pair", *args, "-o", str(out / "f.flo"), *options]) == 0
    flow = hamflow.read_flow(out / "f.flo")
    assert (flow[..., 1] == 0).all()
    assert flow[..., 0].min() >= -2
    assert flow[..., 0].max() <= 5


GOOD = "a.png b.png -o OUT/f.flo"
WINDOWS = ("", "x", "1,2", "1,2,3,4,5", "3", "0", "1.5", "0,0,0,1", "1e3")
PICTURES = ("--viz", "--occlusion", "--confidence")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("gone.png b.png -o OUT/f.flo", "gone.png: "),
        ("a.png gone.png -o OUT/f.flo", "gone.png: "),
        ("a.png bad.png -o OUT/f.flo", "bad.png: "),
        ("a.png small.png -o OUT/f.flo", "50×40 and 8×9"),
        ("a.png b.png -o folder.flo", "is a directory"),
        (
            "a.png b.png -o OUT/flow.png",
            "OUT/flow.kitti.png, and for a picture in colors use hamflow viz",
        ),
        (f"{GOOD} --backward OUT/f.flo", "same file"),
        (f"{GOOD} --preset best", "balanced"),
        *((f"{GOOD} --window={window}", "window") for window in WINDOWS),
        *((f"{GOOD} --preset paper {option} OUT/o.png", option) for option in PICTURES[1:]),
        (f"{GOOD} --preset paper --backward OUT/b.flo", "--backward"),
        # Not even the output that could have been written.
        *((f"a.png b.png -o OUT/{name}", f"OUT/{name}") for name in ("f.xyz", "f", "no/f.flo")),
        *((f"{GOOD} --backward OUT/{name}", f"OUT/{name}") for name in ("f.xyz", "f", "no/f.flo")),
        *(
            (f"{GOOD} {option} OUT/{name}", f"OUT/{name}")
            for option in PICTURES
            for name in ("f.xyz", "f", "no/f.png")
        ),
    ],
)
def test_what_pair_refuses(
    words: str,
    said: str,
    *,
    frames: Files,
    out: Path,
    fails: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(frames[0].parent)
    Path("bad.png").write_text("not a picture")
    Path("folder.flo").mkdir()
    hamflow.write_image("small.png", np.zeros((9, 8), np.uint8))
    assert said.replace("OUT", str(out)) in fails("pair", *words.replace("OUT", str(out)).split())
    assert os.listdir(out) == []


def test_interrupt(
    frames: Files,
    out: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(_native, "chain_pass", interrupted)
    args = [str(path) for path in frames]
    assert main(["pair", *args, "-o", str(out / "f.flo")]) == 130
    assert capsys.readouterr().err == "hamflow: Interrupted.\n"
    assert os.listdir(out) == []


# --- demo, doctor --------------------------------------------------------------------------------


def test_demo(
    out: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    folder = out / "new" / "folder"
    assert main(["demo", "-o", str(folder), "--seed", "1"]) == 0
    names = ["demo.png", "flow.flo", "frame1.png", "frame2.png"]
    assert sorted(os.listdir(folder)) == names
    flow = hamflow.read_flow(folder / "flow.flo")
    height, width = flow.shape[:2]
    assert hamflow.read_image(folder / "frame1.png").shape == (height, width, 3)
    sheet = hamflow.read_image(folder / "demo.png")
    assert sheet.shape[0] > 3 * height
    assert sheet.shape[1] > 2 * width
    printed = capsys.readouterr().out
    for words in ("visible", "occluded", "within 1.5 px", f"level {hamflow.get_isa()}"):
        assert words in printed
    # The table; the sentences are not broken.
    rows = [line for line in printed.splitlines() if line.startswith(" ")]
    assert len(rows) > 7
    assert max(map(len, rows)) <= 80


def test_demo_into_a_file(out: Path, fails: Callable[..., str]) -> None:
    file = out / "file"
    file.write_text("")
    assert str(file) in fails("demo", "-o", file)
    assert str(file / "deeper") in fails("demo", "-o", file / "deeper")


def test_doctor(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    # An extra that cannot be there, to see what is said of it.
    monkeypatch.setitem(doctor.EXTRAS, "other", ("no_such_module",))
    assert main(["doctor"]) == 0
    printed = capsys.readouterr().out
    for words in (
        hamflow.__version__,
        *hamflow.isa_levels(),
        "networks",
        "threads",
        "extra 'test'",
    ):
        assert words in printed
    assert "pip install 'hamflow[other]'" in printed


def test_doctor_knows_all_extras() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    table = text.split("[project.optional-dependencies]\n")[1].split("\n[")[0]
    named = re.findall(r"^(\w+) = \[", table, re.MULTILINE)
    assert sorted(named) == sorted(doctor.EXTRAS)


# --- help, and real processes --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "names"),
    [
        ("pair", (*PRESETS, *FLOW_SUFFIXES)),
        ("convert", FLOW_SUFFIXES),
        ("evaluate", (*PRESETS, *get_args(DatasetName))),
        ("submit", tuple(BENCHMARKS)),
    ],
)
def test_help_lists_what_there_is(
    command: str, names: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main([command, "--help"])
    words = re.findall(r"[\w.-]+", capsys.readouterr().out)
    listed = {word.removesuffix(".") for word in words}
    assert set(names) <= listed


def test_list_of_commands(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_info:
        main(["--help"])
    assert exit_info.value.code == 0
    printed = capsys.readouterr().out
    assert printed.startswith("usage: hamflow COMMAND")
    for command in COMMANDS:
        # Under its heading, and only there.
        block = next(b for b in printed.split("\n\n") if b.startswith(f"{command.group}:"))
        assert re.search(rf"^  {command.name} +{re.escape(command.summary)}$", block, re.MULTILINE)
        assert printed.count(f"\n  {command.name} ") == 1
    assert max(map(len, printed.splitlines())) <= 80


@pytest.mark.parametrize("args", [[], ["flow"], ["pair"], ["demo", "--seed", "x"], ["bench"]])
def test_wrong_usage(args: list[str]) -> None:
    with pytest.raises(SystemExit) as exit_info:
        main(args)
    assert exit_info.value.code == 2


def test_a_command_that_is_almost_right(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["vdieo"])
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "no command 'vdieo'; did you mean 'video'?" in printed.err


def loaded_by(*args: str) -> set[str]:
    """Names of the modules that a command has loaded when it is done."""
    code = (
        "import json, sys\n"
        "from hamflow.cli.main import main\n"
        f"try: main({list(args)})\n"
        "except SystemExit: pass\n"
        "print('\\n' + json.dumps(list(sys.modules)))"
    )
    run = run_python("-c", code)
    assert run.returncode == 0, run.stderr
    return set(json.loads(run.stdout.splitlines()[-1]))


def test_the_list_of_commands_loads_none_of_them() -> None:
    loaded = loaded_by("--help")
    assert {name for name in loaded if name.startswith("hamflow.cli.")} == {
        "hamflow.cli.app",
        "hamflow.cli.main",
    }
    assert loaded.isdisjoint({"numpy", "rich", "tyro", "PIL", "torch", "hamflow._native"})


@pytest.mark.parametrize("name", ["pair", "viz", "train"])
def test_a_command_loads_no_other(name: str) -> None:
    loaded = loaded_by(name, "--help")
    assert f"hamflow.cli.{name}" in loaded
    others = {command.name for command in COMMANDS} - {name}
    assert loaded.isdisjoint(f"hamflow.cli.{other}" for other in others)
    assert loaded.isdisjoint({"torch", "cv2", "onnx", "onnxruntime", "matplotlib"})


def test_module(frames: Files, out: Path) -> None:
    args = ["-m", "hamflow", "pair", str(frames[0]), "-o", str(out / "f.flo"), "--window=8"]
    run = run_python(*args, str(frames[1]))
    assert (run.returncode, run.stderr) == (0, "")
    assert os.listdir(out) == ["f.flo"]
    run = run_python(*args, str(out / "gone.png"))
    assert run.returncode == 1
    assert run.stderr.startswith("hamflow: ")
    assert run.stderr.count("\n") == 1


@pytest.mark.parametrize("name", ["HAMFLOW_ISA", "HAMFLOW_NUM_THREADS"])
def test_bad_environment(name: str) -> None:
    run = run_python("-m", "hamflow", "doctor", **{name: "many"})
    assert run.returncode == 1
    assert run.stderr.startswith(f"hamflow: The environment variable {name} is 'many'")
    assert run.stderr.count("\n") == 1

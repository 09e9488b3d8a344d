"""Faults in every long command: clear ends, nothing lost, resumable to the same bytes.

Each command runs in a forked child, where something goes wrong: it is killed or interrupted when it
has written some files, files may not grow, the disk is full, the folder may not be written, there
is no more memory, or another run works there. docs/promises.md has the table of what was tried.
"""

from __future__ import annotations

import csv
import os
import resource
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import hamflow
from _batches import inline  # noqa: F401
from _problems import fork_without_warning
from _trees import save_pair
from _videos import moving, write_folder
from experiments.cli.app import main as laboratory
from hamflow.cli.main import main
from hamflow.datasets import SyntheticConfig, demo_scene
from hamflow.datasets.synthetic import write_sintel
from hamflow.io._lock import locked

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork"),
    pytest.mark.usefixtures("inline"),
]

Inputs = dict[str, Path]
Good = Callable[[str], dict[str, bytes]]
QUICK = ("--preset", "realtime", "--model", "pairs")
TRAIN = "window = 16\nsteps = 3\nwarmup = 2\nvalidation_pairs = 0\nworkers = 0\nthreads = 1\n"
COMMANDS = (
    *("video", "batch", "evaluate", "compare", "submit", "synth", "train", "fit-crf", "convert"),
)
"""These continue."""
CLIPS = ("track", "interpolate", "stabilize", "mask")
ONCE = (*CLIPS, "pair", "view")
"""These start again."""
_NEEDS = {"train": pytest.mark.skipif(find_spec("torch") is None, reason="needs torch")}
ALL = [pytest.param(name, marks=_NEEDS.get(name, ())) for name in (*COMMANDS, *ONCE)]
# Times are in these; the others must be the same to the byte.
WITH_TIMES = {
    *("run.jsonl", "fit.jsonl", "manifest.csv", "manifest.parquet", "compare.json"),
    *("checkpoint.safetensors", "curve.csv", "curve.png"),  # of train
}


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory, sintel: Path) -> Inputs:
    root = tmp_path_factory.mktemp("inputs")
    write_folder(root / "frames", moving(4, 32, 48))
    write_sintel(root / "set", SyntheticConfig(height=32, width=48, max_displacement=4.0), 3)
    (root / "train.toml").write_text(
        TRAIN + "[network]\nlayers = 3\nchannels = 8\n[data.synthetic]\nheight = 32\nwidth = 32\n"
        "max_displacement = 4\nmax_layers = 2\nclean = true\n"
    )
    scene = demo_scene(40, 48)
    save_pair(root / "pairs/a/b", scene)
    (root / "flows").mkdir()
    for number in range(3):
        hamflow.write_flow(root / f"flows/{number}.flo", scene.flow)
    known = {name: root / name for name in ("frames", "set", "pairs", "flows")}
    return known | {"test": sintel, "root": root}


def words(command: str, inputs: Inputs, out: Path) -> list[str]:
    pictures = sorted(inputs["frames"].iterdir())[:2]
    options: dict[str, tuple[object, ...]] = {
        "video": (inputs["frames"], "-o", out / "flow", "--viz", out / "viz", *QUICK),
        "batch": (inputs["frames"], "-o", out, "--viz", *QUICK),
        "evaluate": ("sintel", inputs["set"], "--pass", "clean", "-o", out, *QUICK),
        "submit": ("sintel", inputs["test"], "-o", out, "--passes", "clean", *QUICK),
        "synth": (
            *("-o", out, "-n", 2, "--workers", 1),
            *("--width", 48, "--height", 32, "--max-displacement", 4),
        ),
        "train": ("--config", inputs["root"] / "train.toml", "-o", out),
        "fit-crf": (
            *(inputs["pairs"], "-o", out / "fit.toml", "--resume"),
            *("--window", 12, "--scale", 1, "--budget", 3),
        ),
        "track": (inputs["frames"], "-o", out / "t.csv", "--film", out / "film", *QUICK),
        "interpolate": (inputs["frames"], "-o", out / "frames", *QUICK),
        "stabilize": (inputs["frames"], "-o", out / "frames", *QUICK),
        "mask": (inputs["frames"], "-o", out / "masks", *QUICK),
        "compare": (
            *("realtime", "wta-qq", "--data", "sintel", inputs["set"], "--pass", "clean"),
            *("-o", out),
        ),
        "pair": (*pictures, "-o", out / "a.flo", "--viz", out / "a.png", *QUICK),
        "view": (*pictures, "-o", out / "page.html", "--preset", "realtime"),
        "convert": (inputs["flows"], out / "pfm", "--to", ".pfm"),
    }
    return [command, *map(str, options[command])]


def run(command: list[str], said: Path, fault: Callable[[], object] = lambda: None) -> int:
    """Run a command in a child; return its exit code, or minus the number of the signal."""
    reader, writer = os.pipe()  # files may be limited, too
    with fork_without_warning():
        child = os.fork()
    if child == 0:
        code = 99
        try:
            os.dup2(writer, 1)
            os.dup2(writer, 2)
            sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
            sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115
            hamflow.set_num_threads(1)
            fault()
            try:
                code = (laboratory if command[0] == "fit-crf" else main)(command)
            except SystemExit as ended:
                code = int(ended.code or 0)
        except BaseException:
            with suppress(BaseException):
                traceback.print_exc()
        finally:  # whatever happens, the tests must not go on here
            with suppress(BaseException):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(code)
    os.close(writer)
    with open(reader, "rb") as pipe:
        said.write_bytes(pipe.read())
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def contents(out: Path) -> dict[str, bytes]:
    """All files by their paths, hidden ones as well, except those with times in them."""
    files = sorted(path for path in out.rglob("*") if path.is_file())
    return {
        str(path.relative_to(out)): _measured(path)
        for path in files
        if path.name not in WITH_TIMES and path.parent.name != "events"
    }


def _measured(path: Path) -> bytes:
    """A file without times and memory: of a table some columns, of a page that it is whole."""
    if path.suffix == ".html":
        return path.read_bytes()[:9] + path.read_bytes()[-8:]
    if path.suffix != ".csv":
        return path.read_bytes()
    rows = list(csv.DictReader(path.read_text().splitlines()))
    kept = [{k: v for k, v in r.items() if k not in ("seconds", "peak_memory")} for r in rows]
    return repr(kept).encode()


@pytest.fixture(scope="module")
def good(inputs: Inputs, tmp_path_factory: pytest.TempPathFactory) -> Good:
    """What a command writes when nothing goes wrong."""
    known: dict[str, dict[str, bytes]] = {}

    def get(command: str) -> dict[str, bytes]:
        if command not in known:
            if command == "train":
                import hamflow.learning.loop  # noqa: F401, PLC0415  (once, not in each child)
            out = tmp_path_factory.mktemp(command) / "out"
            out.mkdir()
            said = out.parent / "said.txt"
            assert run(words(command, inputs, out), said) == 0, said.read_text()
            known[command] = contents(out)
            assert known[command]
            assert not any(name.endswith((".tmp", ".lock")) for name in known[command])
        return known[command]

    return get


def at_write(writes: int, number: signal.Signals) -> Callable[[], None]:
    """Send the process a signal when it has flushed so many files and begins with the next."""
    flush = os.fsync
    counted = 0

    def fsync(file: int) -> None:
        nonlocal counted
        counted += 1
        if counted == writes + 1:
            os.kill(os.getpid(), number)
        flush(file)

    def patch() -> None:
        os.fsync = fsync

    return patch


def one_sentence(said: Path) -> str:
    """The last line of what a command said, which must not be a traceback."""
    text = said.read_text()
    assert "Traceback" not in text, text
    lines = text.splitlines()
    assert lines, "it said nothing"
    assert lines[-1].endswith("."), text
    return lines[-1]


def again(command: str, line: list[str]) -> list[str]:
    return [*line, "--overwrite"] if command in ONCE else line


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("command", ALL)
def test_killed_and_interrupted(
    command: str, inputs: Inputs, good: Good, out: Path, tmp_path: Path
) -> None:
    """By SIGTERM, by Ctrl-C, then without warning before the 2nd and the 5th file is complete."""
    wanted, said = good(command), tmp_path / "said.txt"
    line = words(command, inputs, out)
    gentle = (signal.SIGTERM, signal.SIGINT)
    for number in gentle[command == "train" :]:  # whose own tests have SIGTERM
        ended = run(again(command, line), said, at_write(1, number))
        assert ended == 130, said.read_text()
        assert "Interrupted." in one_sentence(said)
        assert not [name for name in contents(out) if name.endswith((".tmp", ".lock"))]
    killed = [run(again(command, line), said, at_write(n, signal.SIGKILL)) for n in (1, 4)]
    assert killed[0] == -signal.SIGKILL
    assert killed[1] in (-signal.SIGKILL, 0), said.read_text()
    assert run(again(command, line), said) == 0, said.read_text()
    assert contents(out) == wanted


SMALLER = {"evaluate": 300, "compare": 300, "fit-crf": 100, "mask": 60}
"""Bytes that a file may have, for commands whose files are small."""
DISKS = dict.fromkeys(("evaluate", "compare", "fit-crf", "track", "mask", "stabilize", "pair"), 4)
"""Kilobytes of the disk for these."""


def files_may_not_grow(most: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))


@pytest.mark.parametrize("command", ALL)
def test_files_that_may_not_grow(
    command: str, inputs: Inputs, good: Good, out: Path, tmp_path: Path
) -> None:
    """As with a quota: a sentence, no half files, and the rest after the limit is gone."""
    wanted, said = good(command), tmp_path / "said.txt"
    line = words(command, inputs, out)
    most = SMALLER.get(command, 600 if command in CLIPS else 1500)
    assert run(line, said, files_may_not_grow(most)) in (1, 3), said.read_text()
    one_sentence(said)
    assert contents(out).items() <= wanted.items()
    assert run(again(command, line), said) == 0, said.read_text()
    assert contents(out) == wanted


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of its own, which only the superuser can make."""
    place = tmp_path / "disk"
    place.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=24k", "tmpfs", str(place)],
        capture_output=True,
        check=False,
    )
    if made.returncode:
        pytest.skip("needs the right to mount a disk")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="tmpfs")
@pytest.mark.parametrize("command", ALL)
def test_full_disk(
    command: str, inputs: Inputs, good: Good, tmp_path: Path, small_disk: Path
) -> None:
    wanted, said = good(command), tmp_path / "said.txt"
    line = words(command, inputs, small_disk)
    size = f"size={DISKS.get(command, 24)}k"
    subprocess.run(["mount", "-o", f"remount,{size}", str(small_disk)], check=True)
    assert run(line, said) in (1, 3), said.read_text()
    assert "full" in said.read_text() or "No space" in said.read_text()
    one_sentence(said)
    assert contents(small_disk).items() <= wanted.items()
    subprocess.run(["mount", "-o", "remount,size=4m", str(small_disk)], check=True)
    assert run(again(command, line), said) == 0, said.read_text()
    assert contents(small_disk) == wanted


@pytest.mark.parametrize("command", ALL)
def test_folder_that_may_not_be_written(
    command: str, inputs: Inputs, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if os.geteuid() == 0:  # whom permissions do not stop
        out = request.getfixturevalue("small_disk")
        subprocess.run(["mount", "-o", "remount,ro", str(out)], check=True)
    else:
        out = tmp_path / "out"
        out.mkdir(mode=0o555)
    said = tmp_path / "said.txt"
    assert run(words(command, inputs, out / "below"), said) == 1, said.read_text()
    assert str(out / "below") in one_sentence(said)
    assert not list(out.iterdir())


HELD = {
    "video": "flow/run.jsonl",
    "compare": "realtime/run.jsonl",
    "fit-crf": "fit.jsonl",
    "convert": "pfm/",
    "track": "t.csv",
    "interpolate": "frames/",
    "stabilize": "frames/",
    "mask": "masks/",
    "pair": "a.png",
    "view": "page.html",
}
"""What a run holds while it works, if it is not its log in the folder: a file, or a folder."""


@pytest.mark.parametrize("command", ALL)
def test_two_at_a_time(command: str, inputs: Inputs, tmp_path: Path) -> None:
    """While one run works in a folder, another one is refused and changes nothing there."""
    out, said = tmp_path / "out", tmp_path / "said.txt"
    held = HELD.get(command, "run.jsonl")
    path = out / held
    (path if held.endswith("/") else path.parent).mkdir(parents=True)
    with locked(path):
        before = sorted(str(p) for p in out.rglob("*"))
        assert run(words(command, inputs, out), said) == 1, said.read_text()
        assert f"is in use by another run (process {os.getpid()} on " in one_sentence(said)
        after = sorted(str(p) for p in out.rglob("*"))
    assert [p for p in after if p not in before and Path(p).is_file()] == []


@pytest.mark.parametrize("command", ["pair", "view", "track", "convert"])
def test_two_processes_and_one_file(
    command: str, inputs: Inputs, good: Good, out: Path, tmp_path: Path
) -> None:
    """Neither is allowed to replace files: exactly one makes them, whichever comes first."""
    line = words(command, inputs, out)
    wanted = good(command)
    if command == "convert":  # of single files; it continues with folders
        line = ["convert", str(inputs["flows"] / "0.flo"), str(out / "0.pfm")]
        wanted = {"0.pfm": wanted["pfm/0.pfm"]}
    told = [tmp_path / f"{k}.txt" for k in range(2)]
    with ThreadPoolExecutor(2) as pool:
        codes = list(pool.map(lambda said: run(line, said), told))
    assert sorted(codes) == [0, 1], [said.read_text() for said in told]
    refused = one_sentence(told[codes.index(1)])
    assert any(
        why in refused for why in ("is in use by another run", "already exists", "is not empty")
    )
    assert contents(out) == wanted


def no_more_memory() -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + 2**23
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of memory")
@pytest.mark.parametrize("command", ALL)
def test_no_memory(command: str, inputs: Inputs, out: Path, tmp_path: Path) -> None:
    """Eight megabytes more than the process has are not enough for larger frames."""
    large = tmp_path / "large"
    if command in ("evaluate", "compare", "submit"):
        write_sintel(large, SyntheticConfig(height=360, width=480, max_displacement=4.0), 1)
        (large / "training").rename(large / "test") if command == "submit" else None
    elif command == "convert":
        large.mkdir()  # more than the C library keeps of what was freed before
        hamflow.write_flow(large / "0.flo", np.ones((1750, 2500, 2), np.float32))
    elif command == "fit-crf":
        save_pair(large / "a/b", demo_scene(240, 320))
    else:
        write_folder(large, moving(2, 480, 640))
    said = tmp_path / "said.txt"
    line = words(
        command, inputs | dict.fromkeys(("frames", "set", "test", "flows", "pairs"), large), out
    )
    line = [{"48": "1920", "32": "1440"}.get(word, word) for word in line]  # of synth
    if command == "train":
        settings = (inputs["root"] / "train.toml").read_text().replace("= 32", "= 480")
        (tmp_path / "train.toml").write_text(settings)
        line[2] = str(tmp_path / "train.toml")
    assert run(line, said, no_more_memory) in (1, 2, 3), said.read_text()
    text = said.read_text()
    assert "Traceback" not in text, text
    assert "memory" in text.lower()
    assert run(again(command, line), said) == 0, said.read_text()

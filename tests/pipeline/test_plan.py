"""What a run needs is known before it starts."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hamflow
from _problems import same_bytes
from _route import SMALL, shifted
from hamflow import Estimator, InputError
from hamflow._memory import parse_memory, show_memory
from hamflow.cli.main import main
from hamflow.config import PRESETS
from hamflow.matching.local_model import LocalModel

MEASURE = """
import json, sys
import numpy as np, hamflow
from hamflow._memory import peak_memory
width, height, preset, window, memory, folder, scale = json.loads(sys.argv[1])
rows, columns = np.arange(height + 40) // 9, np.arange(width + 40) // 9
blobs = np.random.default_rng(0).integers(0, 256, (rows[-1] + 1, columns[-1] + 1, 3), np.uint8)
images = [np.empty((height, width, 3), np.uint8) for _ in range(2)]
for k, image in enumerate(images):
    for y in range(height):
        image[y] = blobs[rows[y + 7 * k]][columns[12 * k : 12 * k + width]]
if folder:
    names = [f"{folder}/{k}.npy" for k in range(2)]
    for name, image in zip(names, images):
        np.save(name, image)
    images = names
    paths = {n: f"{folder}/{n}.npy" for n in ("flow", "backward", "occlusion", "confidence")}
    estimator = hamflow.Estimator(preset, window=window, max_memory=memory)
    hamflow.estimate_files(*names, **paths, estimator=estimator)
else:
    result = hamflow.estimate(*images, preset, window, scale=scale, max_memory=memory)
limits = {"max_memory": memory, "files": bool(folder), "scale": scale}
plan = hamflow.plan(width, height, preset, window, **limits)
print(json.dumps([plan.peak, peak_memory(), plan.tiles, plan.disk]))
"""

FOUND = """
import json, sys
import numpy as np, hamflow
from hamflow._memory import peak_memory
width, height, motion = json.loads(sys.argv[1])
image = np.random.default_rng(0).integers(0, 256, (height // 6, width // 6, 3), np.uint8)
image = image.repeat(6, axis=0).repeat(6, axis=1)
other = image.copy()
third = image.shape[1] // 3
other[:, 2 * third :] = np.roll(image[:, 2 * third :], (-motion, -motion), axis=(0, 1))
other[:, :third] = np.roll(image[:, :third], (motion, motion), axis=(0, 1))
found = hamflow.estimate(image, other).window
plan = hamflow.plan(image.shape[1], image.shape[0], expected=found)
print(json.dumps([plan.at_least, plan.peak, plan.at_most, peak_memory()]))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="peaks are measured on Linux")
@pytest.mark.parametrize(
    "run",
    [
        (1024, 436, "balanced", 256, None, False),
        (1920, 1080, "fast", "auto", None, False),
        (2560, 1440, "realtime", 128, None, False),
        (1920, 1080, "balanced", 128, "500MB", False),
        (2560, 1440, "fast", "auto", "500MB", False),
        (2560, 1440, "balanced", 128, "500MB", True),
        (480, 320, "paper", 64, None, False),
        # With a scale, and out of core.
        (1600, 1000, "balanced", 320, "600MB", False, 2),
        (1600, 1000, "balanced", "auto", "640MB", False, 2),
    ],
)
def test_measured_peaks(run: tuple[Any, ...], tmp_path: Path) -> None:
    *settings, memory, files, scale = run if len(run) == 7 else (*run, None)
    words = json.dumps([*settings, memory, str(tmp_path) if files else "", scale])
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, words], capture_output=True, text=True, check=True
    )
    planned, measured, tiles, disk = json.loads(done.stdout)
    assert planned == pytest.approx(measured, rel=0.15)
    assert (tiles > 1) == (memory is not None)
    assert (disk > 0) == (scale is not None)
    if memory is not None:
        assert measured <= parse_memory(memory)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="peaks are measured on Linux")
@pytest.mark.parametrize("run", [(512, 384, "balanced"), (1024, 436, "fine")])
def test_measured_peaks_of_a_closer_look(run: tuple[Any, ...]) -> None:
    """Most of it is the completion, whose directions overlap more or less from run to run."""
    words = json.dumps([*run, "auto", None, "", None])
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, words], capture_output=True, text=True, check=True
    )
    planned, measured, *_ = json.loads(done.stdout)
    assert measured <= 1.15 * planned
    assert planned <= 1.6 * measured


@given(
    st.integers(16, 30_000),
    st.integers(16, 30_000),
    st.sampled_from(["fast", "balanced", "realtime", "paper"]),
    st.sampled_from(["auto", 64, (-3, 20, -2, 5)]),
    st.tuples(st.booleans(), st.floats(0, 1)),
)
def test_every_size_has_a_way(
    width: int, height: int, preset: str, window: Any, way: tuple[bool, float]
) -> None:
    files, share = way
    whole = hamflow.plan(width, height, preset, window, files=files)
    assert whole.whole
    assert whole.smallest <= whole.peak
    assert whole.at_least <= whole.peak <= whole.at_most
    limit = int(whole.smallest + share * (whole.peak - whole.smallest))
    found = hamflow.plan(width, height, preset, window, files=files, max_memory=limit)
    found.check()
    assert found.peak <= limit + 1
    assert found.at_least <= found.peak
    assert found.at_most <= max(limit, found.peak)
    assert found.mapped <= (not files)
    assert found.whole == (limit >= whole.peak)
    with pytest.raises(InputError, match="need at least"):
        hamflow.plan(
            width, height, preset, window, files=files, max_memory=whole.smallest - 1
        ).check()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="peaks are measured on Linux")
@pytest.mark.parametrize("motion", [8, 220])
def test_the_window_that_is_found_decides(motion: int) -> None:
    """The peak is within the bounds of the plan, and near it if the motion is known."""
    words = json.dumps([700, 500, motion])
    run = subprocess.run(
        [sys.executable, "-c", FOUND, words], capture_output=True, text=True, check=True
    )
    low, planned, high, measured = json.loads(run.stdout)
    assert planned == pytest.approx(measured, rel=0.15)
    assert low / 1.15 <= measured <= high * 1.15


def test_labels_that_do_not_fit_are_on_the_disk(capsys: pytest.CaptureFixture[str]) -> None:
    whole = hamflow.plan(1600, 1000, window=512, scale=2)
    assert whole.disk == 0
    found = hamflow.plan(1600, 1000, window=512, scale=2, max_memory=whole.smallest)
    assert found.disk == 500 * 800 * (257 + 257) * 6
    assert found.matched_labels < 500 * 800 * (257 + 257)
    assert found.stages["matching"] < whole.stages["matching"]
    words = ["--window", "512", "--scale", "2", "--max-memory", str(whole.smallest)]
    assert main(["plan", "1600", "1000", *words]) == 0
    assert "Labels: in temporary files, 1.23 GB on the disk" in capsys.readouterr().out
    # The local model needs no files.
    local = replace(PRESETS["fast"], matcher=LocalModel())
    least = hamflow.plan(1600, 1000, local, window=512, scale=2).smallest
    assert hamflow.plan(1600, 1000, local, window=512, scale=2, max_memory=least).disk == 0


@pytest.mark.parametrize(("scale", "remedy"), [(2, "use a coarser scale"), (None, "files")])
def test_the_remedy_is_of_the_stage_that_needs_most(scale: int | None, remedy: str) -> None:
    with pytest.raises(InputError, match=remedy):
        hamflow.plan(8000, 6000, "fast", scale=scale, max_memory="90MB").check()


def test_more_memory_makes_fewer_tiles() -> None:
    counts = [
        hamflow.plan(8000, 6000, window=256, max_memory=f"{size}GB").tiles
        for size in (1.7, 2.5, 4, 20)
    ]
    assert counts == sorted(counts, reverse=True)
    assert counts[-1] == 1
    assert len(set(counts)) == 4


def test_what_fits_is_the_same() -> None:
    images = shifted(5, -3)
    expected = Estimator(SMALL).estimate(*images)
    assert same_bytes(Estimator(SMALL, max_memory="1GB").estimate(*images).flow, expected.flow)
    gray = images[0][..., 0], images[1][..., 0]
    assert same_bytes(
        Estimator(SMALL, max_memory="1GB").estimate(*gray).flow,
        Estimator(SMALL).estimate(*gray).flow,
    )


def test_what_cannot_fit_says_so_before_it_starts(capsys: pytest.CaptureFixture[str]) -> None:
    image = np.zeros((400, 600, 3), np.uint8)
    with pytest.raises(InputError) as caught:
        Estimator("fast", max_memory="20MB").estimate(image, image)
    said = re.fullmatch(
        r"max_memory is 20 MB, but 600×400 pixels with these settings need at least (\d+) MB; .*",
        str(caught.value),
    )
    assert said is not None
    hamflow.plan(600, 400, "fast", max_memory=f"{int(said[1]) + 1}MB").check()
    with pytest.raises(InputError, match="need at least"):
        hamflow.plan(600, 400, "fast", max_memory=f"{int(said[1]) - 2}MB").check()
    assert main(["plan", "600", "400", "--max-memory", "20MB"]) == 1
    assert "need at least" in capsys.readouterr().err


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "plan.json"
    words = ["3840", "2160", "--window", "256", "--max-memory", "1GB", "--json", str(file)]
    assert main(["plan", *words]) == 0
    printed, found = capsys.readouterr().out, json.loads(file.read_text(encoding="utf-8"))
    assert found["peak"] <= 1e9
    assert found["scales"] == [8]
    assert f"{found['tiles']} tiles" in printed
    assert show_memory(found["peak"]) in printed
    assert "window 256×256" in printed
    assert main(["plan", "640", "480"]) == 0
    assert "the whole images at once" in capsys.readouterr().out


@pytest.mark.parametrize("amount", ["", "many", "4 parsecs", "-3GB", 0, True, "nan", "infMB", "GB"])
def test_no_amount_of_memory(amount: object) -> None:
    with pytest.raises(InputError, match="must be an amount of memory"):
        parse_memory(amount)  # type: ignore[arg-type]


def test_amounts_of_memory() -> None:
    assert parse_memory("600MB") == parse_memory(" 600 mb ") == parse_memory(600_000_000)
    assert parse_memory("2GiB") == 2**31
    for side in (0, -1, 2.5, True, "1"):
        with pytest.raises(InputError, match="width must be a whole number"):
            hamflow.plan(side, 10)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="window must be 'auto'"):
        hamflow.plan(10, 10, window="wide")

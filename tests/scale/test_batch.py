"""``hamflow.batch``: what it writes, what it refuses, and how it continues."""

from __future__ import annotations

import csv
import errno
import json
import os
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pyarrow.parquet as pq
import pytest

import hamflow
from _batches import InlineEngine, contents, inline, times, write_frames  # noqa: F401
from _video_calls import Calls
from _videos import moving, write_video
from hamflow.cli.main import main
from hamflow.errors import FileError, InputError
from hamflow.scale.batch import BatchProgress, BatchReport

pytestmark = pytest.mark.usefixtures("inline")
ALL = ("viz", "occlusion", "confidence", "backward", "json")
QUICK: dict[str, Any] = {"preset": "fast", "model": "pairs", "workers": 2}


def run(source: Any, out: Any, **options: Any) -> BatchReport:
    return hamflow.batch(source, out, **(QUICK | options))


def firsts(calls: Calls) -> list[str]:
    return sorted(Path(first).stem for first, _ in calls.pairs)


def manifest(out: Path) -> list[dict[str, str]]:
    with open(out / "manifest.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def recorded(out: str) -> set[str]:
    """The pairs that are complete by the log, wherever that is."""
    system, path = fsspec.core.url_to_fs(out)
    logs = [f"{path}/run.jsonl", *system.glob(f"{path}/run/*.jsonl")]
    lines = [line for log in logs if system.exists(log) for line in system.cat(log).splitlines()]
    return {json.loads(line).get("key") for line in lines} - {None}


def test_files_are_those_of_pair(tmp_path: Path) -> None:
    frames = write_frames(tmp_path / "in", 3)
    report = run(frames, tmp_path / "out", outputs=ALL)
    assert (report.done, report.known, report.failed, report.total) == (2, 0, {}, 2)
    single = tmp_path / "single"
    single.mkdir()
    words = [frames / "f01.png", frames / "f02.png", "-o", single / "flow.flo"]
    for kind in ALL:
        suffix = {"json": "json", "backward": "flo"}.get(kind, "png")
        words += [f"--{kind}", single / f"{kind}.{suffix}"]
    assert main(["pair", *map(str, words), "--preset", "fast", "--model", "pairs"]) == 0
    written = contents(tmp_path / "out")
    assert len(written) == 12
    for path in single.iterdir():
        found = written[f"{path.stem}/f01{path.suffix}"]
        if path.suffix == ".json":  # has the seconds of each stage
            one, other = json.loads(found), json.loads(path.read_bytes())
            assert one.pop("seconds").keys() == other.pop("seconds").keys()
            assert one == other
        else:
            assert found == path.read_bytes()


def test_manifest(tmp_path: Path, calls: Calls) -> None:
    frames = write_frames(tmp_path / "in", 4)
    (frames / "f03.png").write_bytes(b"broken")
    report = run(frames, tmp_path / "out")
    assert (report.done, list(report.failed)) == (2, ["f02"])
    rows = manifest(tmp_path / "out")
    assert [row["status"] for row in rows] == ["done", "done", "failed"]
    assert "f03.png: is not an image" in rows[2]["error"]
    assert rows[0]["image0"] == str(frames / "f00.png")
    assert (rows[0]["width"], rows[0]["height"], rows[0]["gap"]) == ("40", "32", "0.0")
    assert float(rows[0]["seconds"]) >= float(rows[0]["seconds_estimate"]) >= 0
    table = pq.read_table(tmp_path / "out" / "manifest.parquet").to_pylist()
    assert [row["name"] for row in table] == ["f00", "f01", "f02"]
    assert table[2]["error"] == rows[2]["error"]
    assert table[2]["gap"] is None
    assert table[0]["height"] == 32
    assert report.manifest == [str(tmp_path / "out" / f"manifest.{k}") for k in ("csv", "parquet")]


def test_what_can_be_wrong_with_a_pair(tmp_path: Path, calls: Calls) -> None:
    """Each of them fails alone, and says why."""
    frames = write_frames(tmp_path / "in", 2)
    huge = tmp_path / "huge.pgm"
    huge.write_bytes(b"P5\n60000 60000\n255\n")
    (tmp_path / "folder.png").mkdir()
    good = str(frames / "f00.png")
    wrong = {
        "missing": (str(tmp_path / "none.png"), "does not exist"),
        "huge": (str(huge), "more than the 134217728 pixels"),
        "folder": (str(tmp_path / "folder.png"), "is a directory"),
        "url": ("memory://nowhere.png", "does not exist"),
        "protocol": ("nonsense://x.png", "cannot be reached"),
    }
    rows = [f"{good},{good},good", *(f"{good},{path},{n}" for n, (path, _) in wrong.items())]
    (tmp_path / "pairs.csv").write_text("image0,image1,name\n" + "\n".join(rows) + "\n")
    report = run(tmp_path / "pairs.csv", tmp_path / "out")
    assert report.done == 1
    assert list(report.failed) == list(wrong)
    for name, (_, reason) in wrong.items():
        assert reason in report.failed[name]


def test_unexpected_errors(tmp_path: Path, calls: Calls) -> None:
    frames = write_frames(tmp_path / "in", 4)

    def trouble(first: str) -> None:
        if first.endswith("f00.png"):
            raise MemoryError
        if first.endswith("f01.png"):
            raise RuntimeError("one\ntwo")

    calls.before_call = trouble
    report = run(frames, tmp_path / "out")
    assert report.done == 1
    assert "not enough memory" in report.failed["f00"]
    assert report.failed["f01"] == "RuntimeError: one"


def test_videos(tmp_path: Path, calls: Calls) -> None:
    video = write_video(tmp_path / "clip.mp4", moving(5))
    broken = tmp_path / "broken.mp4"
    broken.write_bytes(video.read_bytes()[:300])
    report = run([video, broken], tmp_path / "out", workers=1)
    assert report.done == 4
    assert list(report.failed) == ["broken"]
    assert "is not a video" in report.failed["broken"]
    assert sorted(contents(tmp_path / "out")) == [
        f"flow/clip/frame_{number:04}.flo" for number in range(1, 5)
    ]
    rows = manifest(tmp_path / "out")
    assert (rows[1]["frame0"], rows[1]["frame1"]) == ("1", "2")


def test_frames_of_videos_are_the_right_ones(tmp_path: Path) -> None:
    """Whatever the order in which a worker gets the pairs of a video."""
    frames = moving(6, step=3)
    video = write_video(tmp_path / "clip.mp4", frames)
    for workers in (1, 3):
        run(video, tmp_path / f"out{workers}", workers=workers)
    assert contents(tmp_path / "out1") == contents(tmp_path / "out3")
    flow = hamflow.read_flow(tmp_path / "out1" / "flow" / "clip" / "frame_0003.flo")
    assert np.median(flow[..., 0]) == pytest.approx(3, abs=0.2)


def test_continue(tmp_path: Path, calls: Calls) -> None:
    frames = write_frames(tmp_path / "in", 6)
    out = tmp_path / "out"

    def stop(progress: BatchProgress) -> None:
        if progress.done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(frames, out, progress=stop)
    statuses = [row["status"] for row in manifest(out)]
    assert statuses.count("done") == 2
    assert statuses.count("pending") == 3
    before = times(out)
    report = run(frames, out)
    assert (report.known, report.done, report.total) == (2, 3, 5)
    recorded = [row["name"] for row in manifest(out) if row["status"] == "done"]
    assert len(recorded) == 5
    kept = {name: when for name, when in times(out).items() if before.get(name) == when}
    assert len(kept) >= 2
    # Nothing left; then one file is lost, one damaged, and one frame changed.
    calls.pairs.clear()
    assert run(frames, out).known == 5
    (out / "flow" / "f00.flo").unlink()
    (out / "flow" / "f01.flo").write_bytes(b"damaged")
    write_frames(frames, 6, deadly=(4,))
    report = run(frames, out)
    assert (report.known, report.done) == (1, 4)
    assert firsts(calls) == ["f00", "f01", "f03", "f04"]


def test_failed_pairs_are_tried_again(tmp_path: Path, calls: Calls) -> None:
    frames = write_frames(tmp_path / "in", 3)
    good = (frames / "f02.png").read_bytes()
    (frames / "f02.png").write_bytes(b"broken")
    assert list(run(frames, tmp_path / "out").failed) == ["f01"]
    (frames / "f02.png").write_bytes(good)
    report = run(frames, tmp_path / "out")
    assert (report.known, report.done, report.failed) == (1, 1, {})
    assert manifest(tmp_path / "out")[1]["error"] == ""


def test_other_settings_are_refused(tmp_path: Path, calls: Calls) -> None:
    frames = write_frames(tmp_path / "in", 3)
    out = tmp_path / "out"
    run(frames, out)
    for options, message in (
        ({"window": 16}, "window was auto"),
        ({"suffix": ".npy"}, "suffix was .flo, not .npy"),
        ({"outputs": ["viz"]}, "outputs was"),
        ({"every": 2}, "every was 1, not 2"),
    ):
        with pytest.raises(FileError, match=message):
            run(frames, out, **options)
    assert run(frames, out, workers=3, threads=1).known == 2
    report = run(frames, out, suffix=".npy", overwrite=True)
    assert report.done == 2
    assert sorted(contents(out)) == ["flow/f00.npy", "flow/f01.npy"]


@pytest.mark.parametrize("place", ["out", "memory"])
def test_a_full_disk_at_any_moment(
    tmp_path: Path, calls: Calls, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """A batch that stops says why; starting again finishes it and repeats nothing that was kept."""
    frames = write_frames(tmp_path / "in", 4)
    true_fsync, left = os.fsync, 0
    expected: dict[str, bytes] = {}

    def fsync(number: int) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        true_fsync(number)

    for moment in range(16):
        out = str(tmp_path / f"out{moment}") if place == "out" else f"memory://full{moment}"
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", fsync)
            left = moment
            try:
                run(frames, out, outputs=["viz"], workers=1)
            except FileError as error:
                assert "disk is full" in str(error) or "No space left" in str(error)  # noqa: PT017
            else:
                assert left >= 0
        kept = recorded(out)
        calls.pairs.clear()
        report = run(frames, out, outputs=["viz"], workers=1)
        assert (report.known, report.done, report.failed) == (len(kept), 3 - len(kept), {})
        assert not kept & set(firsts(calls))
        if place == "out":
            assert list(Path(out).rglob(".hamflow*.tmp")) == []
            expected = expected or contents(Path(out))
            assert contents(Path(out)) == expected


def test_same_bytes_at_urls(tmp_path: Path) -> None:
    frames = write_frames(tmp_path / "in", 3)
    memory = fsspec.filesystem("memory")
    memory.put(str(frames), "/same/in", recursive=True)
    run(frames, tmp_path / "out", outputs=["viz"])
    assert run("memory://same/in", "memory://same/out", outputs=["viz"]).done == 2
    for name, data in contents(tmp_path / "out").items():
        assert memory.cat(f"/same/out/{name}") == data
    assert memory.cat("/same/out/manifest.csv").count(b",done,") == 2
    # Continued, with a file lost and a frame changed; started again; with other settings.
    assert run("memory://same/in", "memory://same/out", outputs=["viz"]).known == 2
    memory.rm("/same/out/viz/f00.png")
    assert run("memory://same/in", "memory://same/out", outputs=["viz"]).done == 1
    memory.pipe("/same/in/f02.png", memory.cat("/same/in/f00.png"))
    report = run("memory://same/in", "memory://same/out", outputs=["viz"])
    assert (report.known, report.done) == (1, 1)
    with pytest.raises(FileError, match=r"memory://same/out: holds results of other settings"):
        run("memory://same/in", "memory://same/out")
    assert run("memory://same/in", "memory://same/out", overwrite=True).done == 2
    assert not memory.exists("/same/out/viz/f00.png")
    assert run("memory://same/in", "memory://same/out").known == 2


def test_file_urls(tmp_path: Path, calls: Calls) -> None:
    frames = write_frames(tmp_path / "in", 2)
    assert run(f"file://{frames}", f"file://{tmp_path}/out").done == 1
    assert (tmp_path / "out" / "flow" / "f00.flo").exists()


def test_wrong_arguments(tmp_path: Path) -> None:
    frames = write_frames(tmp_path / "in", 2)
    for options, message in (
        ({"workers": 0}, "workers must be a whole number"),
        ({"threads": 1.5}, "threads must be a whole number"),
        ({"engine": "dask"}, "engine must be 'local' or 'ray', not 'dask'"),
        ({"address": "auto"}, "address is for the engine 'ray'"),
        ({"outputs": ["depth"]}, "outputs must be some of .* not 'depth'"),
        ({"preset": "paper", "outputs": ["occlusion"]}, "--occlusion needs the flow in both"),
        ({"suffix": ".jpg"}, "cannot have the suffix '.jpg'"),
    ):
        with pytest.raises((InputError, FileError), match=message):
            run(frames, tmp_path / "out", **options)
    with pytest.raises(InputError, match="is inside of"):
        run(frames, frames / "out")
    assert sorted(os.listdir(tmp_path)) == ["in"]


def test_progress(tmp_path: Path, calls: Calls) -> None:
    frames = write_frames(tmp_path / "in", 5)
    (frames / "f04.png").write_bytes(b"broken")
    seen: list[BatchProgress] = []
    run(frames, tmp_path / "out", progress=seen.append)
    assert [p.done + p.failed for p in seen] == [1, 2, 3, 4]
    assert (seen[-1].done, seen[-1].failed, seen[-1].total) == (3, 1, 4)
    assert seen[0].rate is None
    assert seen[-1].seconds_left == 0
    assert {p.name: p.record["status"] for p in seen}["f03"] == "failed"

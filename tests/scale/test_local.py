"""Batches in several processes, which are killed."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import hamflow
from _batches import contents, harmful, killed_leader, times, wait_until, write_frames
from hamflow._processes import limit_memory, usable_memory
from hamflow.errors import HamflowError, InputError
from hamflow.scale import local
from hamflow.scale.batch import BatchProgress
from hamflow.scale.local import LocalEngine

resource = pytest.importorskip("resource")  # not on Windows
if not hasattr(resource, "prlimit"):
    pytest.skip("the processes of other systems are not tested", allow_module_level=True)

DRIVER = """
import sys
import hamflow
from _batches import harmful
if __name__ == "__main__":
    hamflow.batch(sys.argv[1], sys.argv[2], harmful(0.15), workers=2)
"""


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # A process that has ended, but whose parent has not asked for its exit code.
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"


def test_a_pair_that_hangs(tmp_path: Path) -> None:
    """It fails alone, with its reason in the manifest; the next batch tries it again."""
    frames = write_frames(tmp_path / "in", 6, hanging=(2,))
    report = hamflow.batch(frames, tmp_path / "out", harmful(), workers=2, timeout=4)
    assert report.done == 4
    assert report.failed == {"f02": "It took longer than the 4 seconds that a pair may take."}
    table = (tmp_path / "out" / "manifest.csv").read_text(encoding="utf-8")
    assert "It took longer than the 4 seconds" in table
    assert len(contents(tmp_path / "out")) == 4
    write_frames(tmp_path / "in", 6)
    again = hamflow.batch(frames, tmp_path / "out", harmful(), workers=1, timeout=60)
    assert not again.failed
    assert len(contents(tmp_path / "out")) == 5
    for wrong in (0, -1, float("nan"), float("inf"), "1"):
        with pytest.raises(InputError, match="timeout must be a number of seconds"):
            hamflow.batch(frames, tmp_path / "out", harmful(), timeout=wrong)  # type: ignore[arg-type]


def test_deadly_pairs_and_killed_workers(tmp_path: Path) -> None:
    """A pair that kills its process fails alone; one whose process is killed once is repeated."""
    frames = write_frames(tmp_path / "in", 10, deadly=(4,))
    killed: list[str] = []

    def kill_once(progress: BatchProgress) -> None:
        if progress.done == 2 and not killed:
            killed.append(progress.record["worker"])
            os.kill(int(killed[0].rpartition(":")[2]), signal.SIGKILL)

    report = hamflow.batch(frames, tmp_path / "out", harmful(0.05), workers=2, progress=kill_once)
    assert killed
    assert list(report.failed) == ["f04"]
    assert "died of this pair 2 times: it was ended by SIGKILL" in report.failed["f04"]
    assert report.done == 8
    assert len(contents(tmp_path / "out")) == 8
    # The others are as they are without any trouble, in one process with two threads.
    calm = hamflow.batch(
        write_frames(tmp_path / "calm", 10), tmp_path / "out1", harmful(), workers=1, threads=2
    )
    assert calm.done == 9
    for name, data in contents(tmp_path / "out").items():
        if name not in ("flow/f03.flo", "flow/f04.flo"):  # of the deadly frame
            assert contents(tmp_path / "out1")[name] == data


def test_killed_leader(tmp_path: Path) -> None:
    """Its workers end, too; what is recorded is not done again; no half file stays."""
    frames, out = write_frames(tmp_path / "in", 12), tmp_path / "out"
    records, before = killed_leader(DRIVER, str(frames), str(out), out=out)
    workers = {int(record["worker"].rpartition(":")[2]) for record in records}
    wait_until(lambda: not any(alive(pid) for pid in workers))
    assert len(before) == len(records)
    report = hamflow.batch(frames, out, harmful(0.15), workers=2)
    assert (report.known, report.done) == (len(records), 11 - len(records))
    assert report.failed == {}
    after = times(out)
    assert {name: after[name] for name in before} == before
    assert len(after) == 11
    assert [path for path in out.rglob(".*") if path.suffix != ".lock"] == []


def test_pairs_beyond_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pair that needs more memory than a worker may have fails alone, and so do odd sizes."""
    large = np.zeros((4000, 7000, 3), np.uint8)
    frames = write_frames(tmp_path / "in", 2)
    hamflow.write_image(tmp_path / "large.png", large)
    hamflow.write_image(tmp_path / "small.png", large[:20, :20])
    (tmp_path / "pairs.csv").write_text(
        "image0,image1,name\nlarge.png,large.png,large\nsmall.png,in/f00.png,sizes\n"
        "in/f00.png,in/f01.png,good\n"
    )
    true_start = LocalEngine.start

    def start(self: LocalEngine, slot: int) -> None:
        true_start(self, slot)
        pid = self._workers[slot][0].pid
        resource.prlimit(pid, resource.RLIMIT_DATA, (400 * 2**20, resource.RLIM_INFINITY))

    monkeypatch.setattr(LocalEngine, "start", start)
    report = hamflow.batch(tmp_path / "pairs.csv", tmp_path / "out", "realtime", workers=1)
    assert report.done == 1
    assert "not enough memory" in report.failed["large"]
    assert "must have one size" in report.failed["sizes"]
    assert frames.exists()


def test_limit_of_memory() -> None:
    memory = usable_memory()
    assert memory is not None
    child = os.fork()
    if child == 0:  # a process of its own, because the limit stays
        limit_memory(0.25)
        first = resource.getrlimit(resource.RLIMIT_DATA)[0]
        limit_memory(0.5)  # a lower limit stays
        second = resource.getrlimit(resource.RLIMIT_DATA)[0]
        os._exit(0 if first == second == int(memory * 0.9 * 0.25) else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_workers_that_cannot_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frames = write_frames(tmp_path / "in", 2)
    monkeypatch.setattr(local, "_serve", os._exit)  # a wrong argument: it ends at once
    with pytest.raises(HamflowError, match=r"begin to work: it ended with the exit code 1"):
        hamflow.batch(frames, tmp_path / "out", harmful(), workers=1)
    monkeypatch.undo()
    assert hamflow.batch(frames, tmp_path / "out", harmful(), workers=1).done == 1


@given(st.integers(-70, 255))
def test_reasons(code: int) -> None:
    said = local._end_of(code)
    assert ("exit code" in said) == (code >= 0)
    assert "SIGSEGV" in local._end_of(-signal.SIGSEGV)

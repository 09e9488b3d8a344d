"""Locks that keep a second run away."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from _trees import message_of
from hamflow.io._lock import locked


@pytest.mark.skipif(os.name != "posix", reason="no such locks")
@pytest.mark.parametrize("name", ["log.jsonl", "x" * 255])
def test_lock_ends_with_its_process(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys, time\nfrom hamflow.io._lock import locked\n"
            "with locked(sys.argv[1]):\n print(flush=True)\n time.sleep(60)",
            str(path),
        ],
        stdout=subprocess.PIPE,
    )
    assert holder.stdout is not None
    with holder, holder.stdout:
        holder.stdout.readline()
        message = message_of(lambda: hold(path), path)
        assert f"is in use by another run (process {holder.pid} on " in message
        with locked(tmp_path / "other.jsonl"):
            pass
        holder.kill()
    assert len(list(tmp_path.iterdir())) == 1
    hold(path)
    assert not list(tmp_path.iterdir())


def hold(path: Path) -> None:
    with locked(path):
        pass


@pytest.mark.skipif(os.name != "posix", reason="no such locks")
def test_lock_that_was_removed_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between opening and locking, the run that held it ends and removes the file."""
    fcntl = pytest.importorskip("fcntl")
    flock, removed = fcntl.flock, []

    def late(number: int, how: int) -> None:
        if not removed:
            removed.extend(tmp_path.iterdir())
            removed[0].unlink()
        flock(number, how)

    path = tmp_path / "log.jsonl"
    monkeypatch.setattr(fcntl, "flock", late)
    with locked(path):
        assert list(tmp_path.iterdir()) == removed
        message_of(lambda: hold(path), path)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no such processes")
def test_a_forked_child_does_not_keep_it(tmp_path: Path) -> None:
    """As the workers of a data loader would, which may outlive the work."""
    path = tmp_path / "log.jsonl"
    ready, done = os.pipe()
    with locked(path):
        child = os.fork()
        if child == 0:  # pragma: no cover (another process)
            os.close(done)
            os.read(ready, 1)
            os._exit(0)
    try:
        hold(path)
    finally:
        os.close(done)
        os.waitpid(child, 0)
        os.close(ready)


@pytest.mark.skipif(os.name != "posix", reason="no such locks")
def test_disk_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    path = tmp_path / "log.jsonl"
    monkeypatch.setattr("fcntl.flock", refuse)
    with locked(path):
        hold(path)
    monkeypatch.setattr("hamflow.io._lock.fcntl", None)
    with locked(path):
        assert not list(tmp_path.iterdir())


@pytest.mark.skipif(os.name != "posix", reason="no such locks")
def test_lock_of_a_folder(tmp_path: Path) -> None:
    """It is in the folder: the one above may belong to somebody else."""
    folder = tmp_path / "results"
    folder.mkdir()
    with locked(folder):
        assert len(list(folder.iterdir())) == 1
        assert list(tmp_path.iterdir()) == [folder]
        message_of(lambda: hold(folder), folder)
    assert not list(folder.iterdir())


def test_lock_in_no_folder(tmp_path: Path) -> None:
    path = tmp_path / "none/log.jsonl"
    assert "cannot be locked against other runs" in message_of(lambda: hold(path), path)

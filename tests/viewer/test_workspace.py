"""The private folder, and what killed servers leave behind."""

from __future__ import annotations

import multiprocessing
import os
import tempfile
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from hamflow.viewer.workspace import Workspace, size_of


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_it_is_private_and_removed(temporary: Path) -> None:
    workspace = Workspace()
    assert workspace.path.parent == temporary
    folder = workspace.folder()
    (folder / "file").write_bytes(bytes(7))
    assert size_of(folder) == 7
    for path in (workspace.path, folder):
        assert path.stat().st_mode & 0o777 == 0o700
    assert workspace.file(".flo").parent == workspace.path
    workspace.close()
    assert list(temporary.iterdir()) == []


def killed(connection: Connection, folder: str) -> None:
    tempfile.tempdir = folder
    workspace = Workspace()
    (workspace.folder() / "file").write_bytes(b"left")
    connection.send(str(workspace.path))
    connection.recv()


@pytest.mark.skipif(os.name != "posix", reason="needs locks of files")
def test_what_a_killed_server_left_behind(temporary: Path) -> None:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=killed, args=(theirs, str(temporary)))
    process.start()
    left = Path(ours.recv())
    others = temporary / "hamflow-serve-other"  # not made by a server, or just being made
    others.mkdir()
    (temporary / "hamflow-serve-link").symlink_to(others)
    first = Workspace()
    assert left.exists()  # its server runs
    process.kill()
    process.join()
    second = Workspace()
    assert not left.exists()
    assert first.path.exists()
    assert others.exists()
    for workspace in (first, second):
        workspace.close()

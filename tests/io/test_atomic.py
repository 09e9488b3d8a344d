from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

from _failing import full_disk
from hamflow.errors import FileError
from hamflow.io import _atomic
from hamflow.io._atomic import atomic_write, remove_stale, reserve, temporary_file

posix = pytest.mark.skipif(os.name != "posix", reason="POSIX permissions and links")


def names(directory: Path) -> list[str]:
    return sorted(p.name for p in directory.iterdir())


def test_writes_and_replaces(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    for content in (b"first", b"second"):
        with atomic_write(path) as file:
            file.write(content)
        assert path.read_bytes() == content
    assert names(tmp_path) == ["a.bin"]


def test_old_content_stays_until_the_end(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    path.write_bytes(b"old")
    with atomic_write(path) as file:
        file.write(b"new")
        file.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit])
def test_failure_leaves_nothing_behind(tmp_path: Path, error: type[BaseException]) -> None:
    path = tmp_path / "a.bin"
    with pytest.raises(error), atomic_write(path) as file:
        file.write(b"half")
        raise error
    assert names(tmp_path) == []
    path.write_bytes(b"old")
    with pytest.raises(error), atomic_write(path) as file:
        file.write(b"half")
        raise error
    assert names(tmp_path) == ["a.bin"]
    assert path.read_bytes() == b"old"


@pytest.mark.parametrize("step", ["fsync", "replace"])
@pytest.mark.parametrize(
    ("number", "word"), [(errno.ENOSPC, "full"), (errno.EACCES, "permit"), (errno.EIO, "written")]
)
def test_failing_system_calls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, number: int, word: str
) -> None:
    def fail(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    path = tmp_path / "a.bin"
    path.write_bytes(b"old")
    monkeypatch.setattr(os, step, fail)
    with pytest.raises(FileError, match=word) as caught, atomic_write(path) as file:
        file.write(b"new")
    assert str(caught.value).startswith(str(path))
    assert names(tmp_path) == ["a.bin"]
    assert path.read_bytes() == b"old"


def test_full_disk_while_writing(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    with pytest.raises(FileError, match="disk is full"), atomic_write(path):
        full_disk()
    assert names(tmp_path) == []


def test_error_about_another_file_passes_through(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), atomic_write(tmp_path / "a.bin"):
        (tmp_path / "other").read_bytes()
    assert names(tmp_path) == []


def test_missing_directory(tmp_path: Path) -> None:
    path = tmp_path / "no" / "a.bin"
    with pytest.raises(FileError, match="create it") as caught, atomic_write(path):
        pass
    assert str(tmp_path / "no") in str(caught.value)


def test_parent_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(FileError, match="written"), atomic_write(tmp_path / "file" / "a.bin"):
        pass


def test_target_is_a_directory(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="is a directory"), atomic_write(tmp_path):
        pass
    assert names(tmp_path) == []


def test_impossible_name(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="choose another"), atomic_write(f"{tmp_path}/a\0b"):
        pass


@posix
def test_longest_possible_name(tmp_path: Path) -> None:
    path = tmp_path / ("n" * 255)
    with atomic_write(path) as file:
        file.write(b"x")
    assert path.read_bytes() == b"x"
    with pytest.raises(FileError, match="cannot be written"), atomic_write(f"{path}n"):
        pass


@posix
@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002])
def test_new_file_follows_the_umask(tmp_path: Path, umask: int) -> None:
    path = tmp_path / "a.bin"
    before = os.umask(umask)
    try:
        with atomic_write(path):
            pass
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~umask


@posix
def test_existing_file_keeps_its_permissions(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    path.write_bytes(b"old")
    path.chmod(0o640)
    with atomic_write(path) as file:
        file.write(b"new")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@posix
def test_write_protected_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.bin"
    path.write_bytes(b"old")
    # Not by chmod: a superuser may write to anything.
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(FileError, match="write-protected"), atomic_write(path):
        pass
    assert path.read_bytes() == b"old"


@posix
def test_link_is_written_through(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    target = tmp_path / "elsewhere" / "real.bin"
    link = tmp_path / "link.bin"
    link.symlink_to(target)
    for content in (b"new file", b"again"):
        with atomic_write(link) as file:
            file.write(content)
        assert link.is_symlink()
        assert target.read_bytes() == content
    assert names(tmp_path / "elsewhere") == ["real.bin"]


@posix
def test_loop_of_links(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(FileError, match="cannot be written"), atomic_write(tmp_path / "a"):
        pass
    assert names(tmp_path) == ["a", "b"]


@posix
def test_pipe_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with pytest.raises(FileError, match="not a regular file"), atomic_write(path):
        pass
    assert stat.S_ISFIFO(path.stat().st_mode)


def test_the_folder_is_flushed_after_renaming(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a loss of power could undo it."""
    steps: list[str] = []
    flush, rename = os.fsync, os.replace

    def fsync(number: int) -> None:
        folder = stat.S_ISDIR(os.fstat(number).st_mode)
        steps.append("folder" if folder else "file")
        if folder:
            assert os.path.samestat(os.fstat(number), tmp_path.stat())
        flush(number)

    def replace(first: Path, second: Path) -> None:
        steps.append("rename")
        rename(first, second)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", replace)
    with atomic_write(tmp_path / "a.bin") as file:
        file.write(b"x")
    assert steps == ["file", "rename", *(["folder"] if os.name == "posix" else [])]


WRITE = """
import sys
from hamflow.io._atomic import atomic_write
with atomic_write(sys.argv[1]) as file:
    file.write(b"x" * 100)
    file.flush()
    if sys.argv[2:]:
        print("ready", flush=True)
        sys.stdin.read()
"""


@posix
def test_files_of_killed_processes(tmp_path: Path) -> None:
    """The next process removes what a killed one has left, and nothing of those that still run."""
    command = [sys.executable, "-c", WRITE]
    writers = [
        subprocess.Popen(
            [*command, tmp_path / f"{k}.bin", "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        for k in range(2)
    ]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"ready\n"
    assert len(names(tmp_path)) == 2
    writers[0].kill()
    writers[0].wait()
    assert len(names(tmp_path)) == 2
    (tmp_path / ".hamflow-linked.tmp").symlink_to(tmp_path)
    (tmp_path / ".hamflow-notes").write_bytes(b"")
    subprocess.run([*command, tmp_path / "2.bin"], check=True)
    left = names(tmp_path)
    assert left.pop(0).startswith(".hamflow-")  # of the one that still runs
    assert left == [".hamflow-linked.tmp", ".hamflow-notes", "2.bin"]
    writers[1].communicate(b"")
    assert names(tmp_path) == [".hamflow-linked.tmp", ".hamflow-notes", "1.bin", "2.bin"]
    for writer in writers:
        assert writer.stdin is not None
        assert writer.stdout is not None
        writer.stdin.close()
        writer.stdout.close()


@posix
def test_a_file_that_is_taken_for_a_stale_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process may see the file before its writer has locked it."""
    lock, tried = _atomic.try_lock, []

    def removed_before(number: int) -> bool | None:
        tried.append(number)
        if len(tried) == 1:
            for path in tmp_path.iterdir():
                path.unlink()
        return False if len(tried) == 2 else lock(number)

    monkeypatch.setattr(_atomic, "try_lock", removed_before)
    with atomic_write(tmp_path / "a.bin") as file:
        file.write(b"x")
    assert len(tried) == 3
    assert (tmp_path / "a.bin").read_bytes() == b"x"


@posix
def test_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nobody can tell whether a file is in use, it stays."""
    monkeypatch.setattr(_atomic, "try_lock", lambda _: None)
    (tmp_path / ".hamflow-0.tmp").write_bytes(b"")
    with atomic_write(tmp_path / "a.bin") as file:
        file.write(b"x")
    assert names(tmp_path) == [".hamflow-0.tmp", "a.bin"]
    monkeypatch.undo()
    _atomic.remove_stale(tmp_path)
    assert names(tmp_path) == ["a.bin"]


@pytest.mark.parametrize("error", [None, KeyboardInterrupt])
def test_a_temporary_file(tmp_path: Path, error: type[BaseException] | None) -> None:
    """It has its room, is nobody else's to remove, and vanishes in any case."""
    with pytest.raises(error) if error else nullcontext(), temporary_file(tmp_path) as path:
        reserve(path, 1000)
        assert path.read_bytes() == bytes(1000)
        remove_stale(tmp_path)
        assert path.exists()
        if error:
            raise error
    assert names(tmp_path) == []


def test_no_room_for_a_temporary_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FileError, match="TMPDIR"), temporary_file(tmp_path / "none"):
        pass
    with pytest.raises(OSError, match="other"), temporary_file(tmp_path):
        raise OSError(errno.EIO, "other")
    monkeypatch.setattr(os, "posix_fallocate", full_disk, raising=False)
    with pytest.raises(FileError, match=r"No space left.*TMPDIR"), temporary_file(tmp_path) as path:
        reserve(path, 1000)
    with pytest.raises(FileError, match="disk is full"), atomic_write(tmp_path / "a.bin") as file:
        reserve(Path(file.name), 1000)
    assert names(tmp_path) == []

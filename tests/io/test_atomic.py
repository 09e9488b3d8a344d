from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from hamflow.errors import FileError
from hamflow.io._atomic import atomic_write

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
        raise OSError(errno.ENOSPC, "No space left on device")
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

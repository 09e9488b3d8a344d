"""The log that all long commands share."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from _failing import full_disk
from _trees import message_of
from hamflow._resume import LOG, WorkLog, read_log
from hamflow.cli.main import main
from hamflow.errors import FileError
from hamflow.io._identity import file_record

SETTINGS = {"method": "a", "window": (1, 2), "deep": {"x": 1, "y": None}}


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def begun(folder: Path, settings: dict[str, Any] = SETTINGS, **options: Any) -> WorkLog:
    log = WorkLog.in_folder(folder, "work", **options)
    try:
        log.begin(settings)
    except FileError:
        log.close()
        raise
    return log


def write(log: WorkLog, name: str, content: str, source: str = "s") -> None:
    path = log.path.parent / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(content)
    log.add(name, source=source, files={name: file_record(path)}, seconds=1.5)


def names(folder: Path) -> list[str]:
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())


def test_settings_first_then_records(tmp_path: Path) -> None:
    with begun(tmp_path / "new/run") as log:
        assert lines(log.path) == [{"work": "work", "settings": json.loads(json.dumps(SETTINGS))}]
        write(log, "one", "text")
        log.add("two", values=[1, 2])
        # On the disk at once.
        header, one, two = lines(log.path)
    assert header["work"] == "work"
    assert (one["key"], one["source"], one["seconds"]) == ("one", "s", 1.5)
    assert one["files"]["one"]["bytes"] == 4
    assert two == {"key": "two", "values": [1, 2]}
    with begun(tmp_path / "new/run") as log:
        assert log.find("one", "s") == one
        assert log.find("two") == two
        assert log.find("three") is None
    assert names(tmp_path) == ["new/run/one", f"new/run/{LOG}"]


def test_the_later_record_counts(tmp_path: Path) -> None:
    with begun(tmp_path) as log:
        for number in (1, 2):
            log.add("one", number=number)
    with begun(tmp_path) as log:
        assert log.find("one") == {"key": "one", "number": 2}


@pytest.mark.parametrize("tail", ['{"key": "two", "numb', '{"key": "two"}'])
def test_a_line_that_was_cut_off(tmp_path: Path, tail: str) -> None:
    with begun(tmp_path) as log:
        log.add("one")
    log.path.write_text(log.path.read_text() + tail)
    with begun(tmp_path) as log:
        assert list(log.records) == ["one"]
        log.add("two", number=3)
    assert lines(log.path)[1:] == [{"key": "one"}, {"key": "two", "number": 3}]


def test_what_is_not_true_any_more(tmp_path: Path) -> None:
    with begun(tmp_path) as log:
        for name in "abcde":
            write(log, f"below/{name}", "text")
    (tmp_path / "below/a").unlink()
    (tmp_path / "below/b").write_text("2b")  # planted
    (tmp_path / "below/c").write_text("TEXT")
    os.utime(tmp_path / "below/d", (1, 1))  # as after copying: the content is the same
    with begun(tmp_path) as log:
        known = [name for name in "abcde" if log.find(f"below/{name}", "s") is not None]
        assert known == ["d", "e"]
        assert log.find("below/e", "other source") is None


def test_other_settings(tmp_path: Path) -> None:
    with begun(tmp_path) as log:
        log.add("one")
    before = log.path.read_bytes()

    def message(settings: dict[str, Any]) -> str:
        return message_of(lambda: begun(tmp_path, settings), log.path)

    assert message(SETTINGS | {"window": (1, 3), "more": 4}).endswith(
        "holds results of other settings (more was None, not 4, window was [1, 2], not [1, 3]); "
        "use the same settings, choose another place, or start again with --overwrite."
    )
    assert "(deep.x was 1, not 2)" in message(SETTINGS | {"deep": {"x": 2, "y": None}})
    many = {name: 0 for name in ("a1", "a2", "a3", "a4")}
    assert message(SETTINGS | many).count(" was ") == 3
    assert ", ...); use" in message(SETTINGS | many)
    # Another method has settings of its own, which say nothing more.
    assert "(method was a, not b)" in message({"method": "b", "window": 9})
    assert len(message(SETTINGS | {"pairs": ["x"] * 1000})) < 300
    assert log.path.read_bytes() == before
    with WorkLog.in_folder(tmp_path, "work") as log:
        log.begin(SETTINGS | {"window": 9, "deep": {"x": 5, "y": None}}, free={"window", "deep.x"})


def test_a_log_without_records_binds_nobody(tmp_path: Path) -> None:
    killed = (
        "import os, sys\nfrom hamflow._resume import WorkLog\n"
        "WorkLog.in_folder(sys.argv[1], 'work').begin({'a': 1})\nos._exit(1)"
    )
    subprocess.run([sys.executable, "-c", killed, str(tmp_path / "run")], check=False)
    assert lines(tmp_path / "run" / LOG) == [{"work": "work", "settings": {"a": 1}}]
    with begun(tmp_path / "run", {"a": 2}) as log:
        log.add("one")
    assert lines(log.path)[0]["settings"] == {"a": 2}


def test_nothing_done_leaves_no_trace(tmp_path: Path) -> None:
    begun(tmp_path / "new").close()
    assert not (tmp_path / "new").exists()
    begun(tmp_path / "new").remove()
    assert not (tmp_path / "new").exists()
    (tmp_path / "empty").mkdir()
    begun(tmp_path / "empty").close()
    assert list((tmp_path / "empty").iterdir()) == []
    with begun(tmp_path / "more") as log:
        (tmp_path / "more/file").touch()
    # Or that file would be somebody else's for the next run.
    assert log.path.exists()
    with WorkLog(tmp_path / "single.jsonl", "work") as log:
        log.begin({})
    assert not log.path.exists()


def test_overwrite(tmp_path: Path) -> None:
    with begun(tmp_path) as log:
        for name in ("one", "two", "three"):
            write(log, name, "text")
    (tmp_path / "two").write_text("changed by the user")
    (tmp_path / "mine").write_text("mine")
    with begun(tmp_path, {"other": 1}, overwrite=True) as log:
        assert log.records == {}
        write(log, "one", "new")
    assert names(tmp_path) == ["mine", "one", LOG, "two"]
    assert [line.get("key") for line in lines(log.path)] == [None, "one"]


def test_a_forged_log_leads_nowhere(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.write_text("mine")
    with begun(tmp_path / "run") as log:
        for name in ("../mine", str(mine)):
            log.add(name, files={name: file_record(mine)})
    begun(tmp_path / "run", {}, overwrite=True).close()
    assert mine.exists()


def test_files_of_somebody_else(tmp_path: Path) -> None:
    (tmp_path / ".hidden").touch()
    begun(tmp_path).close()
    (tmp_path / "thesis.tex").touch()
    for overwrite in (False, True):
        message = message_of(lambda: begun(tmp_path, overwrite=overwrite), tmp_path)  # noqa: B023
        assert "holds files, but no run.jsonl that tells how they were made" in message
    assert names(tmp_path) == [".hidden", "thesis.tex"]
    message_of(lambda: begun(tmp_path / "thesis.tex"), tmp_path / "thesis.tex")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "{}\n",
        "[]\n",
        "\0\n",
        "a,b\n1,2\n",
        '{"work": "x", "settings": {}}\n',
        "[" * 9**5,
    ],
)
def test_not_a_log(tmp_path: Path, text: str) -> None:
    path = tmp_path / LOG
    path.write_text(text)
    for overwrite in (False, True):
        message = message_of(lambda: begun(tmp_path, overwrite=overwrite), path)  # noqa: B023
        assert "is not the log of an earlier work; choose another place." in message
    assert path.read_text() == text


@pytest.mark.parametrize("line", ["{}", "[]", "not json", '{"key": 1}'])
def test_a_damaged_line(tmp_path: Path, line: str) -> None:
    with begun(tmp_path) as log:
        write(log, "one", "text")
    log.path.write_text(log.path.read_text() + line + "\n")
    assert "line 3 is damaged; remove that line." in message_of(lambda: begun(tmp_path), log.path)
    begun(tmp_path, overwrite=True).close()
    assert names(tmp_path) == []


def test_a_second_run(tmp_path: Path) -> None:
    pytest.importorskip("fcntl")
    with begun(tmp_path) as log:
        log.add("one")
        for overwrite in (False, True):
            message = message_of(lambda: begun(tmp_path, overwrite=overwrite), log.path)  # noqa: B023
            assert f"is in use by another run (process {os.getpid()} on " in message
        # Reading does no harm.
        assert read_log(log.path, "work")[1] == [{"key": "one"}]
    assert names(tmp_path) == [LOG]
    begun(tmp_path).close()


def test_changed_by_somebody_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hamflow.io._lock.fcntl", None)  # a system without locks
    with begun(tmp_path) as log, begun(tmp_path) as rival:
        rival.add("one")
        assert "was changed by somebody else" in message_of(lambda: log.add("two"), log.path)
        rival.add("two")
    assert [line.get("key") for line in lines(log.path)] == [None, "one", "two"]


def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with begun(tmp_path) as log:
        log.add("one")
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", full_disk)
            assert "No space left" in message_of(lambda: log.add("two"), log.path)
        assert "changed by somebody" in message_of(lambda: log.add("two"), log.path)
    with begun(tmp_path) as log:
        assert "one" in log.records


@pytest.mark.parametrize("command", ["evaluate", "video", "submit", "synth", "train"])
def test_every_command_says_the_policy(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([command, "--help"])
    printed = " ".join(word for word in capsys.readouterr().out.split() if word != "│")
    assert (
        "The same command continues an interrupted run; a folder with other settings or "
        "other files is refused; --overwrite starts again."
    ) in printed
    assert "--resume" not in printed

"""Training runs that are stopped, continued, overwritten, or damaged in between."""

from __future__ import annotations

import io
import json
import os
import pickle
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from _learning import (  # noqa: E402
    course,
    no_extras,  # noqa: F401
    one_thread,  # noqa: F401
    stop_after,
    tiny_config,
    write_pairs,
)
from hamflow import FileError  # noqa: E402
from hamflow.descriptors.architecture import Architecture  # noqa: E402
from hamflow.learning.config import DataConfig  # noqa: E402
from hamflow.learning.loop import Step, train  # noqa: E402
from hamflow.learning.state import read_state  # noqa: E402


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_resumed_as_if_never_stopped(tmp_path: Path, number: int) -> None:
    # The bootstrap ends and the best changes after the stop.
    config = tiny_config(steps=7, bootstrap=0.7, validation_pairs=1, validate_every=2, batch=2)
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    at_once = train(config, whole)
    handlers = [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)]
    stopped = train(config, parts, callback=stop_after(3, number))
    assert stopped.step == 3
    assert [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)] == handlers
    assert len(course(parts)) == 3
    assert read_state(parts / "checkpoint.safetensors")[1].step == 3
    again = train(config, parts, callback=stop_after(4, number))
    assert again.step == 4
    in_parts = train(config, parts)
    assert course(parts) == course(whole)
    assert [row["number"] for row in course(whole)] == [str(n) for n in range(1, 8)]
    for name in ("last.safetensors", "best.safetensors"):
        assert (parts / name).read_bytes() == (whole / name).read_bytes()
    assert replace(in_parts, seconds=0) == replace(at_once, seconds=0)
    assert in_parts.step == 7


def test_what_was_logged_after_the_checkpoint_is_logged_again(tmp_path: Path) -> None:
    config = tiny_config(steps=5)
    train(config, tmp_path / "whole")
    run = tmp_path / "run"
    train(config, run, callback=stop_after(2))

    def killed(step: Step) -> None:
        if step.number == 4:
            raise RuntimeError("killed")

    with pytest.raises(RuntimeError, match="killed"):
        train(config, run, callback=killed)
    log = run / "run.jsonl"
    assert [json.loads(line)["key"] for line in log.read_text().splitlines()[1:]] == list("1234")
    with open(log, "a") as file:
        file.write('{"key": "5", "loss": 3')  # half a line
    train(config, run)
    assert [json.loads(line)["key"] for line in log.read_text().splitlines()[1:]] == [*"1234345"]
    assert course(run) == course(tmp_path / "whole")
    # And once more, when there is nothing left to do.
    assert train(config, run).step == 5
    assert course(run) == course(tmp_path / "whole")


@pytest.mark.usefixtures("interruptible")
def test_a_second_ctrl_c_stops_at_once(tmp_path: Path) -> None:
    def impatient(_: Step) -> None:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        train(tiny_config(), tmp_path, callback=impatient)
    assert not (tmp_path / "checkpoint.safetensors").exists()


def test_checkpoints_once_in_a_while(tmp_path: Path) -> None:
    seen: list[int] = []

    def callback(_: Step) -> None:
        file = tmp_path / "checkpoint.safetensors"
        seen.append(read_state(file)[1].step if file.exists() else 0)

    train(tiny_config(steps=4, checkpoint_minutes=1e-9), tmp_path, callback=callback)
    assert seen == [0, 1, 2, 3]


def test_no_pickle_and_nothing_half_written(tmp_path: Path) -> None:
    train(tiny_config(steps=2, validation_pairs=1, checkpoint_minutes=1e-9), tmp_path)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {
        "best.safetensors",
        "checkpoint.safetensors",
        "curve.csv",
        "last.safetensors",
        "run.jsonl",
    }
    for path in tmp_path.glob("*.safetensors"):
        data = path.read_bytes()
        assert data[8:9] == b"{"  # a header in JSON, after its length
        json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])


def test_a_failed_write_leaves_the_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tiny_config()
    train(config, tmp_path, callback=stop_after(2))
    before = (tmp_path / "checkpoint.safetensors").read_bytes()

    def full_after(room: int) -> Callable[[int], None]:
        calls: list[int] = []

        def sync(number: int) -> None:
            calls.append(number)
            if len(calls) > room:
                raise OSError(28, "No space left on device")

        return sync

    # For the record of a step or not, and in no case for a checkpoint.
    for room, words in ((0, "No space left on device"), (1, "disk is full")):
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", full_after(room))
            with pytest.raises(FileError, match=words):
                train(config, tmp_path, callback=stop_after(3))
    assert (tmp_path / "checkpoint.safetensors").read_bytes() == before
    assert not list(tmp_path.glob(".hamflow-*"))
    assert train(config, tmp_path).step == config.steps


class Evil:
    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.mark),)


@pytest.mark.parametrize("kind", ["pickle", "torch", "text", "empty"])
def test_other_files_are_refused_and_never_run(tmp_path: Path, kind: str) -> None:
    mark = tmp_path / "executed"
    buffer = io.BytesIO()
    if kind == "torch":
        torch.save({"weights": Evil(mark)}, buffer)
    content = {
        "pickle": pickle.dumps(Evil(mark)),
        "torch": buffer.getvalue(),
        "text": b"hello, this is no checkpoint",
        "empty": b"",
    }[kind]
    run = tmp_path / "run"
    train(tiny_config(), run, callback=stop_after(1))
    (run / "checkpoint.safetensors").write_bytes(content)
    with pytest.raises(FileError, match=r"checkpoint\.safetensors: is not a safetensors file"):
        train(tiny_config(), run)
    start = tmp_path / "start.safetensors"
    start.write_bytes(content)
    with pytest.raises(FileError, match=r"start\.safetensors"):
        train(tiny_config(start=start), tmp_path / "new")
    assert not mark.exists()


def test_a_damaged_checkpoint_is_one_sentence(tmp_path: Path) -> None:
    config = tiny_config(steps=3)
    train(config, tmp_path, callback=stop_after(1))
    file = tmp_path / "checkpoint.safetensors"
    whole = file.read_bytes()
    length = int.from_bytes(whole[:8], "little")
    header = json.loads(whole[8 : 8 + length])

    def rewritten(change: Callable[[dict[str, Any]], object]) -> bytes:
        changed = json.loads(json.dumps(header))
        change(changed)
        text = json.dumps(changed).encode()
        return len(text).to_bytes(8, "little") + text + whole[8 + length :]

    def progress(**values: object) -> bytes:
        noted = json.loads(header["__metadata__"]["progress"]) | values
        return rewritten(lambda h: h["__metadata__"].update(progress=json.dumps(noted)))

    for content, words in (
        (whole[:-100], "is not a safetensors file"),
        (rewritten(lambda h: h.pop("__metadata__")), "is not a checkpoint of a training run"),
        (rewritten(lambda h: h["__metadata__"].pop("progress")), "is a damaged checkpoint"),
        (rewritten(lambda h: h["__metadata__"].update(config="{")), "is a damaged checkpoint"),
        (rewritten(lambda h: h["__metadata__"].update(config='{"a": 1}')), "a is unknown"),
        (progress(step=-1), "is a damaged checkpoint"),
        (progress(step=1.5), "is a damaged checkpoint"),
        (progress(more=1), "is a damaged checkpoint"),
        (rewritten(_renamed), r"has no weights\.layers\.0\.weight of the right"),
        (rewritten(_reshaped), r"has no exp_avg\.layers\.0\.weight of the right"),
    ):
        file.write_bytes(content)
        with pytest.raises(FileError, match=words) as caught:
            train(config, tmp_path)
        assert str(caught.value).startswith(str(file))
        assert "\n" not in str(caught.value)
    file.write_bytes(whole)
    assert train(config, tmp_path).step == 3


def _renamed(header: dict[str, Any]) -> None:
    header["other"] = header.pop("weights.layers.0.weight")


def _reshaped(header: dict[str, Any]) -> None:
    shape = header["exp_avg.layers.0.weight"]["shape"]
    shape.insert(0, shape.pop())


def test_resuming_with_other_settings(tmp_path: Path) -> None:
    config = tiny_config(steps=3)
    train(config, tmp_path, callback=stop_after(1))
    synthetic = replace(config.data.synthetic, height=64)
    for other, words in (
        (replace(config, steps=4), r"\(steps was 3, not 4\)"),
        (replace(config, model="qq"), r"\(model was fq, not qq\)"),
        (replace(config, learning_rate=0.5), r"\(learning_rate was 0\.01, not 0\.5\)"),
        (replace(config, network=Architecture(layers=5, channels=8)), r"\(network\.layers was 3"),
        (
            replace(config, data=replace(config.data, synthetic=synthetic)),
            r"\(data\.synthetic\.height was 48, not 64\)",
        ),
        (replace(config, validation=config.data), r"\(validation\.crop was None, not "),
    ):
        with pytest.raises(FileError, match=words) as caught:
            train(other, tmp_path)
        assert "choose another place, or start again with --overwrite" in str(caught.value)
        assert len(str(caught.value)) < 400
    # What does not change the course may change.
    free = replace(config, threads=2, checkpoint_minutes=1.0, validation_pairs=1, validate_every=1)
    assert train(free, tmp_path).step == 3


def test_whole_images_can_be_resumed(tmp_path: Path) -> None:
    """None is not the default there, and must not become it."""
    data = DataConfig(dataset="folder", root=write_pairs(tmp_path / "data", 2, (32, 40)), crop=None)
    config = tiny_config(steps=2, data=data)
    train(config, tmp_path / "run", callback=stop_after(1))
    assert train(config, tmp_path / "run").step == 2


def test_the_checkpoint_of_another_run(tmp_path: Path) -> None:
    for seed in (0, 1):
        train(tiny_config(seed=seed), tmp_path / str(seed), callback=stop_after(1))
    file = tmp_path / "0" / "checkpoint.safetensors"
    file.write_bytes((tmp_path / "1" / "checkpoint.safetensors").read_bytes())
    with pytest.raises(FileError, match=r"\(seed was 1, not 0\)"):
        train(tiny_config(seed=0), tmp_path / "0")


def test_files_of_somebody_else(tmp_path: Path) -> None:
    (tmp_path / "last.safetensors").write_text("mine")
    for overwrite in (False, True):
        with pytest.raises(FileError, match=r"holds files, but no run\.jsonl"):
            train(tiny_config(), tmp_path, overwrite=overwrite)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["mine"]


def test_overwrite_and_killed_before_a_checkpoint(tmp_path: Path) -> None:
    config = tiny_config(steps=3)
    train(config, tmp_path / "whole")
    run = tmp_path / "run"
    train(replace(config, seed=1, validation_pairs=1), run)

    def killed(step: Step) -> None:
        raise RuntimeError(f"killed at {step.number}")

    with pytest.raises(RuntimeError, match="killed at 1"):
        train(config, run, overwrite=True, callback=killed)
    assert [path.name for path in run.iterdir()] == ["run.jsonl"]
    train(config, run)
    assert course(run) == course(tmp_path / "whole")


def test_two_runs_in_one_folder(tmp_path: Path) -> None:
    pytest.importorskip("fcntl")
    config = tiny_config(steps=2)

    def meanwhile(_: Step) -> None:
        for overwrite in (False, True):
            with pytest.raises(
                FileError, match=f"in use by another run \\(process {os.getpid()} on "
            ):
                train(config, tmp_path, overwrite=overwrite)

    assert train(config, tmp_path, callback=meanwhile).step == 2
    assert len(course(tmp_path)) == 2

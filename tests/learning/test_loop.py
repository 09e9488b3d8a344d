"""The training loop: that it learns, stops, resumes and never leaves a mess."""

from __future__ import annotations

import io
import json
import os
import pickle
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import hamflow  # noqa: E402
from _learning import one_thread, tiny_config, write_pairs  # noqa: E402, F401
from hamflow import FileError, InputError  # noqa: E402
from hamflow.descriptors.architecture import Architecture  # noqa: E402
from hamflow.descriptors.weights import read_weights  # noqa: E402
from hamflow.learning import loop  # noqa: E402
from hamflow.learning.allocator import keep_freed_memory  # noqa: E402
from hamflow.learning.checkpoint import read_progress  # noqa: E402
from hamflow.learning.config import DataConfig, TrainConfig  # noqa: E402
from hamflow.learning.log import read_curve  # noqa: E402
from hamflow.learning.loop import Step, train  # noqa: E402
from hamflow.learning.plot import plot_curve  # noqa: E402

COURSE = ("number", "loss", "rate", "norm", "constant_bits")
"""Columns that do not depend on the machine's mood."""


@pytest.fixture
def extras() -> None:
    """For tests that use them."""


@pytest.fixture(autouse=True)
def _no_extras(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Leave out the slow imports but where they are the point."""
    if "extras" not in request.fixturenames:
        monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
        monkeypatch.setitem(sys.modules, "hamflow.learning.plot", None)


def stop_after(step: int, number: int = signal.SIGTERM) -> Callable[[Step], None]:
    def callback(done: Step) -> None:
        if done.number == step:
            signal.raise_signal(number)

    return callback


def course(folder: Path) -> list[dict[str, str]]:
    rows = read_curve(folder / "curve.csv")
    return [
        {name: row[name] for name in row if name in COURSE or name.startswith("val_")}
        for row in rows
    ]


def test_it_learns(tmp_path: Path) -> None:
    root = write_pairs(tmp_path / "data", count=1)
    config = tiny_config(
        steps=25,
        bootstrap=0.0,
        data=DataConfig(dataset="folder", root=root, crop=None),
        augment=replace(tiny_config().augment, mirror=False),
        validation_pairs=1,
        validate_every=25,
    )
    steps: list[Step] = []
    progress = train(config, tmp_path / "run", callback=steps.append)
    losses = [step.loss for step in steps]
    assert [step.number for step in steps] == list(range(1, 26))
    assert 4 < losses[0] < 7  # chance is 2 ln 16 = 5.5
    assert losses[-1] < 0.7 * losses[0]
    assert progress.step == progress.best_step == 25
    validation = steps[-1].validation
    assert validation is not None
    assert progress.best == validation.epe_qq
    assert validation.outlier_3px_qq < 0.38  # 0.43 with random weights
    assert all(step.constant_bits < 0.3 for step in steps)
    assert all(step.seconds > step.waited > 0 for step in steps)
    # The files say what they are, and hold what was learned.
    for name in ("best.safetensors", "last.safetensors"):
        architecture, weights, metadata = read_weights(tmp_path / "run" / name)
        assert architecture == config.network
        assert set(weights) == set(architecture.parameters())
        assert (metadata["model"], metadata["window"], metadata["step"]) == ("fq", "16", "25")


def test_rates(tmp_path: Path) -> None:
    config = tiny_config(steps=8, warmup=4, learning_rate=1e-2, final_rate=0.1)
    steps: list[Step] = []
    train(config, tmp_path, callback=steps.append)
    cosine = 0.1 + 0.9 * (0.5 + 0.5 * np.cos(np.pi * np.arange(8) / 8))
    ramp = np.minimum(1, np.arange(1, 9) / 4)
    np.testing.assert_allclose([step.rate for step in steps], 1e-2 * ramp * cosine)


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
    assert read_progress(parts / "checkpoint.safetensors")[1].step == 3
    again = train(config, parts, resume=True, callback=stop_after(4, number))
    assert again.step == 4
    in_parts = train(config, parts, resume=True)
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
        train(config, run, resume=True, callback=killed)
    assert len(course(run)) == 4
    with open(run / "curve.csv", "a") as file:
        file.write("5,3.1")  # half a line
    assert len(course(run)) == 4
    train(config, run, resume=True)
    assert course(run) == course(tmp_path / "whole")
    # And once more, when there is nothing left to do.
    assert train(config, run, resume=True).step == 5
    assert course(run) == course(tmp_path / "whole")


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
        seen.append(read_progress(file)[1].step if file.exists() else 0)

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

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(FileError, match="disk is full"):
            train(config, tmp_path, resume=True, callback=stop_after(3))
    assert (tmp_path / "checkpoint.safetensors").read_bytes() == before
    assert not list(tmp_path.glob(".hamflow-*"))
    assert train(config, tmp_path, resume=True).step == config.steps


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
    (tmp_path / "checkpoint.safetensors").write_bytes(content)
    with pytest.raises(FileError, match=r"checkpoint\.safetensors: is not a safetensors file"):
        train(tiny_config(), tmp_path, resume=True)
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
        (rewritten(_renamed), r"has no fitting weights\.layers\.0\.weight"),
        (rewritten(_reshaped), r"has no fitting exp_avg\.layers\.0\.weight"),
    ):
        file.write_bytes(content)
        with pytest.raises(FileError, match=words) as caught:
            train(config, tmp_path, resume=True)
        assert str(caught.value).startswith(str(file))
        assert "\n" not in str(caught.value)
    file.write_bytes(whole)
    assert train(config, tmp_path, resume=True).step == 3


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
        (replace(config, steps=4), r"another steps \(3\)"),
        (replace(config, model="qq"), r"another model \(fq\)"),
        (replace(config, learning_rate=0.5), r"another learning_rate \(0\.01\)"),
        (replace(config, network=Architecture(layers=5, channels=8)), r"network\.layers \(3\)"),
        (
            replace(config, data=replace(config.data, synthetic=synthetic)),
            r"another data\.synthetic\.height \(48\)",
        ),
        (replace(config, validation=config.data), r"another validation \(None\)"),
    ):
        with pytest.raises(InputError, match=words) as caught:
            train(other, tmp_path, resume=True)
        assert "name a new folder" in str(caught.value)
        assert len(str(caught.value)) < 300
    # What does not change the course may change.
    free = replace(config, threads=2, checkpoint_minutes=1.0, validation_pairs=1, validate_every=1)
    assert train(free, tmp_path, resume=True).step == 3


def test_whole_images_can_be_resumed(tmp_path: Path) -> None:
    """None is not the default there, and must not become it."""
    data = DataConfig(dataset="folder", root=write_pairs(tmp_path / "data", 2, (32, 40)), crop=None)
    config = tiny_config(steps=2, data=data)
    train(config, tmp_path / "run", callback=stop_after(1))
    assert train(config, tmp_path / "run", resume=True).step == 2


def test_a_run_is_not_overwritten(tmp_path: Path) -> None:
    config = tiny_config(steps=1)
    train(config, tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(FileError, match="there is a run already; resume it, or name a new folder"):
        train(config, tmp_path)
    assert before == {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(FileError, match="there is nothing to resume"):
        train(config, tmp_path / "other", resume=True)
    assert not (tmp_path / "other").exists()


def test_an_impossible_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="file/run: cannot be made a folder"):
        train(tiny_config(), tmp_path / "file" / "run")


def test_start_from_weights(tmp_path: Path) -> None:
    train(tiny_config(steps=2), tmp_path / "first")
    start = tmp_path / "start.safetensors"
    start.write_bytes((tmp_path / "first" / "last.safetensors").read_bytes())
    # Steps so small that nothing changes.
    config = tiny_config(steps=2, start=start, learning_rate=1e-30)
    second = tmp_path / "second"
    train(config, second, callback=stop_after(1))
    before, after = (read_weights(file)[1] for file in (start, second / "last.safetensors"))
    assert all(np.array_equal(before[name], after[name]) for name in before)
    start.unlink()  # resuming needs the checkpoint only
    assert train(config, second, resume=True).step == 2


def test_start_from_other_weights(tmp_path: Path) -> None:
    train(tiny_config(steps=1), tmp_path / "first")
    start = tmp_path / "first" / "last.safetensors"
    other = tiny_config(start=start, network=Architecture(layers=5, channels=8))
    with pytest.raises(FileError, match=r"last\.safetensors: is of another architecture"):
        train(other, tmp_path / "second")
    with pytest.raises(FileError, match=r"missing\.safetensors"):
        train(tiny_config(start=tmp_path / "missing.safetensors"), tmp_path / "third")


def test_other_models(tmp_path: Path) -> None:
    validated = {"steps": 2, "validation_pairs": 1, "validate_every": 1}
    narrow = Architecture(layers=3, channels=8, m=16)
    steps: list[Step] = []
    train(
        tiny_config(model="ff", network=narrow, **validated), tmp_path / "ff", callback=steps.append
    )
    result = steps[-1].validation
    assert result is not None
    assert np.isnan(result.epe_qq)  # 16 components are no word of bits
    assert result.epe_trained > 0
    assert (tmp_path / "ff" / "best.safetensors").exists()
    train(tiny_config(model="ff", **validated), tmp_path / "ff64", callback=steps.append)
    assert steps[-1].validation is not None
    assert steps[-1].validation.epe_qq > 0
    train(tiny_config(model="qq", **validated), tmp_path / "qq", callback=steps.append)
    result = steps[-1].validation
    assert result is not None
    assert result.epe_qq == result.epe_trained > 0
    context = Architecture(kind="context", layers=3, channels=4, wide=40)
    spread = tiny_config(network=context, target="spread", temperature=4.0, **validated)
    train(spread, tmp_path / "context", callback=steps.append)
    assert all(step.norm > 0 and np.isfinite(step.loss) for step in steps)
    with pytest.raises(InputError, match="fq needs descriptors of m = 64, not 16"):
        tiny_config(network=narrow)


def test_balance_adds_to_the_loss(tmp_path: Path) -> None:
    losses = []
    for balance in (0.0, 1.0, 2.0):
        train(
            tiny_config(steps=1, balance=balance),
            tmp_path / str(balance),
            callback=lambda step: losses.append(step.loss),
        )
    assert losses[0] < losses[1] < losses[2]
    np.testing.assert_allclose(losses[2] - losses[1], losses[1] - losses[0], rtol=1e-3)


def test_what_is_not_finite_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=r"The loss of step 1 is not finite; start a new run"):
        train(tiny_config(temperature=1e-42), tmp_path / "loss")
    with monkeypatch.context() as patch:
        patch.setattr(loop, "clip_grad_norm_", lambda *_: torch.tensor(torch.inf))
        with pytest.raises(InputError, match=r"The gradient of step 1 is not finite"):
            train(tiny_config(), tmp_path / "gradient")


def test_pairs_in_which_nothing_counts(tmp_path: Path) -> None:
    root = write_pairs(tmp_path / "data", count=2, size=(32, 32))
    flow = np.full((32, 32, 2), np.nan, np.float32)
    hamflow.write_flow(root / "group" / "pair0" / "flow.flo", flow)
    data = DataConfig(dataset="folder", root=root, crop=None)
    config = tiny_config(steps=4, data=data, validation_pairs=2, validate_every=4)
    steps: list[Step] = []
    progress = train(config, tmp_path / "run", callback=steps.append)
    assert sum(step.loss == step.norm == 0 for step in steps) == 2
    # The other pair is validated on all the same.
    assert np.isfinite(progress.best)
    hamflow.write_flow(root / "group" / "pair1" / "flow.flo", flow)
    progress = train(config, tmp_path / "none", callback=steps.append)
    assert progress.best_step == 0
    assert steps[-1].validation is not None
    assert np.isnan(steps[-1].validation.epe_qq)
    assert np.isfinite(steps[-1].validation.constant_bits)


def test_the_same_run_twice(tmp_path: Path) -> None:
    for name in ("a", "b"):
        train(tiny_config(steps=3, augment=TrainConfig().augment), tmp_path / name)
    assert course(tmp_path / "a") == course(tmp_path / "b")
    train(tiny_config(steps=3, seed=1), tmp_path / "c")
    assert course(tmp_path / "a") != course(tmp_path / "c")


@pytest.mark.usefixtures("extras")
def test_curve_as_a_picture(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    run = tmp_path / "run"
    train(tiny_config(steps=3, validation_pairs=1, validate_every=2), run)
    picture = hamflow.read_image(run / "curve.png")
    assert picture.shape[1] > 600
    assert len(np.unique(picture.reshape(-1, 3), axis=0)) > 20
    both = tmp_path / "both.png"
    plot_curve([run / "curve.csv"] * 2, both, labels=["one", "two"], title="twice")
    assert hamflow.read_image(both).shape == picture.shape
    with pytest.raises(InputError, match="There are 2 curves, but 1 labels"):
        plot_curve([run / "curve.csv"] * 2, both, labels=["one"])
    with pytest.raises(FileError, match="does not exist"):
        plot_curve(tmp_path / "missing.csv", both)
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    with pytest.raises(FileError, match="is not a learning curve"):
        plot_curve(tmp_path / "other.csv", both)


@pytest.mark.usefixtures("extras")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_tensorboard_has_every_step_once(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import (  # noqa: PLC0415
        EventAccumulator,
    )

    config = tiny_config(steps=4, validation_pairs=1, validate_every=2)
    train(config, tmp_path, callback=stop_after(2))

    def killed(step: Step) -> None:
        raise RuntimeError(f"killed at {step.number}")

    with pytest.raises(RuntimeError, match="killed at 3"):
        train(config, tmp_path, resume=True, callback=killed)
    train(config, tmp_path, resume=True)
    events = EventAccumulator(str(tmp_path / "events")).Reload()
    losses = events.Scalars("loss")
    assert [event.step for event in losses] == [1, 2, 3, 4]
    logged = [float(row["loss"]) for row in course(tmp_path)]
    np.testing.assert_allclose([event.value for event in losses], logged, rtol=1e-5)
    assert [event.step for event in events.Scalars("validation/epe_qq")] == [2, 4]


def test_works_without_tensorboard_and_matplotlib(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("tensorboard", "torch.utils.tensorboard", "matplotlib"):
        monkeypatch.setitem(sys.modules, name, None)
    assert train(tiny_config(steps=1), tmp_path).step == 1
    assert not (tmp_path / "events").exists()
    assert not (tmp_path / "curve.png").exists()


def test_freed_memory_is_kept_where_that_is_possible(monkeypatch: pytest.MonkeyPatch) -> None:
    assert keep_freed_memory() in (True, False)
    with monkeypatch.context() as patch:
        patch.setattr("ctypes.CDLL", lambda _: object())  # a C library that cannot
        assert not keep_freed_memory()
    monkeypatch.setattr(sys, "platform", "win32")
    assert not keep_freed_memory()

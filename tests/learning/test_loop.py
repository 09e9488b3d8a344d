"""The training loop: that it learns, and what it writes."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import hamflow  # noqa: E402
from _learning import (  # noqa: E402
    course,
    extras,  # noqa: F401
    no_extras,  # noqa: F401
    one_thread,  # noqa: F401
    stop_after,
    tiny_config,
    write_pairs,
)
from hamflow import FileError, InputError  # noqa: E402
from hamflow.descriptors.architecture import Architecture, Kind  # noqa: E402
from hamflow.descriptors.weights import read_weights  # noqa: E402
from hamflow.learning import loop  # noqa: E402
from hamflow.learning.allocator import keep_freed_memory  # noqa: E402
from hamflow.learning.config import DataConfig, TrainConfig  # noqa: E402
from hamflow.learning.loop import Step, train  # noqa: E402
from hamflow.learning.plot import plot_curve  # noqa: E402


def test_it_learns(tmp_path: Path) -> None:
    root = write_pairs(tmp_path / "data", count=1)
    config = tiny_config(
        steps=75,
        bootstrap=0.0,
        data=DataConfig(dataset="folder", root=root, crop=None),
        augment=replace(tiny_config().augment, mirror=False),
        validation_pairs=1,
        validate_every=75,
    )
    steps: list[Step] = []
    progress = train(config, tmp_path / "run", callback=steps.append)
    losses = [step.loss for step in steps]
    assert [step.number for step in steps] == list(range(1, 76))
    assert 4 < losses[0] < 7  # chance is 2 ln 16 = 5.5
    assert losses[-1] < 0.7 * losses[0]
    assert progress.step == progress.best_step == 75
    validation = steps[-1].validation
    assert validation is not None
    assert progress.best == validation.epe_qq
    assert validation.outlier_3px_qq < 0.3  # 0.43 with random weights
    assert all(step.constant_bits < 0.3 for step in steps)
    assert all(step.seconds > step.waited > 0 for step in steps)
    # The files say what they are, and hold what was learned.
    for name in ("best.safetensors", "last.safetensors"):
        architecture, weights, metadata = read_weights(tmp_path / "run" / name)
        assert architecture == config.network
        assert set(weights) == set(architecture.parameters())
        assert (metadata["model"], metadata["window"], metadata["step"]) == ("fq", "16", "75")


def test_rates(tmp_path: Path) -> None:
    config = tiny_config(steps=8, warmup=4, learning_rate=1e-2, final_rate=0.1)
    steps: list[Step] = []
    train(config, tmp_path, callback=steps.append)
    cosine = 0.1 + 0.9 * (0.5 + 0.5 * np.cos(np.pi * np.arange(8) / 8))
    ramp = np.minimum(1, np.arange(1, 9) / 4)
    np.testing.assert_allclose([step.rate for step in steps], 1e-2 * ramp * cosine)


def test_an_impossible_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="file/run: cannot be created as a folder"):
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
    assert train(config, second).step == 2


def test_start_from_other_weights(tmp_path: Path) -> None:
    train(tiny_config(steps=1), tmp_path / "first")
    start = tmp_path / "first" / "last.safetensors"
    other = tiny_config(start=start, network=Architecture(layers=5, channels=8))
    with pytest.raises(FileError, match=r"last\.safetensors: has another network"):
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


@pytest.mark.parametrize("kind", ["paper", "context", "coarse"])
def test_bfloat16_learns_nearly_the_same(tmp_path: Path, kind: Kind) -> None:
    small = {"channels": 8, "wide": 40, "widths": (4, 6, 8), "dilations": (1,)}
    network = Architecture(kind, layers=3, **small)
    losses = {}
    for precision in ("float32", "bfloat16"):
        steps: list[Step] = []
        config = tiny_config(network=network, precision=precision, steps=4)
        train(config, tmp_path / precision, callback=steps.append)
        losses[precision] = [step.loss for step in steps]
    assert losses["bfloat16"] != losses["float32"]
    # Together: the loss of an easy crop may be a fiftieth of another one's, and rounding is not.
    assert sum(losses["bfloat16"]) == pytest.approx(sum(losses["float32"]), rel=0.02)


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


@pytest.mark.parametrize("kind", ["paper", "coarse"])
def test_without_balance_it_is_not_computed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: Kind
) -> None:
    monkeypatch.setattr(loop, "balance_loss", lambda _: pytest.fail("not asked for"))
    network = Architecture(kind, layers=3, channels=8, widths=(4, 6, 8), dilations=(1,))
    assert train(tiny_config(steps=1, network=network, balance=0.0), tmp_path).step == 1


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
    again = tmp_path / "again.png"
    with pytest.raises(FileError, match="does not exist"):
        plot_curve(tmp_path / "missing.csv", again)
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    with pytest.raises(FileError, match="is not a learning curve"):
        plot_curve(tmp_path / "other.csv", again)
    (tmp_path / "other.csv").write_text("a" * 200_000)
    with pytest.raises(FileError, match="is not a CSV table"):
        plot_curve(tmp_path / "other.csv", again)


@pytest.mark.usefixtures("extras")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_tensorboard_has_every_step_once(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator  # noqa: PLC0415

    config = tiny_config(steps=4, validation_pairs=1, validate_every=2)
    train(config, tmp_path, callback=stop_after(2))

    def killed(step: Step) -> None:
        raise RuntimeError(f"killed at {step.number}")

    with pytest.raises(RuntimeError, match="killed at 3"):
        train(config, tmp_path, callback=killed)
    train(config, tmp_path)
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

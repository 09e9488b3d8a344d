"""The process that computes, without the process: what it says, and what it writes."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hamflow
from _viewer import moving
from hamflow import Estimator
from hamflow.evaluation.methods import Method
from hamflow.viewer import worker
from hamflow.viewer.kept_result import WHY, read_explanation, read_result, write_result
from hamflow.viewer.methods import PEERS
from hamflow.viewer.registry import Registry
from hamflow.viewer.worker import Request


class Listener:
    """The end of a connection that only listens."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, Any]] = []

    def send(self, message: tuple[str, Any]) -> None:
        self.heard.append(message)


def answered(tmp_path: Path, count: int = 2, **options: Any) -> list[tuple[str, Any]]:
    """What the worker says about a request."""
    frames, folders = [], []
    for k, frame in enumerate(moving(count)):
        frames.append(tmp_path / f"{k}.png")
        hamflow.write_image(frames[-1], frame)
    for k in range(count - 1):
        folders.append(tmp_path / f"result{k}")
        folders[-1].mkdir()
    request: dict[str, Any] = {"first": 5, "preset": "realtime", "window": "auto"} | options
    listener: Any = Listener()
    worker._Worker(listener).answer(
        Request(frames=tuple(frames), folders=tuple(folders), **request)
    )
    heard: list[tuple[str, Any]] = listener.heard
    return heard


def test_what_it_says(tmp_path: Path) -> None:
    heard = answered(tmp_path, 3)
    assert heard[0] == ("stage", ("reading", 0.0))
    assert heard[-1] == ("done", None)
    assert [content for event, content in heard if event == "result"] == [(5, False), (6, False)]
    shares = [content[1] for event, content in heard if event == "stage"]
    assert shares == sorted(shares)
    assert [step["index"] for event, step in heard if event == "iteration"] == [5, 5, 6, 6]
    for k in range(2):
        assert read_result(tmp_path / f"result{k}").flow.shape == (60, 80, 2)


def test_a_limit_of_the_memory(tmp_path: Path) -> None:
    heard = answered(tmp_path, memory=2 << 30)
    assert heard[-1] == ("done", None)
    folder = tmp_path / "result0"
    assert read_result(folder).flow.shape == (60, 80, 2)
    assert read_explanation(folder) is None
    (tmp_path / "again").mkdir()
    (event, sentence) = answered(tmp_path / "again", memory=1 << 20)[-1]
    assert event == "failed"
    assert sentence.startswith("max_memory is 1 MB, but 80×60 pixels")


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (MemoryError(), "There is not enough memory; use a smaller image or window"),
        (OSError(errno.ENOSPC, "No space left on device"), "The disk does not take the results"),
    ],
)
def test_what_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, message: str
) -> None:
    def failing(*_: Any) -> None:
        raise type(error)(*error.args)  # a new one, which does not keep what was in memory

    monkeypatch.setattr(worker, "write_result", failing)
    event, sentence = answered(tmp_path)[-1]
    assert event == "failed"
    assert message in sentence


def test_settings_of_the_user(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('preset = "realtime"\n[completion]\nmethod = "none"\n')
    registry = Registry(preset=str(path))
    try:
        names = list(registry.presets)
        assert names[:6] == ["mine", "fine", "balanced", "fast", "realtime", "paper"]
        assert registry.presets["mine"] == str(path)
    finally:
        registry.close()
    assert answered(tmp_path, preset=str(path))[-1] == ("done", None)


def test_winner_takes_all(tmp_path: Path) -> None:
    assert answered(tmp_path, preset="wta", window=16)[-1] == ("done", None)
    result, why = read_result(tmp_path / "result0"), read_explanation(tmp_path / "result0")
    assert result.backward is None
    assert why is not None
    pixel = why.pixel(40, 30)
    assert (pixel.u.slack, pixel.u.crf) == (None, None)
    labels = [curve.labels[curve.wta] for curve in (pixel.u, pixel.v)]
    assert result.flow[30, 40].tolist() == labels


@pytest.mark.parametrize("method", PEERS)
def test_methods_of_others(tmp_path: Path, method: str) -> None:
    heard = answered(tmp_path, 3, preset=method)
    assert heard[-1] == ("done", None)
    assert [content for event, content in heard if event == "result"] == [(5, False), (6, False)]
    result = read_result(tmp_path / "result1")
    images = [hamflow.read_image(tmp_path / f"{k}.png") for k in (1, 2)]
    assert (result.flow == Method(method)(*images).flow).all()
    assert read_explanation(tmp_path / "result1") is None
    low, high = result.flow.min(axis=(0, 1)), result.flow.max(axis=(0, 1))
    window = result.window
    assert window.contains(int(low[0]), int(low[1]))
    assert window.contains(int(high[0]), int(high[1]))


def test_images_of_two_sizes() -> None:
    with pytest.raises(hamflow.InputError, match="must have one size, but are 80×60 and 80×50"):
        worker.check_one_size(moving(2)[0], moving(2, height=50)[0])


def test_wrong_settings(tmp_path: Path) -> None:
    event, sentence = answered(tmp_path, preset="best")[-1]
    assert event == "failed"
    assert sentence.startswith("There is no preset 'best'")


@pytest.mark.parametrize("preset", ["realtime", "fast", "paper"])
def test_results_in_files(tmp_path: Path, preset: str) -> None:
    """With one direction and two, with and without a prior, with one word and two."""
    images = moving(2, height=100, width=110)
    estimator = Estimator(preset, window=16 if preset == "paper" else "auto", scale=1)
    result, explanation = estimator.explained(*images)
    write_result(tmp_path, result, explanation)
    found, why = read_result(tmp_path), read_explanation(tmp_path)
    for name, value in vars(result).items():
        same = getattr(found, name)
        assert np.array_equal(same, value) if isinstance(value, np.ndarray) else same == value
    assert why is not None
    for x, y in ((0, 0), (109, 99), (50, 50)):
        assert why.pixel(x, y).as_dict() == explanation.pixel(x, y).as_dict()


def test_a_result_without_explanation(tmp_path: Path) -> None:
    result, _ = Estimator("realtime").explained(*moving(2))
    write_result(tmp_path, result, None)
    assert read_explanation(tmp_path) is None
    assert not (tmp_path / WHY).exists()

"""The solver out of core has the bytes of the solver in memory."""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import hamflow
from _crf_problems import (
    KINDS,
    SEEDS,
    Problem,
    problems,
    random_labels,
    random_problem,
    random_unary,
    same_result,
    usual,
    with_phi,
)
from hamflow.crf import backend as backends
from hamflow.crf.backend import BACKENDS, load_backend
from hamflow.crf.streamed import StreamedBackend, StreamedVolume
from hamflow.errors import FileError
from hamflow.prior import Prior

SHAPES = ((1, 1), (1, 9), (8, 1), (5, 7), (13, 11), (4, 70))
WINDOWS = (
    (-2, 4, -1, 3),
    (-4, 7, 0, 1),
    (0, 1, -1, 3),
    (0, 1, 0, 1),
    (-1, 2, -16, 33),  # larger than the image
    (2, 3, 3, 4),  # without 0
    (-3, 2, -9, 4),
    (40, 3, 40, 4),  # every target outside
)


def streamed(problem: Problem, part: int, **arguments: Any) -> Any:
    """Solve out of core, with parts of at most so many bytes."""

    class Small(StreamedBackend):
        def __init__(self) -> None:
            super().__init__((part, part))

    # Found by its name, as others are.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(backends, "Small", Small, raising=False)
        patch.setitem(BACKENDS, "small", "hamflow.crf.backend:Small")
        return problem.with_config(backend="small").solve(**arguments)


def steps(result: Any) -> list[tuple[int, float, float]]:
    return [(step.iteration, step.bound, step.energy) for step in result.history]


def same(result: Any, expected: Any) -> bool:
    return same_result(result, expected) and steps(result) == steps(expected)


@settings(max_examples=60)
@given(
    problem=problems(),
    size=st.tuples(st.sampled_from(SHAPES), st.sampled_from(WINDOWS)),
    part=st.sampled_from([1, 150, 700, 5000]),
    seed=SEEDS,
    extra=st.tuples(st.booleans(), st.booleans(), st.booleans(), st.booleans()),
)
def test_same_bytes(
    problem: Problem,
    size: tuple[tuple[int, int], tuple[int, int, int, int]],
    part: int,
    seed: int,
    extra: tuple[bool, bool, bool, bool],
) -> None:
    floats, labels, costs, lam = extra
    rng = np.random.default_rng(seed)
    kind = KINDS[seed % 4]
    problem = replace(random_problem(rng, *size, kind, 1 + seed % 2), config=problem.config)
    if floats:
        problem = with_phi(problem, rng)
    arguments: dict[str, Any] = {}
    if labels:
        arguments["initial_labels"] = random_labels(rng, problem)
    if costs:
        arguments["unary"] = random_unary(problem, seed)
    if lam:
        arguments["initial_lam"] = problem.solve()
    assert same(streamed(problem, part, **arguments), problem.solve(**arguments))


@pytest.mark.parametrize("part", [1, 2000, 1 << 24])
def test_costs_of_a_prior_that_are_made_when_they_are_needed(part: int) -> None:
    problem, rng = usual(shape=(14, 17)), np.random.default_rng(0)
    flow = rng.uniform(-3, 3, (14, 17, 2)).astype(np.float32)
    prior = Prior(flow, rng.uniform(0, 20, (14, 17)).astype(np.float32))
    expected = problem.solve(unary=prior.unary(problem.window))
    assert same(streamed(problem, part, unary=prior.costs(problem.window)), expected)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_same_bytes_for_any_number_of_threads(threads: int) -> None:
    problem = random_problem(np.random.default_rng(1), (40, 70), (-6, 13, -5, 9))
    expected = problem.solve()
    hamflow.set_num_threads(threads)
    assert same(streamed(problem, 30_000), expected)
    assert same(problem.with_config(backend="streamed").solve(), expected)


def test_a_volume() -> None:
    volume, values = StreamedVolume((5, 7, 3), np.int16), np.arange(105, dtype=np.int16)
    assert not volume.rows(0, 5).any()
    volume.write_rows(0, values.reshape(5, 7, 3))
    volume.write_columns(2, -np.ones((5, 2, 3), np.int16))
    expected = values.reshape(5, 7, 3).copy()
    expected[:, 2:4] = -1
    assert (volume.rows(1, 4) == expected[1:4]).all()
    assert (volume.columns(1, 7) == expected[:, 1:]).all()
    mapped = volume.mapped()
    del volume
    assert (mapped == expected).all()


def test_no_file_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even while it is used, so that a killed process leaves none."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    seen: list[int] = []

    def interrupt(_: object) -> None:
        seen.append(len(list(tmp_path.iterdir())))
        raise KeyboardInterrupt

    problem = usual().with_config(backend="streamed")
    with pytest.raises(KeyboardInterrupt):
        problem.solve(pass_callback=interrupt)
    assert seen == [0]
    assert not list(tmp_path.iterdir())


def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(os, "posix_fallocate", refuse, raising=False)
    with pytest.raises(FileError, match="cannot hold a temporary file") as caught:
        usual().with_config(backend="streamed").solve()
    assert str(tmp_path) in str(caught.value)
    assert "set TMPDIR to another" in str(caught.value)


def test_a_broken_disk() -> None:
    volume = StreamedVolume((2, 3, 4), np.int16)
    volume._file.truncate(10)
    with pytest.raises(FileError, match=r"cannot use a temporary file \(ends at byte 10\)"):
        volume.rows(0, 2)


def test_it_has_a_name() -> None:
    assert isinstance(load_backend("streamed"), StreamedBackend)

"""One estimator for many threads, processes and the workers of a torch DataLoader."""

from __future__ import annotations

import multiprocessing
import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import hamflow
from _problems import fork_without_warning
from _route import SMALL, shifted

PAIRS = [shifted(dx, dy, 40, 56) for dx, dy in ((3, 2), (-4, 1), (5, -3), (0, 4))]


def flow_of(number: int) -> NDArray[np.float32]:
    return hamflow.estimate(*PAIRS[number % len(PAIRS)], preset=SMALL).flow


def test_sixteen_threads_on_one_estimator() -> None:
    hamflow.set_num_threads(2)
    estimator = hamflow.Estimator(SMALL)
    expected = [estimator.estimate(*pair) for pair in PAIRS]

    def work(number: int) -> bool:
        pair = number % len(PAIRS)
        found, wanted = estimator.estimate(*PAIRS[pair]), expected[pair]
        arrays = ("flow", "backward", "occlusion", "confidence")
        return all(np.array_equal(getattr(found, a), getattr(wanted, a)) for a in arrays)

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(work, range(32)))


def test_threads_that_change_the_number_of_threads() -> None:
    """It may change at any time; the bytes do not."""
    wanted = [flow_of(number).tobytes() for number in range(len(PAIRS))]

    def work(number: int) -> bool:
        hamflow.set_num_threads(1 + number % 3)
        return flow_of(number).tobytes() == wanted[number % len(PAIRS)]

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(24)))


def nested(number: int) -> list[bytes]:
    """Several threads in a process of several."""
    with ThreadPoolExecutor(3) as pool:
        return [flow.tobytes() for flow in pool.map(flow_of, range(number, number + 3))]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_threads_in_processes() -> None:
    expected = [nested(number) for number in range(3)]
    with fork_without_warning(), multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map_async(nested, range(3)).get(120) == expected


class Pairs:
    """A data set of torch that computes the flow of its pairs."""

    def __len__(self) -> int:
        return len(PAIRS)

    def __getitem__(self, index: int) -> Any:
        return flow_of(index)


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_torch_data_loader(start: str) -> None:
    """The workers estimate, while the main process has used its own threads before."""
    data = pytest.importorskip("torch.utils.data")
    if start not in multiprocessing.get_all_start_methods():
        pytest.skip(f"the system has no {start}")
    expected = np.stack([flow_of(index) for index in range(len(PAIRS))])
    loader = data.DataLoader(
        Pairs(), batch_size=2, num_workers=2, multiprocessing_context=start, timeout=120
    )
    with fork_without_warning():
        found = np.concatenate([batch.numpy() for batch in loader])
    assert np.array_equal(found, expected)

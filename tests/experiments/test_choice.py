"""The network of the choice in torch, for its training, is the one of the kernels."""

from __future__ import annotations

import numpy as np
import torch

from experiments.choice_network import FEATURES, FIELDS, ChoiceNetwork
from hamflow import _native
from hamflow.refinement._networks import network


def learned() -> ChoiceNetwork:
    torch.manual_seed(0)
    made = ChoiceNetwork()
    made.normalize(torch.randn(500, FEATURES) * 3 + 1)
    return made


def test_scores_are_those_of_the_kernels() -> None:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(4, FEATURES, 19, 33)).astype(np.float32)
    fields = rng.random((FIELDS, 19, 33)).astype(np.float32)
    made = learned()
    with torch.no_grad():
        expected = made(torch.from_numpy(features), torch.from_numpy(fields)).numpy()
    found = np.empty_like(expected)
    _native.score_in_context(features, fields, made.numbers(), found)
    assert np.allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_a_network_is_taught_further() -> None:
    made = learned()
    for numbers in (network("choice"), learned().numbers()):
        made.load(numbers)
        assert np.allclose(made.numbers(), numbers, rtol=1e-5, atol=1e-6)

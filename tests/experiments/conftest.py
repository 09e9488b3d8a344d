from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from _failing import failing_command
from _fits import QUICK
from _trees import save_pair
from experiments.cli.app import main
from experiments.fit_crf.fitting import FitResult, fit
from hamflow.datasets import demo_scene
from hamflow.datasets.folder import FolderDataset


@pytest.fixture
def fails(request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Run a command of the experiments that must fail with one sentence, and return that."""
    return failing_command(main, "python -m experiments", request, capsys)


@pytest.fixture(scope="session")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("pairs")
    for seed, name in enumerate(("group/one", "group/two", "three")):
        save_pair(root / name, demo_scene(72, 96, seed))
    return root


@pytest.fixture(scope="session")
def pairs(root: Path) -> FolderDataset:
    return FolderDataset(root).subset("group")


@pytest.fixture(scope="session")
def fitted(pairs: FolderDataset) -> FitResult:
    return fit(pairs, **QUICK)

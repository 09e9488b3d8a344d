from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import hamflow
from _failing import failing_command
from _submissions import kitti, sintel  # noqa: F401  (fixtures)
from _video_calls import calls  # noqa: F401  (a fixture)
from hamflow.cli.main import main

# Processes that run tests side by side must not each take all processors; this is read when the
# libraries are loaded, which is later. Tests of several threads ask for them.
if "PYTEST_XDIST_WORKER" in os.environ:
    for variable in ("HAMFLOW_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(variable, "1")

# How long an example takes says nothing on a machine that others share.
settings.register_profile("hamflow", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("hamflow")


@pytest.fixture(autouse=True)
def _restore_runtime() -> Iterator[None]:
    """Leave the only global state as every test found it."""
    isa, threads = hamflow.get_isa(), hamflow.get_num_threads()
    yield
    hamflow.set_isa(isa)
    hamflow.set_num_threads(threads)


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Let Ctrl-C and the end of the terminal reach this process and those that it starts.

    Tests that run in the background of a shell script, or under nohup, are told to ignore them, and
    what they start inherits that.
    """
    usual = {signal.SIGINT: signal.default_int_handler, signal.SIGHUP: signal.SIG_DFL}
    before = {number: signal.signal(number, action) for number, action in usual.items()}
    yield
    for number, action in before.items():
        signal.signal(number, action)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """An empty folder for what a command writes."""
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


@pytest.fixture
def fails(request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Run a command that must fail with one sentence, and return that."""
    return failing_command(main, "hamflow", request, capsys)

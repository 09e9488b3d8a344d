from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import settings

import hamflow

# How long an example takes says nothing on a machine that others share.
settings.register_profile("hamflow", deadline=None)
settings.load_profile("hamflow")


@pytest.fixture(autouse=True)
def _restore_runtime() -> Iterator[None]:
    """Leave the only global state as every test found it."""
    isa, threads = hamflow.get_isa(), hamflow.get_num_threads()
    yield
    hamflow.set_isa(isa)
    hamflow.set_num_threads(threads)

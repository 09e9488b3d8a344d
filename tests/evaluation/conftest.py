from __future__ import annotations

import pytest

from _browser import browser  # noqa: F401  (a fixture)
from hamflow.evaluation import Method, MethodConfig


@pytest.fixture
def method() -> Method:
    """A method that takes little time."""
    return Method(MethodConfig("wta-qq", model="pairs", window=16))

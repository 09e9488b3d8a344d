"""What the tests of flow files share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
from hypothesis import HealthCheck, settings
from numpy.typing import NDArray

from _trees import message_of
from hamflow.io import read_flow

fixture_is_fine = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
flows = hnp.arrays(
    np.float32,
    st.tuples(st.integers(1, 6), st.integers(1, 6), st.just(2)),
    elements=st.floats(-1e9, 1e9, width=32) | st.just(float("nan")),
)


def expected(flow: NDArray[Any]) -> NDArray[Any]:
    """The flow with both components unknown where one is."""
    copy = flow.copy()
    copy[np.isnan(flow).any(axis=2)] = np.nan
    return copy


def error_for(path: Path, content: bytes) -> str:
    """Return the one sentence that refuses this content."""
    path.write_bytes(content)
    return message_of(lambda: read_flow(path), path)

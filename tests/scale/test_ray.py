"""Batches on a Ray cluster of several nodes, of which workers, nodes and leaders are killed."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hamflow
from _batches import contents, harmful, killed_leader, times, write_frames
from hamflow.errors import InputError
from hamflow.scale.batch import BatchProgress

ray = pytest.importorskip("ray")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # of Ray's own code
]

DRIVER = """
import sys
import hamflow
from _batches import harmful
hamflow.batch(sys.argv[1], sys.argv[2], harmful(0.3), engine="ray", address=sys.argv[3])
"""
# Dead nodes are noticed sooner than by default.
QUICK = {
    "health_check_initial_delay_ms": 1000,
    "health_check_period_ms": 500,
    "health_check_timeout_ms": 2000,
    "health_check_failure_threshold": 2,
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A head and two further nodes, with one core each."""
    from ray.cluster_utils import Cluster  # noqa: PLC0415

    with pytest.MonkeyPatch.context() as patch:
        # The workers must find what the tests define.
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
        small = {"num_cpus": 1, "object_store_memory": 80 * 2**20, "include_dashboard": False}
        cluster = Cluster(True, head_node_args=small | {"_system_config": QUICK})
        try:
            for _ in range(2):
                cluster.add_node(**small)
            cluster.wait_for_nodes()
            yield cluster
        finally:
            cluster.shutdown()


def run(source: Path, out: Path, cluster: Any, **options: Any) -> hamflow.BatchReport:
    return hamflow.batch(source, out, engine="ray", address=cluster.address, **options)


def test_a_pair_that_hangs(tmp_path: Path, cluster: Any) -> None:
    frames = write_frames(tmp_path / "in", 6, hanging=(2,))
    report = run(frames, tmp_path / "out", cluster, preset=harmful(), timeout=8)
    assert report.failed == {"f02": "It took longer than the 8 seconds that a pair may take."}
    assert report.done == 4


def test_killed_worker_and_lost_node(tmp_path: Path, cluster: Any) -> None:
    """Neither loses a pair; a deadly one fails alone; all bytes are those of the local engine."""
    frames = write_frames(tmp_path / "in", 13, deadly=(5,))
    done: list[str] = []

    def trouble(progress: BatchProgress) -> None:
        done.append(progress.record.get("worker", ""))
        if len(done) == 3:
            os.kill(int(done[-1].rpartition(":")[2]), signal.SIGKILL)
        if len(done) == 5:
            cluster.remove_node(cluster.list_all_nodes()[-1], allow_graceful=False)

    report = run(frames, tmp_path / "out", cluster, preset=harmful(0.2), progress=trouble)
    assert list(report.failed) == ["f05"]
    assert "died of this pair 2 times" in report.failed["f05"]
    assert report.done == 11
    assert len(set(done) - {""}) >= 3  # actors, of which each loads the model once
    assert hamflow.batch(frames, tmp_path / "local", harmful(), workers=2).done == 11
    assert contents(tmp_path / "out") == contents(tmp_path / "local")


def test_killed_leader(tmp_path: Path, cluster: Any) -> None:
    """Starting again finishes the rest, and does nothing again that was recorded."""
    frames, out = write_frames(tmp_path / "in", 10), tmp_path / "out"
    records, before = killed_leader(DRIVER, str(frames), str(out), cluster.address, out=out)
    report = run(frames, out, cluster, preset=harmful(0.3))
    assert (report.known, report.done) == (len(records), 9 - len(records))
    assert report.failed == {}
    after = times(out)
    assert {name: after[name] for name in before} == before
    assert len(after) == 9


def test_ray_data(tmp_path: Path, cluster: Any) -> None:
    from hamflow.scale.ray import estimate_dataset  # noqa: PLC0415

    frames = [str(path) for path in sorted(write_frames(tmp_path, 3).iterdir())]
    (tmp_path / "broken.png").write_bytes(b"broken")
    images = [hamflow.read_image(path) for path in frames]
    ray.init(cluster.address, log_to_driver=False, logging_level="ERROR")
    try:
        ray.data.DataContext.get_current().enable_progress_bars = False
        paths = [
            {"image0": frames[0], "image1": frames[1]},
            {"image0": frames[0], "image1": str(tmp_path / "broken.png")},
        ]
        found = estimate_dataset(
            ray.data.from_items(paths), "fast", model="pairs", workers=1, outputs=("flow",)
        ).take_all()
        arrays = ray.data.from_items([{"image0": images[0], "image1": images[1]}])
        of_arrays = estimate_dataset(
            arrays, "fast", model="pairs", workers=1, outputs=("flow", "occlusion")
        ).take_all()
        with pytest.raises(InputError, match="outputs must be some of flow"):
            estimate_dataset(arrays, outputs=("depth",))
    finally:
        ray.shutdown()
    expected = hamflow.estimate(*images[:2], preset="fast", model="pairs")
    good, bad = sorted(found, key=lambda row: row["error"])
    np.testing.assert_array_equal(good["flow"], expected.flow)
    assert good["gap"] == expected.gap
    assert bad["flow"].shape == (0, 0, 2)
    assert "broken.png: is not an image" in bad["error"]
    np.testing.assert_array_equal(of_arrays[0]["flow"], expected.flow)
    np.testing.assert_array_equal(of_arrays[0]["occlusion"], expected.occlusion)


def test_no_cluster(tmp_path: Path) -> None:
    frames = write_frames(tmp_path / "in", 2)
    with pytest.raises(InputError, match="There is no Ray cluster at 'nonsense'"):
        hamflow.batch(frames, tmp_path / "out", harmful(), engine="ray", address="nonsense")

"""The engine of Ray, for clusters, and flow for data that are in Ray Data already.

This needs the extra ``ray``. The cluster's machines need Hamflow in the same version.
"""

from __future__ import annotations

import os
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import ray
from numpy.typing import NDArray

from hamflow._processes import usable_cores
from hamflow._runtime import set_num_threads
from hamflow.config import EstimatorConfig
from hamflow.errors import HamflowError, InputError
from hamflow.estimator import Auto, Estimator
from hamflow.io import read_image
from hamflow.io._reading import reason
from hamflow.result import FlowResult
from hamflow.scale import storage
from hamflow.scale.engine import Died, Event, Finished, Ready
from hamflow.scale.pairs import ImagePair
from hamflow.scale.worker import Record, Work, Worker
from hamflow.window import WindowLike

if TYPE_CHECKING:
    from ray.data import Dataset

_LOCAL = "local"  # Ray's word for a cluster that consists of this machine and ends with the program


class RayEngine:
    """Actors on a Ray cluster, each with one worker that has loaded the model.

    Parameters
    ----------
    work : Work
        What to do.
    pairs : int
        How many pairs there are: no more actors than that are started.
    workers : int or None
        How many actors; by default as many as the cluster has cores for now. More wait until
        machines join the cluster.
    threads : int
        The cores that each actor takes.
    address : str or None
        That of a running cluster; by default that of the environment variable RAY_ADDRESS, or
        else Ray is started on this machine.
    """

    def __init__(
        self, work: Work, pairs: int, workers: int | None, threads: int, address: str | None
    ) -> None:
        self._own = not ray.is_initialized()
        if self._own:
            _connect(address or os.environ.get("RAY_ADDRESS") or _LOCAL, (workers or 1) * threads)
        cores = int(ray.cluster_resources().get("CPU", 0))
        self.slots = min(workers or max(1, cores // threads), pairs)
        self._threads = threads
        self._work = ray.put(work)
        self._actors: dict[int, Any] = {}
        self._nodes: dict[int, str] = {}
        self._under_way: dict[Any, int] = {}  # slots by what is awaited from them

    def start(self, slot: int) -> None:
        """Have an actor started, as soon as the cluster has a place for it."""
        # Not restarted by Ray: it would not be known which pairs it died of.
        options = {"num_cpus": self._threads, "max_restarts": 0, "scheduling_strategy": "SPREAD"}
        actor = ray.remote(_Actor).options(**options).remote(self._work, self._threads)
        self._actors[slot] = actor
        self._under_way[actor.ready.remote()] = slot

    def send(self, slot: int, pair: ImagePair) -> None:
        """Give a pair to an actor."""
        self._under_way[self._actors[slot].estimate.remote(pair)] = slot

    def wait(self, seconds: float | None) -> list[Event]:
        """Wait for results, and for the end of actors."""
        awaited = list(self._under_way)
        ray.wait(awaited, num_returns=1, timeout=seconds)
        done, _ = ray.wait(awaited, num_returns=len(awaited), timeout=0)
        return [self._event(self._under_way.pop(reference), reference) for reference in done]

    def stop(self, slot: int) -> None:
        """Kill an actor."""
        ray.kill(self._actors[slot])
        self._under_way = {ref: k for ref, k in self._under_way.items() if k != slot}

    def _event(self, slot: int, reference: Any) -> Event:
        try:
            answer = ray.get(reference)
        except ray.exceptions.RayError as error:
            ray.kill(self._actors[slot])  # it may only be out of reach
            return Died(slot, f"Ray says: {reason(error)}", self._innocent(slot, error))
        if isinstance(answer, HamflowError):
            raise answer
        if isinstance(answer, str):
            self._nodes[slot] = answer
            return Ready(slot)
        return Finished(slot, answer)

    def _innocent(self, slot: int, error: Exception) -> bool:
        """Return whether an actor died because its machine is gone or out of reach."""
        if isinstance(error, ray.exceptions.ActorUnavailableError):
            return True
        alive = {node["NodeID"] for node in ray.nodes() if node["Alive"]}
        return slot in self._nodes and self._nodes[slot] not in alive

    def close(self) -> None:
        """End all actors, and Ray if it was started for them."""
        for actor in self._actors.values():
            ray.kill(actor)
        self._actors, self._under_way = {}, {}
        if self._own:
            ray.shutdown()


class _Actor:
    """A worker on some machine of the cluster."""

    def __init__(self, work: Work, threads: int) -> None:
        self._worker: Worker | HamflowError
        try:
            self._worker = Worker(work, threads, threads / max(threads, usable_cores()))
        except HamflowError as error:  # would be the same in every actor
            self._worker = error

    def ready(self) -> str | HamflowError:
        """Return the machine, once the model is loaded; or what is wrong."""
        if isinstance(self._worker, HamflowError):
            return self._worker
        return str(ray.get_runtime_context().get_node_id())

    def estimate(self, pair: ImagePair) -> Record:
        """Estimate and write a pair."""
        assert isinstance(self._worker, Worker)
        return self._worker(pair)


def _connect(address: str, cores: int) -> None:
    # A program that estimates flow does not report to anybody.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    if address == _LOCAL:
        options |= {"num_cpus": max(cores, usable_cores()), "include_dashboard": False}
    try:
        ray.init(address, **options)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise InputError(
            f"There is no Ray cluster at {address!r} ({reason(error)}); check --address, or start "
            "one with ray start --head."
        ) from error


def estimate_dataset(
    dataset: Dataset,
    preset: str | os.PathLike[str] | EstimatorConfig = "balanced",
    *,
    window: WindowLike | Auto = "auto",
    scale: int | None = None,
    model: str | None = None,
    columns: tuple[str, str] = ("image0", "image1"),
    outputs: tuple[str, ...] = ("flow",),
    workers: int | tuple[int, int] | None = None,
    threads: int = 1,
    batch_size: int = 4,
) -> Dataset:
    """Add the flow to each row of a data set of Ray Data, by a pool of actors.

    Parameters
    ----------
    dataset : ray.data.Dataset
        Each row has two images: arrays as `hamflow.estimate` takes them, encoded images as bytes,
        or paths or URLs.
    preset, window, scale, model
        As for `hamflow.Estimator`.
    columns : (str, str)
        The names of the columns of the first and the second image.
    outputs : tuple of str
        The columns to add: "flow", "backward", "occlusion" and "confidence", as in `FlowResult`.
    workers : int or (int, int), optional
        How many actors, or the fewest and the most; by default from 1 to as many as there are
        cores in the cluster.
    threads : int
        The cores that each actor takes.
    batch_size : int
        How many rows an actor gets at once.

    Returns
    -------
    dataset : ray.data.Dataset
        It is computed when it is used. The column "gap" has the duality gap, NaN if there is none.
        A row that cannot be estimated has the reason in the column "error", which is otherwise
        empty, and arrays of the size 0×0.

    Notes
    -----
    From a table of paths to a folder of Parquet files::

        rows = ray.data.read_csv("s3://bucket/pairs.csv")
        flows = estimate_dataset(rows, "fast")
        flows.drop_columns(["image0", "image1"]).write_parquet("s3://bucket/flows")
    """
    for name in outputs:
        if name not in _EMPTY:
            raise InputError(f"outputs must be some of {', '.join(_EMPTY)}, not {name!r}.")
    estimator = Estimator(preset, window=window, scale=scale, model=model)
    if workers is None:
        workers = (1, max(1, int(ray.cluster_resources().get("CPU", 1)) // threads))
    bounds = (workers, workers) if isinstance(workers, int) else workers
    return dataset.map_batches(
        _FlowOfRows,
        fn_constructor_args=(ray.put(estimator), columns, outputs, threads),
        batch_size=batch_size,
        compute=ray.data.ActorPoolStrategy(min_size=bounds[0], max_size=bounds[1]),
        num_cpus=threads,
    )


_EMPTY = {
    "flow": np.zeros((0, 0, 2), np.float32),
    "backward": np.zeros((0, 0, 2), np.float32),
    "occlusion": np.zeros((0, 0), np.bool_),
    "confidence": np.zeros((0, 0), np.float32),
}


class _FlowOfRows:
    """What each actor of `estimate_dataset` does."""

    def __init__(
        self, estimator: Any, columns: tuple[str, str], outputs: tuple[str, ...], threads: int
    ) -> None:
        set_num_threads(threads)
        self._estimator: Estimator = ray.get(estimator)
        self._columns, self._outputs = columns, outputs

    def __call__(self, rows: dict[str, NDArray[Any]]) -> dict[str, Any]:
        found = [
            self._estimate(first, second)
            for first, second in zip(*(rows[column] for column in self._columns), strict=True)
        ]
        added: dict[str, Any] = {
            "gap": np.array([gap for _, gap, _ in found], np.float64),
            "error": np.array([error for _, _, error in found], np.object_),
        }
        for name in self._outputs:
            values = [_EMPTY[name] if r is None else getattr(r, name) for r, _, _ in found]
            added[name] = _stacked(values)
        return {**rows, **added}

    def _estimate(self, first: Any, second: Any) -> tuple[FlowResult | None, float, str]:
        try:
            result = self._estimator.estimate(_image(first), _image(second))
        except (HamflowError, MemoryError) as error:
            return None, np.nan, str(error)
        gap = np.nan if result.gap is None else result.gap
        return result, gap, ""


def _image(value: Any) -> Any:
    """Return an image from its array, its encoded bytes, or its path or URL."""
    if isinstance(value, str):
        with storage.local_copy(storage.plain(value)) as path:
            return read_image(path)
    if isinstance(value, bytes):
        with TemporaryDirectory(prefix="hamflow-") as folder:
            path = os.path.join(folder, "image")
            with open(path, "wb") as file:
                file.write(value)
            return read_image(path)
    return value


def _stacked(arrays: list[NDArray[Any]]) -> NDArray[Any]:
    """Return arrays as one, whose entries are arrays if their sizes differ."""
    if len({array.shape for array in arrays}) == 1:
        return np.stack(arrays)
    result = np.empty(len(arrays), np.object_)
    for number, array in enumerate(arrays):
        result[number] = array
    return result

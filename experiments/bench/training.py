"""``bench training``: measure the parts of a training step, the loop, and the memory."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils import clip_grad_norm_

from experiments.bench._measure import ROOT, StepProgress, seconds
from hamflow._memory import peak_memory
from hamflow._runtime import get_num_threads, machine, set_num_threads
from hamflow.datasets.synthetic import SyntheticConfig
from hamflow.descriptors.architecture import Architecture
from hamflow.errors import InputError
from hamflow.learning.allocator import keep_freed_memory
from hamflow.learning.augment import Sample
from hamflow.learning.config import DataConfig, Scheme, TrainConfig, config_of, config_values
from hamflow.learning.data import TrainingPairs, as_tensor
from hamflow.learning.loop import Step, train
from hamflow.learning.loss import Truth, matching_loss
from hamflow.learning.matching import project
from hamflow.learning.network import build_network
from hamflow.window import Window

FULL_SIZE = (436, 1024)
"""Height and width of Sintel's frames, for the memory of a step."""

SCENES = 4
_WARM_UP = 2  # first steps of the loop, not counted: workers start, memory is allocated


def bench_config(layers: int, size: tuple[int, int], d: int, model: Scheme) -> TrainConfig:
    """Return the training whose steps are measured: default settings on scenes of one size."""
    height, width = size
    return TrainConfig(
        network=Architecture(layers=layers),
        model=model,
        window=d,
        data=DataConfig(synthetic=SyntheticConfig(height=height, width=width)),
        validation_pairs=0,
        bootstrap=0.0,
    )


def run(
    config: TrainConfig,
    rounds: int,
    loop_steps: int,
    *,
    memory: bool = False,
    progress: StepProgress = lambda step: None,
) -> dict[str, Any]:
    """Return all measurements, in the form that ``--json`` writes.

    Parameters
    ----------
    config : TrainConfig
        The training, as `bench_config` returns it.
    rounds : int
        Repetitions of the step's parts; the best times count.
    loop_steps : int
        Steps of the training loop to measure, after a few that are not counted.
    memory : bool
        Also measure the memory of a step at full resolution, in another process.
    progress : callable
        Called with the name of each step when it begins.
    """
    synthetic = config.data.synthetic
    report: dict[str, Any] = {
        "machine": machine() | {"torch": torch.__version__, "threads": torch.get_num_threads()},
        "width": synthetic.width,
        "height": synthetic.height,
        "d": config.window,
        "layers": config.network.layers,
        "model": config.model,
    }
    threads = get_num_threads()
    set_num_threads(torch.get_num_threads())  # the training loop calls both functions, too
    keep_freed_memory()
    try:
        progress("scenes")
        scenes, rendering = _rendered(config)
        parts = _Parts(config, scenes)
        best: dict[str, float] = {}
        for _ in range(rounds):
            progress("a step in parts")
            for name, time in parts.timed():
                best[name] = min(time, best.get(name, time))
        report["seconds"] = best | {"rendering a scene": rendering}
        progress("the loop")
        report["loop"] = _looped(config, loop_steps)
    finally:
        set_num_threads(threads)
    report["ratios"] = _ratios(best, rendering, report["loop"])
    if memory:
        progress("memory of a step at full resolution")
        report["memory"] = _memory(config)
    return report


def _rendered(config: TrainConfig) -> tuple[list[Sample], float]:
    """Return some scenes, and the mean time to render one."""
    pairs = TrainingPairs(config)
    scenes: list[Sample] = []
    time = seconds(lambda: scenes.extend(pairs[number] for number in range(SCENES)))
    return scenes, time / SCENES


class _Parts:
    """One training step, divided into its parts."""

    def __init__(self, config: TrainConfig, scenes: list[Sample]) -> None:
        self._config = config
        self._sample = scenes[0]
        self._images = as_tensor([self._sample.image0, self._sample.image1])
        torch.manual_seed(config.seed)
        self._network = build_network(config.network)
        self._network.initialize(as_tensor([scene.image0 for scene in scenes]))
        self._optimizer = torch.optim.Adam(self._network.parameters(), lr=1e-4)

    def timed(self) -> Iterator[tuple[str, float]]:
        """Take the step; generate the seconds of each part."""
        config, window = self._config, Window.of(self._config.window)
        truth = Truth.of(self._sample.flow, window, self._sample.occluded)
        self._optimizer.zero_grad(set_to_none=True)
        held: dict[str, Any] = {}

        def forward(name: str, work: Callable[[], object]) -> tuple[str, float]:
            return f"{name} forward", seconds(lambda: held.update({name: work()}))

        yield forward("CNN", lambda: self._network(self._images))
        phi = _leaf(held["CNN"])
        yield forward(
            "matching",
            lambda: project(*phi.unbind(), window, config.model, outside=config.outside),  # type: ignore[misc, arg-type]
        )
        costs = [_leaf(cost) for cost in held["matching"]]
        yield forward("loss", lambda: matching_loss(costs[0], costs[1], truth))

        yield "loss backward", seconds(held["loss"].backward)
        grads = [cost.grad for cost in costs]
        matched = held["matching"]
        yield "matching backward", seconds(lambda: torch.autograd.backward(matched, grads))
        yield "CNN backward", seconds(lambda: held["CNN"].backward(phi.grad))

        def optimize() -> None:
            clip_grad_norm_(self._network.parameters(), config.clip)
            self._optimizer.step()

        yield "optimizer", seconds(optimize)


def _leaf(tensor: Tensor) -> Tensor:
    return tensor.detach().requires_grad_()


def _looped(config: TrainConfig, count: int) -> dict[str, Any]:
    """Run the training loop for a few steps; its worker renders the scenes meanwhile."""
    seen: list[Step] = []
    with tempfile.TemporaryDirectory(prefix="hamflow-") as folder:
        train(replace(config, steps=_WARM_UP + count), Path(folder, "run"), callback=seen.append)
    counted = seen[_WARM_UP:]
    total, waited = sum(step.seconds for step in counted), [step.waited for step in counted]
    return {
        "steps": count,
        "workers": config.workers,
        "steps per second": count / total,
        "seconds per step": total / count,
        "seconds waited per step": sum(waited) / count,
        "longest wait": max(waited),
    }


def _ratios(times: dict[str, float], rendering: float, loop: dict[str, Any]) -> dict[str, float]:
    """Compare the parts with each other."""

    def both(name: str) -> float:
        return times[f"{name} forward"] + times[f"{name} backward"]

    return {
        "matching / CNN": both("matching") / both("CNN"),
        "loss / CNN": both("loss") / both("CNN"),
        "rendering a scene / step": rendering / loop["seconds per step"],
        "waiting for data / step": loop["seconds waited per step"] / loop["seconds per step"],
    }


def _memory(config: TrainConfig) -> dict[str, Any]:
    """Return the largest memory of a process that takes two steps at full resolution."""
    height, width = FULL_SIZE
    synthetic = replace(config.data.synthetic, height=height, width=width)
    data = replace(config.data, synthetic=synthetic)
    full = replace(config, steps=2, data=data, workers=0)
    done = subprocess.run(
        [sys.executable, "-m", __spec__.name],
        input=json.dumps(config_values(full)),
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    if done.returncode:
        reason = (done.stderr.strip() or f"exit code {done.returncode}").splitlines()[-1]
        raise InputError(
            f"The process that measures the memory failed ({reason}); try without --memory."
        )
    peak: dict[str, Any] = json.loads(done.stdout)
    return {"width": width, "height": height, **peak}


def _measure_memory() -> None:
    """Train with the settings on the standard input; print the peak memory of this process."""
    config = config_of(json.load(sys.stdin))
    before = peak_memory()
    with tempfile.TemporaryDirectory(prefix="hamflow-") as folder:
        train(config, Path(folder, "run"))
    print(json.dumps({"peak bytes": peak_memory(), "peak bytes before": before}))


if __name__ == "__main__":
    _measure_memory()

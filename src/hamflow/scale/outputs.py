"""The files that ``pair``, ``video`` and ``batch`` can write of a result."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import hamflow
from hamflow.config import EstimatorConfig
from hamflow.errors import InputError
from hamflow.io import check_flow_path, write_flow, write_image
from hamflow.io._atomic import atomic_write, check_writable
from hamflow.io._text import write_json
from hamflow.io.images import check_image_path
from hamflow.result import FlowResult

if TYPE_CHECKING:
    from hamflow.estimator import Estimator


@dataclass(frozen=True)
class Output:
    """One kind of file."""

    write: Callable[[Path, FlowResult], None]
    flow: bool = False  # a flow file; otherwise a picture
    values: bool = False  # a picture, or its values (.npy)
    bidirectional: bool = True  # needs the flow in both directions
    suffix: str = ".png"  # of files that are not flow files

    def check(self, path: Path) -> None:
        """Raise at once the FileError that writing to this path would raise."""
        if self.flow:
            check_flow_path(path)
        elif self.values and path.suffix.lower() == ".npy":
            check_writable(path)
        else:
            check_image_path(path)


def _write_backward(path: Path, result: FlowResult) -> None:
    assert result.backward is not None
    write_flow(path, result.backward)


def _write_occlusion(path: Path, result: FlowResult) -> None:
    assert result.occlusion is not None
    _write_mask(path, result.occlusion)


def _write_confidence(path: Path, result: FlowResult) -> None:
    assert result.confidence is not None
    _write_mask(path, result.confidence)


def _write_mask(path: Path, values: NDArray[Any]) -> None:
    """Write the values themselves (.npy), or a picture of them."""
    if path.suffix.lower() != ".npy":
        write_image(path, values)
        return
    with atomic_write(path) as file:
        np.lib.format.write_array(file, values, version=(1, 0), allow_pickle=False)


OUTPUTS = {
    "--output": Output(lambda path, result: result.save(path), flow=True, bidirectional=False),
    "--viz": Output(
        # With a key, because every picture has a scale of its own.
        lambda path, result: write_image(path, result.to_color(key=True)),
        bidirectional=False,
    ),
    "--backward": Output(_write_backward, flow=True),
    "--occlusion": Output(_write_occlusion, values=True),
    "--confidence": Output(_write_confidence, values=True),
    "--json": Output(
        lambda path, result: write_json(path, result.summary()),
        bidirectional=False,
        suffix=".json",
    ),
}
"""The kinds of files by the options that ask for them."""


def check_directions(options: Iterable[str], config: EstimatorConfig, preset: str) -> None:
    """Raise an InputError if an output needs both directions and the preset computes only one."""
    for option in options:
        if OUTPUTS[option].bidirectional and not config.bidirectional:
            raise InputError(
                f"{option} needs the flow in both directions, but the preset {preset} computes "
                "one; choose another preset, or set bidirectional = true in a TOML file."
            )


def estimator_settings(estimator: Estimator) -> dict[str, Any]:
    """Return what the files of a pair depend on, apart from its images, ready for JSON."""
    limit = {} if estimator.max_memory is None else {"max_memory": estimator.max_memory}
    return {
        **estimator.config.tables(),
        **limit,
        "window": "auto" if estimator.window is None else estimator.window.as_tuple(),
        "version": hamflow.__version__,
        **estimator.fingerprints,
    }

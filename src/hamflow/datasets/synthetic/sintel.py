"""Data sets of synthetic scenes on the disk, in the layout of MPI-Sintel.

::

    ROOT/run.jsonl                                   log: the settings and all files
    ROOT/training/clean/SCENE/frame_0001.png         without effects
                              frame_0002.png
    ROOT/training/final/SCENE/...                    the same with effects
    ROOT/training/flow/SCENE/frame_0001.flo
    ROOT/training/occlusions/SCENE/frame_0001.png    white: occluded
    ROOT/training/invalid/SCENE/frame_0001.png       white: not to be evaluated (nowhere)
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hamflow._resume import WorkLog
from hamflow.datasets.synthetic._workers import run
from hamflow.datasets.synthetic.config import SyntheticConfig
from hamflow.datasets.synthetic.scene import SyntheticDataset
from hamflow.errors import InputError
from hamflow.io import write_flow, write_image
from hamflow.io._atomic import make_folder
from hamflow.io._identity import file_record

_VERSION = 1  # to be increased when a seed gives other scenes


@dataclass(frozen=True)
class SetReport:
    """How many scenes `write_sintel` wrote, and how many were complete before."""

    written: int
    known: int


def write_sintel(
    root: str | os.PathLike[str],
    config: SyntheticConfig,
    count: int,
    *,
    folder: str | os.PathLike[str] | None = None,
    seed: int = 0,
    workers: int = 1,
    overwrite: bool = False,
    callback: Callable[[int, int], None] | None = None,
) -> SetReport:
    """Write scenes in Sintel's layout.

    The scenes are those of `SyntheticDataset`, in the same order. Complete ones are not written
    again, so an interrupted call can be repeated, and a larger `count` extends a set. Scenes with
    files that are missing or were changed are rendered again.

    Parameters
    ----------
    root : str or os.PathLike
        The folder of the set, which is created if it does not exist.
    config : SyntheticConfig
        The settings of the scenes. With `config.clean` there is no folder ``final``.
    count : int
        How many scenes the set will have.
    folder : str or os.PathLike, optional
        Photographs, as in `load_textures`.
    seed : int
        Another seed gives other scenes.
    workers : int
        How many processes render. A script that uses more than one needs the usual
        ``if __name__ == "__main__":``.
    overwrite : bool
        Start again, and remove the scenes of an earlier set in that folder.
    callback : callable, optional
        Called with the number of complete scenes and `count`, first before any is rendered.

    Raises
    ------
    FileError
        If a photograph cannot be read or a file cannot be written, if the folder holds other files
        or a set with other settings, or if another process is writing it.
    """
    for name, value in (("count", count), ("workers", workers)):
        if value < 1:
            raise InputError(f"{name} must be at least 1, but is {value}.")
    base = Path(root)
    dataset = SyntheticDataset(config, folder, seed, count)
    settings = _settings(config, seed, dataset.textures.fingerprint())
    job = _Job(base, config, dataset)
    with WorkLog.in_folder(base, "synthetic set", overwrite=overwrite) as log:
        log.begin(settings)
        missing = [number for number in range(count) if log.find(_name(number)) is None]
        known = count - len(missing)
        if callback is not None:
            callback(known, count)
        # Closed, so that all workers have ended when this function has.
        with closing(run(job, missing, min(workers, len(missing)))) as finished:
            for done, (number, files) in enumerate(finished, start=known + 1):
                log.add(_name(number), files=files)
                if callback is not None:
                    callback(done, count)
    return SetReport(len(missing), known)


def _settings(config: SyntheticConfig, seed: int, photographs: str) -> dict[str, Any]:
    return {"version": _VERSION, "seed": seed, "photographs": photographs, **asdict(config)}


def _name(number: int) -> str:
    return f"scene_{number:05d}"


class _Job:
    """Renders and writes one scene after another, in any process."""

    def __init__(self, base: Path, config: SyntheticConfig, dataset: SyntheticDataset) -> None:
        self._base = base
        self._clean = config.clean
        self._dataset = dataset
        self._passes = ("clean",) if config.clean else ("clean", "final")

    def prepare(self) -> None:
        """Read the photographs, which are not sent to another process."""
        self._dataset.textures  # noqa: B018

    def _paths(self, number: int) -> dict[str, str]:
        scene = _name(number)
        paths = {
            f"{name}{frame}": f"{name}/{scene}/frame_{frame + 1:04d}.png"
            for name in self._passes
            for frame in range(2)
        }
        paths |= {name: f"{name}/{scene}/frame_0001.png" for name in ("occlusions", "invalid")}
        paths["flow"] = f"flow/{scene}/frame_0001.flo"
        return {name: f"training/{path}" for name, path in paths.items()}

    def __call__(self, number: int) -> dict[str, dict[str, Any]]:
        """Render a scene and write its files; return the `file_record` of each."""
        data = self._dataset
        scenes = (data[number],) if self._clean else data.both(number)
        images: dict[str, NDArray[Any]] = {
            f"{name}{frame}": image
            for name, scene in zip(self._passes, scenes, strict=True)
            for frame, image in enumerate((scene.image0, scene.image1))
        }
        occluded = scenes[0].occluded
        images |= {"occlusions": occluded, "invalid": np.zeros_like(occluded)}
        files = {}
        for name, file in self._paths(number).items():
            path = self._base / file
            make_folder(path.parent)
            if name == "flow":
                write_flow(path, scenes[0].flow)
            else:
                write_image(path, images[name])
            files[file] = file_record(path)
        return files

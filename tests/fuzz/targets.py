"""What is fuzzed: each reader, its seeds, and how much memory it may take."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import hamflow
from fuzz import seeds
from hamflow import FlowResult
from hamflow._resume import WorkLog, read_log
from hamflow.config import preset_config
from hamflow.crf.config import CrfConfig
from hamflow.descriptors.model import load_model
from hamflow.errors import HamflowError
from hamflow.evaluation.comparison import compare, read_evaluation
from hamflow.io.sources import open_source
from hamflow.io.video import open_frames
from hamflow.learning.config import read_config
from hamflow.motion.tracks import read_points
from hamflow.scale.manifest import read_table

MEGABYTE = 2**20
_FRAMES = 4  # of a video


class Target(NamedTuple):
    """A reader."""

    suffix: str
    read: Callable[[Path], Any]
    seeds: Callable[[], Iterable[bytes]]
    memory: int
    """Bytes that reading a file of up to `LONGEST` bytes may take.

    What deflate makes of a file is 1032 times as long, and it is held up to three times. The
    pictures of a small file can have 2^27 pixels without that.
    """


LONGEST = 2**16
"""Bytes of a fuzzed file."""
_SMALL, _LARGE = 256 * MEGABYTE, 3072 * MEGABYTE


def _settings(path: Path) -> None:
    for read in (preset_config, read_config, CrfConfig().updated):
        try:
            read(path)
        except HamflowError:
            continue


def _video(path: Path) -> None:
    frames = open_frames(path)
    with frames.read() as reader:
        _some_frames(reader)


def _stream(path: Path) -> None:
    with open_frames(io.BytesIO(path.read_bytes())).read() as reader:
        _some_frames(reader)


def _continued(path: Path) -> None:
    """Go on with the work of a log, as each long command does."""
    settings, records = read_log(path, "evaluation")
    with WorkLog(path, "evaluation") as log:
        log.begin(settings)
        for record in records:
            log.find(record["key"], "source")


def _compared(path: Path) -> None:
    """Compare an evaluation with itself, as ``hamflow compare`` does with two."""
    evaluations = [read_evaluation(path, label) for label in ("first", "second")]
    assert json.dumps(compare(evaluations, resamples=100).as_json())


def _parts(path: Path) -> None:
    """Read the corners of an image of any size, as large images are read part by part."""
    source = open_source(path)
    for rows in (slice(0, 32), slice(-32, None)):
        for columns in (slice(0, 32), slice(-32, None)):
            source.read(rows, columns)


def _curve(path: Path) -> None:
    from hamflow.learning.log import read_curve  # noqa: PLC0415  (torch is slow to import)

    read_curve(path)


def _checkpoint(path: Path) -> None:
    from hamflow.learning.state import read_state  # noqa: PLC0415

    read_state(path)


def _some_frames(reader: Any) -> None:
    for _ in range(_FRAMES):
        try:
            next(reader)
        except StopIteration:
            return
        except HamflowError:
            continue


TARGETS = {
    "flo": Target(".flo", hamflow.read_flow, lambda: seeds.flow_files(".flo"), _SMALL),
    "kitti": Target(".png", hamflow.read_flow, lambda: seeds.flow_files(".kitti.png"), _SMALL),
    "pfm": Target(".pfm", hamflow.read_flow, lambda: seeds.flow_files(".pfm"), _SMALL),
    "flo5": Target(".flo5", hamflow.read_flow, seeds.flo5_files, _SMALL),
    "npy": Target(".npy", hamflow.read_flow, seeds.numpy_files, _SMALL),
    "npz": Target(".npz", hamflow.read_flow, lambda: seeds.flow_files(".npz"), _SMALL),
    "tiff": Target(".tif", hamflow.read_flow, seeds.tiff_flow_files, _SMALL),
    "result": Target(".npz", FlowResult.load, seeds.result_files, _SMALL),
    "image": Target(".png", hamflow.read_image, seeds.image_files, _LARGE),
    "png16": Target(".png", hamflow.read_image, seeds.png16_files, _LARGE),
    "part": Target(".tif", _parts, seeds.part_files, _LARGE),
    "array": Target(".npy", _parts, seeds.array_files, _SMALL),
    "video": Target(".mp4", _video, seeds.video_files, _LARGE),
    "stream": Target(".bin", _stream, seeds.stream_files, _LARGE),
    "settings": Target(".toml", _settings, seeds.settings_files, _SMALL),
    "network": Target(".safetensors", load_model, seeds.network_files, _SMALL),
    "table": Target(".csv", lambda path: read_table(str(path)), seeds.table_files, _SMALL),
    "parquet": Target(".parquet", lambda path: read_table(str(path)), seeds.parquet_files, _LARGE),
    "points": Target(".csv", read_points, seeds.points_files, _SMALL),
    "curve": Target(".csv", _curve, seeds.curve_files, _SMALL),
    "log": Target(".jsonl", _continued, seeds.log_files, _SMALL),
    "evaluation": Target(".jsonl", _compared, seeds.evaluation_files, _SMALL),
    "checkpoint": Target(".safetensors", _checkpoint, seeds.checkpoint_files, _SMALL),
}
"""All readers by name."""


def check(target: Target, path: Path, data: bytes) -> bool:
    """Read a file of this content; return whether it was accepted.

    Any other exception than Hamflow's, in one sentence, is a failure, a MemoryError as well.
    """
    path.write_bytes(data)
    try:
        target.read(path)
    except HamflowError as error:
        message = str(error)
        assert message, "an error without a message"
        assert len(message.splitlines()) == 1, message
        return False
    return True

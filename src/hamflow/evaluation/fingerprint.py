"""Which data something was measured on, wherever they are on the disk."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any

from hamflow.datasets import FlowPair
from hamflow.datasets.synthetic import SyntheticDataset
from hamflow.errors import FileError

_HEAD = 4096  # bytes of a file that are looked at, besides its size
_PATHS = ("image0_path", "image1_path", "flow_path", "noc_path", "occluded_path", "invalid_path")


def fingerprint(pairs: Sequence[Any]) -> str:
    """Return a short text that differs if the pairs of two data sets do.

    Of files, the size and the beginning are looked at, not the folder that they are in; of rendered
    scenes, what they are rendered from.

    Parameters
    ----------
    pairs : sequence of pairs
        A data set.

    Raises
    ------
    FileError
        If a file of a pair cannot be read.
    """
    state = sha256()
    for part in _rendered(pairs) if isinstance(pairs, SyntheticDataset) else _stored(pairs):
        state.update(part)
    return state.hexdigest()[:16]


def _rendered(scenes: SyntheticDataset) -> Iterator[bytes]:
    yield json.dumps([asdict(scenes.config), scenes.seed, len(scenes)]).encode()
    if scenes.folder is not None:
        for path in sorted(Path(scenes.folder).rglob("*")):
            if path.is_file():
                yield f"{path.relative_to(scenes.folder)} {path.stat().st_size}".encode(
                    errors="surrogateescape"
                )


def _stored(pairs: Sequence[Any]) -> Iterator[bytes]:
    for pair in pairs:
        if isinstance(pair, FlowPair):
            yield pair.name.encode(errors="surrogateescape")
            for name in _PATHS:
                path = getattr(pair, name)
                yield b"-" if path is None else _beginning(path)
        else:  # in memory
            yield pair.image0.tobytes() + pair.image1.tobytes()


def _beginning(path: Path) -> bytes:
    try:
        with open(path, "rb") as file:
            return str(path.stat().st_size).encode() + file.read(_HEAD)
    except OSError as error:
        raise FileError(f"{path}: cannot be read ({error.strerror}).") from error

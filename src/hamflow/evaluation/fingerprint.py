"""Fingerprints that tell whether the data of a pair have changed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any

from hamflow.datasets import FlowPair
from hamflow.datasets.synthetic import SyntheticDataset
from hamflow.io._identity import file_digest

_PATHS = ("image0_path", "image1_path", "flow_path", "noc_path", "occluded_path", "invalid_path")


def fingerprints(pairs: Sequence[Any]) -> Callable[[int], str]:
    """Return a function from the number of a pair of a data set to its fingerprint.

    It depends on the content of the files, not on their folder; for rendered scenes, on the
    settings and photographs that they are rendered from.
    """
    if isinstance(pairs, SyntheticDataset):
        common = _digest(_rendered(pairs))
        return lambda number: _digest([common.encode(), str(number).encode()])
    return lambda number: _digest(_stored(pairs[number]))


def _digest(parts: Iterator[bytes] | list[bytes]) -> str:
    state = sha256()
    for part in parts:
        state.update(part)
    return state.hexdigest()[:16]


def _rendered(scenes: SyntheticDataset) -> Iterator[bytes]:
    yield json.dumps([asdict(scenes.config), scenes.seed]).encode()
    if scenes.folder is not None:
        for path in sorted(Path(scenes.folder).rglob("*")):
            if path.is_file():
                name = str(path.relative_to(scenes.folder)).encode(errors="surrogateescape")
                yield name + str(path.stat().st_size).encode()


def _stored(pair: Any) -> Iterator[bytes]:
    if isinstance(pair, FlowPair):
        for name in _PATHS:
            path = getattr(pair, name)
            yield b"-" if path is None else file_digest(path).encode()
    else:  # in memory
        yield pair.image0.tobytes() + pair.image1.tobytes()

"""Weights of a descriptor network in a safetensors file, which is data and never a program.

The header says which network the weights are of, and nothing is believed: names, types and shapes
must be exactly those of that network before a single number is read. Files in which programs can
hide (pickles, as ``torch.save`` writes them) are refused by their first bytes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from io import BufferedReader
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hamflow.descriptors.architecture import Architecture
from hamflow.errors import FileError, InputError
from hamflow.io._atomic import atomic_write
from hamflow.io._reading import open_regular

Weights = dict[str, NDArray[np.float32]]

FORMAT = "hamflow-descriptor"
VERSION = "1"
MAX_BYTES = 64 * 2**20
"""Model files beyond this size are refused; 7 of the paper's layers need 1 MB."""

_MAX_HEADER = 2**20
_PICKLES = {".pt", ".pth", ".pkl", ".pickle", ".ckpt"}
_RESERVED = {"format", "version", "architecture"}


def save_weights(
    path: str | os.PathLike[str],
    architecture: Architecture,
    weights: Mapping[str, NDArray[np.float32]],
    extra: Mapping[str, str] | None = None,
) -> None:
    """Write weights to a safetensors file: the same bytes for the same arguments.

    Parameters
    ----------
    path : str or os.PathLike
        The file to write; it is replaced at once or not at all.
    architecture : Architecture
        Which network they are of.
    weights : mapping of str to array of float32
        Exactly those of `Architecture.parameters`.
    extra : mapping of str to str, optional
        What else to note in the file, such as how the weights were learned.

    Raises
    ------
    InputError
        If the weights are not those of the network, or not finite.
    FileError
        If the file cannot be written.
    """
    check_weights(architecture, weights)
    header: dict[str, Any] = {"__metadata__": file_metadata(architecture, extra)}
    start = 0
    for name, shape in architecture.parameters().items():
        stop = start + weights[name].nbytes
        header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [start, stop]}
        start = stop
    # Not by the library, which shuffles the metadata; files are compared by their hashes.
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    if len(text) > _MAX_HEADER:
        raise InputError("The notes for the file's header are too long; leave some out.")
    with atomic_write(path) as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name in architecture.parameters():
            file.write(weights[name].astype("<f4").tobytes())


def read_weights(
    path: str | os.PathLike[str],
) -> tuple[Architecture, Weights, dict[str, str]]:
    """Read weights that `save_weights` wrote.

    Parameters
    ----------
    path : str or os.PathLike
        A safetensors file.

    Returns
    -------
    architecture : Architecture
        Which network they are of.
    weights : dict of str to array of float32
        All of its weights.
    metadata : dict of str to str
        Everything that is noted in the file.

    Raises
    ------
    FileError
        If the file is not of that kind, or damaged, or holds anything else.
    """
    name = os.fspath(path)
    refuse_pickle_suffix(name)
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        header, begin = _read_header(name, file, size)
        metadata = _strings(name, header.pop("__metadata__", None))
        architecture = parse_metadata(name, metadata)
        starts = _check_header(name, header, architecture, size - begin)
        data = file.read(size - begin)
    if len(data) != size - begin:
        raise FileError(f"{name}: changed while it was read; try again.")
    weights: Weights = {}
    for key, shape in architecture.parameters().items():
        values = np.frombuffer(data, "<f4", int(np.prod(shape)), starts[key])
        if not np.isfinite(values).all():
            raise FileError(f"{name}: {key} has values that are not finite; train it again.")
        weights[key] = values.reshape(shape).astype(np.float32)  # a copy that may be written to
    return architecture, weights, metadata


def check_weights(architecture: Architecture, weights: Mapping[str, Any]) -> None:
    """Raise an InputError unless `weights` are finite float32 and exactly the network's."""
    shapes = architecture.parameters()
    if set(weights) != set(shapes):
        odd = ", ".join(sorted(set(weights) ^ set(shapes))[:3])
        raise InputError(f"The weights are not those of the network; they differ in {odd}.")
    for name, shape in shapes.items():
        value = weights[name]
        if not isinstance(value, np.ndarray) or value.dtype != np.float32 or value.shape != shape:
            raise InputError(f"{name} must be an array of float32 with the shape {shape}.")
        if not np.isfinite(value).all():
            raise InputError(f"{name} must be finite, but holds NaN or infinity.")


def file_metadata(
    architecture: Architecture, extra: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return what a model file says about itself, sorted but for the first three."""
    noted = dict(extra or {})
    try:
        for item in noted.items():
            "".join(item).encode()
    except (TypeError, UnicodeEncodeError):
        raise InputError("What is noted in a model file must be text.") from None
    if clash := _RESERVED & set(noted):
        raise InputError(f"{min(clash)} is noted in a model file anyway; use another name.")
    described = json.dumps(architecture.metadata(), sort_keys=True)
    own = {"format": FORMAT, "version": VERSION, "architecture": described}
    return own | dict(sorted(noted.items()))


def extra_metadata(metadata: Mapping[str, str]) -> dict[str, str]:
    """Return what was given as extra when a file was written."""
    return {key: value for key, value in metadata.items() if key not in _RESERVED}


def parse_metadata(name: str, metadata: Mapping[str, str]) -> Architecture:
    """Return the architecture that a model file says it has, or raise a FileError."""
    if metadata.get("format") != FORMAT:
        raise FileError(
            f"{name}: does not say that it is a descriptor of Hamflow; give a file that "
            "'hamflow train' or 'hamflow export' wrote."
        )
    if metadata.get("version") != VERSION:
        raise FileError(
            f"{name}: has version {metadata.get('version', '')[:20]!r} of the format, but this "
            f"Hamflow reads {VERSION}; update Hamflow, or export the model again."
        )
    try:
        values = _parse_json(metadata.get("architecture", ""))
        if not isinstance(values, dict):
            raise ValueError
        return Architecture.of(values)
    except (ValueError, RecursionError) as error:  # InputError is a ValueError
        reason = str(error)[:100].rstrip(".") if isinstance(error, InputError) else "unreadable"
        raise FileError(
            f"{name}: describes no network that Hamflow knows ({reason}); update Hamflow, or "
            "export the model again."
        ) from None


def refuse_pickle_suffix(name: str) -> None:
    """Raise a FileError if the name is one of a pickle, before the file is even opened."""
    if os.path.splitext(name)[1].lower() in _PICKLES:
        _refuse_pickle(name)


def refuse_pickle(name: str, head: bytes) -> None:
    """Raise a FileError if a file begins as pickles and archives of pickles do."""
    if head[:1] == b"\x80" or head[:2] == b"PK":
        _refuse_pickle(name)


def _refuse_pickle(name: str) -> None:
    raise FileError(
        f"{name}: is a pickle, in which programs can hide, and is not opened; save the weights as "
        "safetensors (hamflow.descriptors.weights.save_weights)."
    )


def _read_header(name: str, file: BufferedReader, size: int) -> tuple[dict[str, Any], int]:
    """Return the header and where the numbers begin."""
    head = file.read(9)
    length = int.from_bytes(head[:8], "little")
    # A header of 640 bytes begins as a pickle does, but no pickle goes on with zeros and a brace.
    if len(head) < 9 or head[8:] != b"{" or length > _MAX_HEADER:
        refuse_pickle(name, head)
        raise FileError(
            f"{name}: is not a safetensors file, or is damaged; give a file that 'hamflow train' "
            "wrote."
        )
    if size > MAX_BYTES:
        raise FileError(
            f"{name}: has {size} bytes, more than the {MAX_BYTES} that Hamflow reads; it cannot "
            "be a descriptor."
        )
    if 8 + length > size:
        raise _damaged(name, "ends within its header")
    text = head[8:] + file.read(length - 1)
    try:
        header = _parse_json(text.decode())
    except (ValueError, RecursionError):
        raise _damaged(name, "has an unreadable header") from None
    if not isinstance(header, dict):
        raise _damaged(name, "has an unreadable header")
    return header, 8 + length


def _check_header(
    name: str, header: Mapping[str, Any], architecture: Architecture, available: int
) -> dict[str, int]:
    """Compare names, types, shapes and places with the network's; return the places."""
    shapes = architecture.parameters()
    if set(header) != set(shapes):
        odd = ", ".join(repr(key[:40]) for key in sorted(set(header) ^ set(shapes))[:3])
        raise FileError(
            f"{name}: holds other weights than its network has (see {odd}); save it again."
        )
    places: dict[str, tuple[int, int]] = {}
    for key, shape in shapes.items():
        entry = header[key]
        if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
            raise _damaged(name, f"has an unreadable entry for {key}")
        if entry["dtype"] != "F32":
            raise FileError(f"{name}: {key} must be of type F32; save it again as float32.")
        if _whole(entry["shape"]) != shape:
            raise FileError(f"{name}: {key} must have the shape {shape}; save it again.")
        offsets = _whole(entry["data_offsets"])
        if len(offsets) != 2 or offsets[1] - offsets[0] != 4 * int(np.prod(shape)):
            raise _damaged(name, f"has an impossible place for {key}")
        places[key] = (offsets[0], offsets[1])
    # One after the other without gaps, in which anything could hide, up to the end of the file.
    end = 0
    for start, stop in sorted(places.values()):
        if start != end:
            raise _damaged(name, "has weights that overlap or leave gaps")
        end = stop
    if end != available:
        raise _damaged(name, f"has {available} bytes of weights where {end} belong")
    return {key: start for key, (start, _) in places.items()}


def _whole(values: Any) -> tuple[int, ...]:
    if not isinstance(values, list) or not all(type(value) is int for value in values):
        return ()
    return tuple(values)


def _strings(name: str, metadata: Any) -> dict[str, str]:
    if metadata is None:
        return {}
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise _damaged(name, "has unreadable metadata")
    return metadata


def _parse_json(text: str) -> Any:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        entries = dict(pairs)
        if len(entries) != len(pairs):
            raise ValueError("an entry occurs twice")
        return entries

    return json.loads(text, object_pairs_hook=unique)


def _damaged(name: str, what: str) -> FileError:
    return FileError(f"{name}: {what}; the file is damaged, get it again.")

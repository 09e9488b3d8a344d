"""Spring's ``.flo5`` files: HDF5 with a dataset ``flow``, H×W×2, NaN where unknown.

They are read by a small reader of Hamflow's own (`hamflow.io._hdf5`), because the HDF5 library is
not made for files of strangers. Writing needs the package h5py, of the extra ``flo5``. A file
decides neither how much memory is taken nor which other files are opened: links, storage in other
files, filters other than those that h5py calls gzip, shuffle and fletcher32 (each at most once),
and sizes that cannot come from the stored bytes are refused before anything is allocated, and a
chunk that inflates to another size than the file announces ends the reading.
"""

from __future__ import annotations

import io
import math
import os
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hamflow.errors import FileError
from hamflow.io._atomic import atomic_write
from hamflow.io._flow_format import FlowFormat, known_vectors, vectors_to_write
from hamflow.io._hdf5 import (
    SIGNATURE,
    UNDEFINED,
    Chunk,
    Damage,
    Dataset,
    Filter,
    Hdf5File,
    Unsupported,
)
from hamflow.io._reading import check_size, open_regular, require

_DATASET = "flow"
_DEFLATE, _SHUFFLE, _FLETCHER32 = 1, 2, 3  # filters by their numbers in HDF5
_ORDER = (_SHUFFLE, _DEFLATE, _FLETCHER32)  # in which they are applied
_DEFLATE_RATIO = 1032  # the strongest compression that deflate can reach
_LEVEL = 5  # of the compression, as in Spring's files
_SMALL = 2**24  # bytes that a chunk may take, whatever the dataset takes


def read_flo5(path: str | os.PathLike[str]) -> NDArray[np.float32]:
    """Read a ``.flo5`` file as `hamflow.read_flow` does."""
    name = os.fspath(path)
    with open_regular(path) as file:
        if file.read(len(SIGNATURE)) != SIGNATURE:
            raise FileError(
                f"{name}: is not a .flo5 file, because it does not start like HDF5; check the "
                "format."
            )
        try:
            raw = _read(name, Hdf5File(file))
        except Unsupported as error:
            raise FileError(f"{name}: {error}") from error
        except (Damage, zlib.error) as error:
            raise FileError(
                f"{name}: cannot be decoded ({error}); the file is damaged, get it again."
            ) from error
    return known_vectors(raw)


def require_h5py(path: str | os.PathLike[str]) -> Any:
    """Return the package h5py, or raise a FileError that says how to get it."""
    return require(path, "h5py", "flo5")


def _read(name: str, file: Hdf5File) -> NDArray[np.floating[Any]]:
    place = file.find(_DATASET)
    if not isinstance(place, int):
        raise FileError(
            f"{name}: holds {'no' if place is None else 'only a link as'} dataset flow; write the "
            "flow into the file itself, under this name."
        )
    dataset = file.dataset(place)
    if dataset is None:
        raise FileError(f"{name}: flow is not an HDF5 dataset; write it as one.")
    shape, dtype = _check_dataset(name, dataset)
    wanted = math.prod(shape) * dtype.itemsize
    if dataset.chunks is None:
        stored = dataset.data
        if stored is None:
            if dataset.address == UNDEFINED or dataset.size != wanted:
                raise _incomplete(name, shape)
            stored = file.at(dataset.address, wanted)
        if len(stored) != wanted:
            raise _incomplete(name, shape)
        # A copy, which can be changed.
        return np.frombuffer(stored, dtype).reshape(shape).copy()
    sides = dataset.chunks[:-1]
    if len(sides) != len(shape) or 0 in sides or dataset.chunks[-1] != dtype.itemsize:
        raise Damage("its chunks do not fit its flow")
    if math.prod(sides) * dtype.itemsize > max(wanted, _SMALL) or dataset.address == UNDEFINED:
        raise _incomplete(name, shape)
    chunks = _chunks(name, file, dataset, shape)
    stored_bytes = sum(chunk.size for chunk in chunks)
    if stored_bytes > file.size or wanted > _DEFLATE_RATIO * stored_bytes:
        raise _incomplete(name, shape)
    raw = np.empty(shape, dtype)
    for chunk in chunks:
        data = _unfilter(file.at(chunk.address, chunk.size), chunk, dataset.filters, sides, dtype)
        here = tuple(slice(o, o + s) for o, s in zip(chunk.offset, sides, strict=False))
        part = raw[here]
        part[...] = data[tuple(slice(n) for n in part.shape)]
    return raw


def _check_dataset(name: str, dataset: Dataset) -> tuple[tuple[int, int, int], np.dtype[Any]]:
    """Return the shape and the type of a dataset that can be a flow."""
    shape, dtype = dataset.shape, dataset.dtype
    if shape is None or len(shape) != 3 or shape[2] != 2:
        raise FileError(
            f"{name}: its flow has the shape {shape}, but should have (height, width, 2); bring "
            "its axes into this order."
        )
    check_size(name, shape[1], shape[0])
    if dtype is None:
        raise FileError(
            f"{name}: its flow is of another type than float16, float32 or float64; convert it to "
            "float32."
        )
    if dataset.elsewhere:
        raise FileError(
            f"{name}: keeps its flow in other files; write the flow into the file itself."
        )
    numbers = [filter.number for filter in dataset.filters]
    if numbers != [number for number in _ORDER if number in numbers]:
        raise FileError(
            f"{name}: is compressed by another filter than gzip, or more than once; write it again "
            "with gzip."
        )
    if any(f.number == _SHUFFLE and f.values != (dtype.itemsize,) for f in dataset.filters):
        raise Damage("its bytes are shuffled in an impossible way")
    return (shape[0], shape[1], shape[2]), dtype


def _chunks(
    name: str, file: Hdf5File, dataset: Dataset, shape: tuple[int, int, int]
) -> list[Chunk]:
    """Return the chunks of a dataset, which must be exactly those that cover its shape."""
    assert dataset.chunks is not None
    sides = dataset.chunks[:-1]
    count = math.prod(-(-whole // side) for whole, side in zip(shape, sides, strict=True))
    found: dict[tuple[int, ...], Chunk] = {}
    for chunk in file.chunks(dataset):
        *place, inner = chunk.offset
        on_grid = all(
            p < whole and p % side == 0 for p, whole, side in zip(place, shape, sides, strict=True)
        )
        if not on_grid or inner != 0 or chunk.offset in found or chunk.size == 0:
            raise Damage("its chunks do not fit its flow")
        found[chunk.offset] = chunk
    # HDF5 would fill the pixels of missing chunks with zeros.
    if len(found) != count:
        raise _incomplete(name, shape)
    return list(found.values())


def _unfilter(
    data: bytes,
    chunk: Chunk,
    filters: Sequence[Filter],
    sides: tuple[int, ...],
    dtype: np.dtype[Any],
) -> NDArray[Any]:
    """Undo the filters of a chunk, the last one first."""
    length = math.prod(sides) * dtype.itemsize
    for index in reversed(range(len(filters))):
        if chunk.skipped >> index & 1:  # as for a chunk that deflate would not make smaller
            continue
        number = filters[index].number
        if number == _FLETCHER32:
            data = _checked(data)
        elif number == _DEFLATE:
            inflater = zlib.decompressobj()
            # One byte too many is enough to refuse what would expand to gigabytes.
            data = inflater.decompress(data, length + 1)
            if not inflater.eof:
                raise Damage("a chunk does not have the size of the others")
        elif number == _SHUFFLE:
            if len(data) != length:
                break
            data = np.frombuffer(data, np.uint8).reshape(dtype.itemsize, -1).T.tobytes()
    if len(data) != length:
        raise Damage("a chunk does not have the size of the others")
    return np.frombuffer(data, dtype).reshape(sides)


def _checked(data: bytes) -> bytes:
    """Return the content of a chunk without its checksum, that of Fletcher with 32 bits."""
    if len(data) < 4:
        raise Damage("a chunk is too short for its checksum")
    content, stored = data[:-4], int.from_bytes(data[-4:], "little")
    words = np.frombuffer(content + bytes(len(content) % 2), ">u2").astype(np.uint64)
    # Two sums modulo 65535; the second one sums up the first ones.
    factors = np.arange(len(words), 0, -1, dtype=np.uint64) % np.uint64(65535)
    first, second = int(words.sum()) % 65535, int((words * factors).sum()) % 65535
    if (stored % 65536 % 65535, stored // 65536 % 65535) != (first, second):
        raise Damage("the checksum of a chunk is wrong")
    return content


def _incomplete(name: str, shape: tuple[int, ...]) -> FileError:
    return FileError(
        f"{name}: announces {shape[1]} × {shape[0]} pixels, but does not hold them; the file is "
        "damaged, get it again."
    )


def write_flo5(path: str | os.PathLike[str], flow: ArrayLike) -> None:
    """Write a ``.flo5`` file of float32, compressed as Spring's own are."""
    h5py = require_h5py(path)
    data = vectors_to_write(flow, ".flo5", np.nan)
    encoded = io.BytesIO()
    with h5py.File(encoded, "w") as container:
        container.create_dataset(_DATASET, data=data, compression="gzip", compression_opts=_LEVEL)
    with atomic_write(path) as file:
        file.write(encoded.getbuffer())


FLO5 = FlowFormat(read_flo5, write_flo5, require_h5py)

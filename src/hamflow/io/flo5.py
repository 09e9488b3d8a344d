"""Spring's ``.flo5`` files: HDF5 with a dataset ``flow``, H×W×2, NaN where unknown.

They need the package h5py, of the extra ``flo5``. HDF5 files can do far more than hold an array:
point to other files, load plug-ins, expand a few bytes to gigabytes. Before the reader allocates
the array, it refuses links, external and virtual storage, filters that do not belong to every HDF5
library, and sizes that cannot come from the stored bytes.
"""

from __future__ import annotations

import io
import math
import os
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hamflow.errors import FileError
from hamflow.io._atomic import atomic_write
from hamflow.io._flow_format import FlowFormat, known_vectors, vectors_to_write
from hamflow.io._reading import check_size, open_regular, reason, require

_SIGNATURE = b"\x89HDF\r\n\x1a\n"
_DATASET = "flow"
_FILTERS = {1: "deflate", 2: "shuffle", 3: "fletcher32"}  # by their numbers in HDF5
_DEFLATE_RATIO = 1032  # the strongest compression that deflate can reach
_LEVEL = 5  # of the compression, as in Spring's files
_SMALL = 2**24  # bytes that a chunk may take, whatever the dataset takes


def read_flo5(path: str | os.PathLike[str]) -> NDArray[np.float32]:
    """Read a ``.flo5`` file as `hamflow.read_flow` does."""
    name = os.fspath(path)
    h5py = require_h5py(path)
    with open_regular(path) as file:
        try:
            size = os.fstat(file.fileno()).st_size
            if file.read(len(_SIGNATURE)) != _SIGNATURE:
                raise FileError(
                    f"{name}: is not a .flo5 file, because it does not start like HDF5; check the "
                    "format."
                )
            # By its name, not as the open file, which HDF5 reads many times more slowly.
            with h5py.File(name, "r") as container:
                dataset = _find_dataset(name, container, h5py)
                _check_dataset(name, dataset, size, h5py)
                raw = dataset[()]
        except (FileError, MemoryError):
            raise
        # h5py raises exceptions of many unrelated kinds for damaged files.
        except Exception as error:
            raise FileError(
                f"{name}: cannot be decoded ({reason(error)}); the file is damaged, get it again."
            ) from error
    return known_vectors(raw)


def require_h5py(path: str | os.PathLike[str]) -> Any:
    """Return the package h5py, or raise a FileError that says how to get it."""
    return require(path, "h5py", "flo5")


def _find_dataset(name: str, container: Any, h5py: Any) -> Any:
    # The link is checked before it is followed, because it could lead to another file.
    link = container.get(_DATASET, getlink=True) if _DATASET in container.keys() else None  # noqa: SIM118
    if not isinstance(link, h5py.HardLink):
        raise FileError(
            f"{name}: holds {'no' if link is None else 'only a link as'} dataset flow; write the "
            "flow into the file itself, under this name."
        )
    dataset = container[_DATASET]
    if not isinstance(dataset, h5py.Dataset):
        raise FileError(f"{name}: flow is not an HDF5 dataset; write it as one.")
    return dataset


def _check_dataset(name: str, dataset: Any, file_size: int, h5py: Any) -> None:
    shape = dataset.shape
    if shape is None or len(shape) != 3 or shape[2] != 2:
        raise FileError(
            f"{name}: its flow has the shape {shape}, but should have (height, width, 2); bring "
            "its axes into this order."
        )
    check_size(name, shape[1], shape[0])
    kind = dataset.dtype
    if kind.kind != "f" or kind.itemsize > 8:
        raise FileError(
            f"{name}: its flow is of the type {kind}, but should be of float16, float32 or "
            "float64; convert it."
        )
    storage = dataset.id.get_create_plist()
    if storage.get_layout() == h5py.h5d.VIRTUAL or storage.get_external_count():
        raise FileError(
            f"{name}: keeps its flow in other files; write the flow into the file itself."
        )
    filters = {storage.get_filter(number)[0] for number in range(storage.get_nfilters())}
    if not filters <= set(_FILTERS):
        raise FileError(
            f"{name}: is compressed by another filter than gzip; write it again with gzip."
        )
    if not _is_complete(dataset, file_size):
        raise FileError(
            f"{name}: announces {shape[1]} × {shape[0]} pixels, but does not hold them; the file "
            "is damaged, get it again."
        )


def _is_complete(dataset: Any, file_size: int) -> bool:
    """Return whether the stored bytes can be the whole dataset, and fit into the file."""
    stored, wanted = int(dataset.id.get_storage_size()), int(dataset.nbytes)
    if stored > file_size:
        return False
    if dataset.chunks is None:
        return stored == wanted
    # HDF5 would fill the pixels of missing chunks with zeros.
    sides = zip(dataset.shape, dataset.chunks, strict=True)
    if dataset.id.get_num_chunks() != math.prod(-(-whole // chunk) for whole, chunk in sides):
        return False
    chunk_size = math.prod(dataset.chunks) * int(dataset.dtype.itemsize)
    return chunk_size <= max(wanted, _SMALL) and wanted <= _DEFLATE_RATIO * stored


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

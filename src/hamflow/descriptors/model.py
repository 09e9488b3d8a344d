"""Descriptors by name: those that come with the package, hand-crafted ones, and files."""

from __future__ import annotations

import operator
import os
from functools import lru_cache
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, get_args

from hamflow.descriptors.descriptor import Descriptor
from hamflow.descriptors.network import NetworkDescriptor
from hamflow.descriptors.weights import Network, Variant, read_network, refuse_pickle_suffix
from hamflow.errors import FileError, InputError

MODELS = Path(__file__).parent / "models"
"""The networks that come with the package."""
HAND_CRAFTED = {"pairs": "hamflow.descriptors.pairs:PairDescriptor"}
"""Where the class of each hand-crafted descriptor is; a new one is one file and one line here."""

_SUFFIX = ".safetensors"
_SHARED = 4  # networks that stay loaded; each may keep a gigabyte of onnxruntime's memory


def load_model(
    name_or_path: str | os.PathLike[str],
    *,
    variant: Variant | None = None,
    threads: int | None = None,
    tile_pixels: int | None = None,
) -> Descriptor:
    """Load a descriptor.

    The last four networks of those that come with Hamflow stay loaded: loading one again with the
    same arguments returns the same object, also in another thread. In floating point, it keeps a
    session of onnxruntime with its memory until its method ``release`` is called. A forked process
    opens a session of its own. Files are read each time.

    Parameters
    ----------
    name_or_path : str or os.PathLike
        Name of a model that comes with Hamflow, ``"pairs"`` for the hand-crafted descriptor, or a
        file: the .safetensors of ``hamflow train`` or ``hamflow export``.
    variant : "float" or "int8", optional
        Which variant of a network: int8 is several times faster, flips less than one bit in a
        hundred, and gives the same bits on every machine. It is the default, unless the file of the
        network says otherwise or is of a coarse network without scales of 8 bits.
    threads : int, optional
        How many threads to use; by default, `hamflow.get_num_threads` decides each time.
    tile_pixels : int, optional
        In floating point, larger images are described in tiles of at most that many pixels, with
        the same result. By default, tiles need less than a gigabyte of memory. The coarse network
        always computes the whole image at once.

    Returns
    -------
    descriptor : Descriptor
        With the methods ``describe`` and ``bits``.

    Raises
    ------
    InputError
        If there is no model of that name, or an argument is out of range.
    FileError
        If the file is missing or damaged, or is not a descriptor.

    Examples
    --------
    >>> import numpy as np
    >>> import hamflow
    >>> model = hamflow.load_model("pairs")
    >>> model.bits(np.zeros((4, 5), np.uint8)).shape
    (4, 5)
    """
    if variant is not None and variant not in get_args(Variant):
        raise InputError(f"variant must be {' or '.join(get_args(Variant))}, not {variant!r}.")
    count = None if threads is None else _whole(threads, "threads", 1, 1024)
    pixels = None if tile_pixels is None else _whole(tile_pixels, "tile_pixels", 1, 2**31)
    if not isinstance(name_or_path, str | os.PathLike):
        raise InputError(f"The model must be a name or the path of a file, not {name_or_path!r}.")
    name = os.fspath(name_or_path)
    if name in HAND_CRAFTED:
        if variant is not None:
            raise InputError("A hand-crafted descriptor has no variants; leave variant out.")
        made: Descriptor = resolve_name(HAND_CRAFTED[name])()
        return made
    if _is_file(name_or_path):
        return NetworkDescriptor(name, find_network(name_or_path), variant, count, pixels)
    return _shared(name, MODELS, variant, count, pixels)


@lru_cache(maxsize=_SHARED)
def _shared(
    name: str, folder: Path, variant: Variant | None, threads: int | None, tile_pixels: int | None
) -> NetworkDescriptor:
    return NetworkDescriptor(
        name, _shipped(name, folder, shipped_models()), variant, threads, tile_pixels
    )


def find_network(name_or_path: str | os.PathLike[str]) -> Network:
    """Return the network of a name or file, which are those of `load_model`."""
    name = os.fspath(name_or_path)
    if name in HAND_CRAFTED:
        raise InputError(f"The hand-crafted descriptor {name!r} is no network; choose a network.")
    if not _is_file(name_or_path):
        return _shipped(name, MODELS, _networks())
    refuse_pickle_suffix(name)
    suffix = Path(name).suffix.lower()
    if suffix == ".onnx":
        raise FileError(
            f"{name}: .onnx files are written for other programs and not read by Hamflow; give the "
            ".safetensors file that it was exported from."
        )
    if suffix != _SUFFIX:
        raise FileError(
            f"{name}: does not end in {_SUFFIX}; give a file that 'hamflow train' wrote."
        )
    return read_network(name)


def shipped_models() -> list[str]:
    """Return the names that `load_model` knows, hand-crafted descriptors last."""
    return [*_networks(), *HAND_CRAFTED]


def _networks() -> list[str]:
    return sorted(file.stem for file in MODELS.glob(f"*{_SUFFIX}"))


def _shipped(name: str, folder: Path, choices: list[str]) -> Network:
    file = folder / f"{name}{_SUFFIX}"
    if not file.is_file():
        raise InputError(
            f"There is no model {name!r}; choose one of {', '.join(choices)}, or give the path of "
            f"a {_SUFFIX} file."
        )
    return read_network(file)


def _is_file(name_or_path: str | os.PathLike[str]) -> bool:
    """Return whether this is a file and not a name: a path, or a text with a dot or a folder."""
    name = os.fspath(name_or_path)
    return not isinstance(name_or_path, str) or name != Path(name).stem


def _whole(value: Any, name: str, least: int, most: int) -> int:
    try:
        number = -1 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = -1
    if not least <= number <= most:
        raise InputError(f"{name} must be a whole number from {least} to {most}, not {value!r}.")
    return number

"""Descriptor models at work: an image becomes H×W×m numbers, or one 64-bit word per pixel."""

from __future__ import annotations

import operator
import os
import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hamflow._check import as_image
from hamflow._runtime import get_num_threads
from hamflow.descriptors.architecture import Architecture
from hamflow.descriptors.graph import IMAGE, PHI, build_model
from hamflow.descriptors.onnx_check import Checked, check_onnx, read_onnx
from hamflow.descriptors.pairs import pair_bits
from hamflow.descriptors.tiles import default_tile_pixels, network_input, plan_tiles
from hamflow.descriptors.weights import extra_metadata, read_weights, refuse_pickle_suffix
from hamflow.errors import FileError, InputError
from hamflow.matching import pack_bits

MODELS = Path(__file__).parent / "models"
"""The models that come with the package."""
PAIRS = "pairs"
"""Name of the hand-crafted descriptor, which needs no file."""

_VARIANTS = {"float": "", "int8": ".int8"}
# Quicker, and the errors on real pairs stay within 2 % (docs/models.md).
_USUAL_VARIANT = {"fast": "int8"}


class Model(ABC):
    """Something that describes the pixels of an image, so that they can be compared.

    Attributes
    ----------
    name : str
        What it was loaded as.
    architecture : Architecture or None
        The network; None for the hand-crafted descriptor.
    metadata : dict of str to str
        What its file says about it.
    """

    name: str
    architecture: Architecture | None
    metadata: dict[str, str]

    @abstractmethod
    def describe(self, image: ArrayLike) -> NDArray[np.float32]:
        """Return the descriptors: (H, W, m) float32 in -1..1; their signs are the bits.

        Parameters
        ----------
        image : (H, W) or (H, W, 3) array_like
            uint8, uint16, or floating point with values in 0..1; red, green, blue.
        """

    @abstractmethod
    def bits(self, image: ArrayLike) -> NDArray[np.uint64]:
        """Return the signs of the descriptors, packed: (H, W) uint64.

        Bit k, counted from the least significant one, is set where component k is positive.

        Parameters
        ----------
        image : (H, W) or (H, W, 3) array_like
            As for `describe`.
        """

    def __repr__(self) -> str:
        return f"<hamflow descriptor model {self.name!r}>"


def load_model(
    name_or_path: str | os.PathLike[str],
    *,
    variant: str | None = None,
    threads: int | None = None,
    tile_pixels: int | None = None,
) -> Model:
    """Load a descriptor model.

    Parameters
    ----------
    name_or_path : str or os.PathLike
        Name of a model that comes with Hamflow, ``"pairs"`` for the hand-crafted descriptor, or a
        file: .onnx as ``hamflow export`` writes it, or the .safetensors of ``hamflow train`` (which
        needs the package onnx).
    variant : "float" or "int8", optional
        Which file of a named model; int8 is quicker, and flips less than one bit in a hundred. By
        default int8 for ``"fast"`` and float for all others.
    threads : int, optional
        How many threads to use; otherwise as many as `hamflow.get_num_threads` says each time.
    tile_pixels : int, optional
        Larger images are described in tiles of at most that many pixels, with the same result;
        otherwise in such that less than a gigabyte is needed.

    Returns
    -------
    model : Model
        With the methods ``describe`` and ``bits``.

    Raises
    ------
    InputError
        If there is no model of that name, or an argument is out of range.
    FileError
        If the file is missing, damaged, or anything but a descriptor.

    Examples
    --------
    >>> import numpy as np
    >>> import hamflow
    >>> model = hamflow.load_model("pairs")
    >>> model.bits(np.zeros((4, 5), np.uint8)).shape
    (4, 5)
    """
    if variant is not None and variant not in _VARIANTS:
        raise InputError(f"variant must be {' or '.join(_VARIANTS)}, not {variant!r}.")
    count = None if threads is None else _whole(threads, "threads", 1, 1024)
    pixels = None if tile_pixels is None else _whole(tile_pixels, "tile_pixels", 1, 2**31)
    if not isinstance(name_or_path, str | os.PathLike):
        raise InputError(f"The model must be a name or the path of a file, not {name_or_path!r}.")
    name = os.fspath(name_or_path)
    if name == PAIRS:
        if variant is not None:
            raise InputError("The hand-crafted descriptor has no variants; leave variant out.")
        return PairModel()
    return NetworkModel(name, read_network(name_or_path, variant), count, pixels)


def read_network(name_or_path: str | os.PathLike[str], variant: str | None = None) -> Checked:
    """Return the network of a name or file as `load_model` takes them, ready to be run."""
    name = os.fspath(name_or_path)
    if isinstance(name_or_path, str) and name == Path(name).stem:
        return _read(shipped_file(name, variant))
    if variant is not None:
        raise InputError("variant is for models by name; name the file of the variant instead.")
    return _read(Path(name))


def shipped_models() -> list[str]:
    """Return the names of the models that come with the package, the hand-crafted one last."""
    files = (file for suffix in (".onnx", ".safetensors") for file in MODELS.glob(f"*{suffix}"))
    return [*sorted({file.name.split(".")[0] for file in files}), PAIRS]


def shipped_file(name: str, variant: str | None = None) -> Path:
    """Return the file of a model that comes with the package, or raise an InputError."""
    variant = variant or _USUAL_VARIANT.get(name, "float")
    stem = name + _VARIANTS[variant]
    for suffix in (".onnx", ".safetensors"):
        if (file := MODELS / f"{stem}{suffix}").is_file():
            return file
    known = shipped_models()
    if name in known:
        raise InputError(f"The model {name!r} has no variant {variant!r}.")
    raise InputError(
        f"There is no model {name!r}; choose one of {', '.join(known)}, or give the path of an "
        ".onnx or .safetensors file."
    )


def _read(path: Path) -> Checked:
    suffix = path.suffix.lower()
    refuse_pickle_suffix(os.fspath(path))
    if suffix == ".onnx":
        return read_onnx(path)
    if suffix != ".safetensors":
        raise FileError(f"{path}: models are .onnx or .safetensors files; convert it to one.")
    architecture, weights, metadata = read_weights(path)
    data = build_model(architecture, weights, extra_metadata(metadata))
    return check_onnx(os.fspath(path), data)


class PairModel(Model):
    """The hand-crafted descriptor, `hamflow.pair_bits`, with the methods of a model."""

    def __init__(self) -> None:
        self.name = PAIRS
        self.architecture = None
        self.metadata = {}

    def describe(self, image: ArrayLike) -> NDArray[np.float32]:
        """Return the bits as +1 and -1: (H, W, 64) float32."""
        octets = pair_bits(image)[..., None].astype("<u8").view(np.uint8)
        signs = np.unpackbits(octets, axis=2, bitorder="little").astype(np.float32)
        return 2 * signs - 1

    def bits(self, image: ArrayLike) -> NDArray[np.uint64]:
        """Return `hamflow.pair_bits` of the image."""
        return pair_bits(image)


class NetworkModel(Model):
    """A network that onnxruntime computes, tile by tile."""

    def __init__(
        self, name: str, checked: Checked, threads: int | None, tile_pixels: int | None
    ) -> None:
        self.name = name
        self.architecture: Architecture = checked.architecture
        self.metadata = checked.metadata
        self._data = checked.data
        self._threads = threads
        self._tile_pixels = tile_pixels or default_tile_pixels(checked.architecture)
        self._session: Any = None
        self._session_threads = 0
        _LOADED.add(self)

    def describe(self, image: ArrayLike) -> NDArray[np.float32]:
        """Return the descriptors: (H, W, m) float32 in -1..1; see `Model.describe`."""
        array = checked_image(image)
        phi: NDArray[np.float32] = np.empty((*array.shape[:2], self.architecture.m), np.float32)
        for rows, columns, part in self._tiles(array):
            phi[rows, columns] = part
        return phi

    def bits(self, image: ArrayLike) -> NDArray[np.uint64]:
        """Return the packed signs: (H, W) uint64; see `Model.bits`."""
        if self.architecture.m != 64:
            raise InputError(
                f"The model {self.name!r} has descriptors of {self.architecture.m} components, "
                "but bits need 64 of them; use describe."
            )
        array = checked_image(image)
        bits: NDArray[np.uint64] = np.empty(array.shape[:2], np.uint64)
        # Packed tile by tile: the floats of a whole 4K frame take two gigabytes.
        for rows, columns, part in self._tiles(array):
            bits[rows, columns] = pack_bits(part)
        return bits

    def release(self) -> None:
        """Give back the memory that onnxruntime keeps for the next image.

        The model stays usable; its next image takes some milliseconds longer.
        """
        self._session = None

    def __getstate__(self) -> dict[str, Any]:
        # Sessions cannot be pickled; the bytes have been checked.
        return self.__dict__ | {"_session": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        _LOADED.add(self)

    def _tiles(self, array: NDArray[Any]) -> Iterator[tuple[slice, slice, NDArray[np.float32]]]:
        """Generate the descriptors of each tile and where they belong."""
        height, width = array.shape[:2]
        for rows, columns in plan_tiles(height, width, self.architecture, self._tile_pixels):
            tile = array[rows.low : rows.high, columns.low : columns.high]
            phi = self._run(network_input(tile))
            yield (
                slice(rows.start, rows.stop),
                slice(columns.start, columns.stop),
                phi[0, rows.inner, columns.inner],
            )

    def _run(self, x: NDArray[np.float32]) -> NDArray[np.float32]:
        threads = self._threads or get_num_threads()
        session = self._session
        if session is None or self._session_threads != threads:
            session = open_session(self.name, self._data, threads)
            self._session, self._session_threads = session, threads
        try:
            phi: NDArray[np.float32] = session.run([PHI], {IMAGE: x})[0]
        except Exception as error:  # onnxruntime has no base class for its own
            if "alloc" not in str(error):
                raise
            raise MemoryError(f"for a tile of {x.shape[3]}×{x.shape[2]} pixels") from error
        return phi


_LOADED: weakref.WeakSet[NetworkModel] = weakref.WeakSet()
_INHERITED: list[Any] = []


def _after_fork() -> None:
    # A forked process has none of its parent's threads. A session cannot be used without them, and
    # must not even be ended, which would wait for them for ever.
    for model in _LOADED:
        _INHERITED.append(model._session)
        model._session = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def open_session(name: str, data: bytes, threads: int) -> Any:
    """Return an onnxruntime session of checked bytes; `name` is for the message."""
    import onnxruntime  # noqa: PLC0415  (heavy)

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # errors
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    # Planning for one size of tile saves no time here and doubles the memory for two sizes. The
    # arena stays: without it, a third of the time goes into getting fresh pages.
    options.enable_mem_pattern = False
    # Between two layers nothing is gained by idle threads that take cores from other programs.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        reason = str(error).splitlines()[0]
        raise FileError(
            f"{name}: cannot be run by onnxruntime {onnxruntime.__version__} ({reason}); export "
            "the model again."
        ) from error


def checked_image(image: ArrayLike) -> NDArray[Any]:
    """Return an image that a network can be given, as an array, or raise an InputError."""
    array = as_image(image)
    if array.dtype.kind == "f":
        if not ((array >= 0) & (array <= 1)).all():
            raise InputError(
                "image must have values from 0 to 1 if it is of floating point; divide it by its "
                "largest possible value."
            )
    elif array.dtype not in (np.uint8, np.uint16):
        raise InputError(
            f"image must be of type uint8, uint16 or floating point, but is {array.dtype}."
        )
    return array


def _whole(value: Any, name: str, least: int, most: int) -> int:
    try:
        number = -1 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = -1
    if not least <= number <= most:
        raise InputError(f"{name} must be a whole number from {least} to {most}, not {value!r}.")
    return number

"""Descriptor networks in safetensors files, which are data and never programs.

The metadata of a file describe its network; names, types and shapes of the tensors must be exactly
those of that network. Pickles, which ``torch.save`` writes and which can contain programs, are
refused by their first bytes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hamflow.descriptors.architecture import Architecture
from hamflow.descriptors.graph import IMAGE, PHI, build_graph
from hamflow.descriptors.int8 import Scales, int8_graph
from hamflow.descriptors.onnx_writer import write_model
from hamflow.errors import FileError, InputError
from hamflow.io._atomic import atomic_write
from hamflow.io._reading import open_regular

Weights = dict[str, NDArray[np.float32]]
Variant = Literal["float", "int8"]

FORMAT = "hamflow-descriptor"
VERSION = "1"
PRECISION = "precision"
"""Entry of the metadata that names the default variant; int8 if there is none, and it has one."""
MAX_BYTES = 64 * 2**20
"""Larger model files are refused; the paper's network of 7 layers needs 1 MB."""

_MAX_HEADER = 2**20
_PICKLES = {".pt", ".pth", ".pkl", ".pickle", ".ckpt"}
_RESERVED = {"format", "version", "architecture"}
_SCALES = tuple(f"int8.{name}" for name in Scales._fields)


@dataclass(frozen=True)
class Network:
    """A descriptor network: the content of its file.

    Attributes
    ----------
    architecture : Architecture
        Which network it is.
    weights : dict of str to array of float32
        Exactly those of `Architecture.parameters`.
    notes : dict of str to str
        Other metadata, such as how it was trained and its license.
    scales : Scales or None
        How the activations of a coarse network become 8-bit numbers, or those of the 8-bit ONNX
        file of another network.
    digest : str
        The SHA-256 of the file; empty if there is no file.
    """

    architecture: Architecture
    weights: Mapping[str, NDArray[np.float32]]
    notes: Mapping[str, str] = field(default_factory=dict)
    scales: Scales | None = None
    digest: str = ""

    def __post_init__(self) -> None:
        shapes = self.architecture.parameters()
        if set(self.weights) != set(shapes):
            odd = ", ".join(sorted(set(self.weights) ^ set(shapes))[:3])[:100]
            raise InputError(f"The weights are not those of the network; they differ in {odd}.")
        for name, shape in shapes.items():
            value = self.weights[name]
            if not isinstance(value, np.ndarray) or value.dtype != np.float32:
                raise InputError(f"{name} must be an array of float32.")
            if value.shape != shape:
                raise InputError(f"{name} must have the shape {shape}, but has {value.shape}.")
            if not np.isfinite(value).all():
                raise InputError(f"{name} must be finite, but holds NaN or infinity.")
        if self.scales is not None:
            self.scales.check(self.architecture)
        if self.usual_variant not in self.variants:
            wanted = self.notes[PRECISION][:20]
            raise InputError(f"The notes ask for the variant {wanted!r}, but there is none.")

    @property
    def variants(self) -> tuple[Variant, ...]:
        """The variants that it has: float always; int8, but if it is coarse only with scales."""
        scaled = self.architecture.kind != "coarse" or self.scales is not None
        return ("float", "int8") if scaled else ("float",)

    @property
    def usual_variant(self) -> Variant:
        """The default variant: the one that the notes name, or else int8 if there is one."""
        wanted: Any = self.notes.get(PRECISION, self.variants[-1])
        usual: Variant = wanted
        return usual

    def metadata(self, variant: Variant) -> dict[str, str]:
        """Return the metadata of one variant of the network."""
        notes = {key: value for key, value in self.notes.items() if key != PRECISION}
        return file_metadata(
            self.architecture, notes | ({PRECISION: "int8"} if variant == "int8" else {})
        )

    def onnx(self, variant: Variant = "float") -> bytes:
        """Return the content of an ONNX file that computes one variant of the network."""
        if variant == "float":
            graph = build_graph(self.architecture)
            names = self.architecture.parameters()
            graph.constants.update({name: self.weights[name] for name in names})
        else:
            if self.scales is None or self.architecture.kind == "coarse":
                raise InputError(
                    "This network has no 8-bit ONNX file; quantize it first, or, if it is coarse, "
                    "write it in floating point."
                )
            graph = int8_graph(self.architecture, self.weights, self.scales)
        grid = ("H", "W") if self.architecture.cell == 1 else ("rows", "columns")
        return write_model(
            graph,
            (IMAGE, (1, 3, "H", "W")),
            (PHI, (1, *grid, self.architecture.m)),
            self.metadata(variant),
        )


def save_weights(
    path: str | os.PathLike[str],
    architecture: Architecture,
    weights: Mapping[str, NDArray[np.float32]],
    extra: Mapping[str, str] | None = None,
    scales: Scales | None = None,
) -> None:
    """Write a network to a safetensors file: the same bytes for the same arguments.

    Parameters
    ----------
    path : str or os.PathLike
        The file to write.
    architecture, weights, extra, scales
        The network, as in `Network`; `extra` are its notes.
    """
    import safetensors.numpy  # noqa: PLC0415  (only networks need it)

    notes = dict(extra or {})
    metadata = file_metadata(architecture, notes)
    network = Network(architecture, weights, notes, scales)
    tensors: dict[str, NDArray[Any]] = {
        name: _shortest(np.ascontiguousarray(value)) for name, value in network.weights.items()
    }
    if scales is not None:
        tensors |= zip(_SCALES, scales, strict=True)
    data = safetensors.numpy.save(tensors, metadata)
    # The library writes the metadata in a random order, but files are compared by their hashes.
    begin = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:begin]) | {"__metadata__": metadata}
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    if len(text) > _MAX_HEADER:
        raise InputError("The notes do not fit into the header of the file; shorten them.")
    with atomic_write(path) as file:
        file.write(len(text).to_bytes(8, "little") + text + data[begin:])


def _shortest(value: NDArray[np.float32]) -> NDArray[Any]:
    """Return the same numbers in half the bytes where float16 holds all of them exactly."""
    with np.errstate(over="ignore"):
        half = value.astype(np.float16)
    return half if value.ndim > 1 and (half.astype(np.float32) == value).all() else value


def read_weights(
    path: str | os.PathLike[str],
) -> tuple[Architecture, Weights, dict[str, str]]:
    """Return the architecture, the weights and the metadata of a file of `save_weights`."""
    network = read_network(path)
    weights = {name: network.weights[name].copy() for name in network.architecture.parameters()}
    return network.architecture, weights, file_metadata(network.architecture, network.notes)


def read_network(path: str | os.PathLike[str]) -> Network:
    """Read a file of `save_weights`; raise a FileError if it is damaged or something else."""
    import safetensors.numpy  # noqa: PLC0415  (only networks need it)

    name = os.fspath(path)
    refuse_pickle_suffix(name)
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        head = file.read(9)
        _check_head(name, head, size)
        data = head + file.read(size)
    try:
        tensors = safetensors.numpy.load(data)
        # The library returns the metadata only of files on a disk, not of bytes.
        header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    except (safetensors.SafetensorError, ValueError, RecursionError) as error:
        reason = str(error).removeprefix("Error while deserializing: ")[:100].rstrip(".")
        raise FileError(f"{name}: is damaged ({reason}); get the file again.") from None
    except KeyError as error:
        raise FileError(f"{name}: holds tensors of type {error}; save them as float32.") from None
    metadata: dict[str, str] = header.get("__metadata__") or {}
    architecture = _parse_metadata(name, metadata)
    notes = {key: value for key, value in metadata.items() if key not in _RESERVED}
    scales = Scales(*map(tensors.pop, _SCALES)) if set(_SCALES) <= set(tensors) else None
    for key, value in tensors.items():
        if value.dtype == np.float16:
            tensors[key] = value.astype(np.float32)
    try:
        return Network(architecture, tensors, notes, scales, sha256(data).hexdigest())
    except InputError as error:
        reason = str(error).removesuffix(".")
        raise FileError(f"{name}: {reason}; save it again, or get another file.") from None


def _check_head(name: str, head: bytes, size: int) -> None:
    """Check the size of a file, the announced size of its header and the first character."""
    length = int.from_bytes(head[:8], "little")
    # A header of 640 bytes begins like a pickle, but no pickle continues with zeros and a brace.
    if len(head) < 9 or head[8:] != b"{" or length > _MAX_HEADER:
        if head[:1] == b"\x80" or head[:2] == b"PK":
            _refuse_pickle(name)
        raise FileError(
            f"{name}: is not a safetensors file, or is damaged; give a file that 'hamflow train' "
            "wrote."
        )
    if size > MAX_BYTES:
        raise FileError(
            f"{name}: has {size} bytes, more than the {MAX_BYTES} that Hamflow reads; give a "
            "descriptor of Hamflow."
        )
    if 8 + length > size:
        raise FileError(f"{name}: ends within its header; the file is damaged, get it again.")


def file_metadata(
    architecture: Architecture, extra: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the metadata of a model file: format, version, architecture, then sorted notes."""
    noted = dict(extra or {})
    try:
        for item in noted.items():
            "".join(item).encode()
    except (TypeError, UnicodeEncodeError):
        raise InputError("The notes in a model file must be text.") from None
    if clash := _RESERVED & set(noted):
        raise InputError(f"The note {min(clash)!r} is reserved; use another name.")
    described = json.dumps(architecture.metadata(), sort_keys=True)
    own = {"format": FORMAT, "version": VERSION, "architecture": described}
    return own | dict(sorted(noted.items()))


def _parse_metadata(name: str, metadata: Mapping[str, str]) -> Architecture:
    """Return the architecture in the metadata of a model file, or raise a FileError."""
    if metadata.get("format") != FORMAT:
        raise FileError(
            f"{name}: is not a descriptor of Hamflow; give a file that 'hamflow train' or "
            "'hamflow export' wrote."
        )
    if metadata.get("version") != VERSION:
        raise FileError(
            f"{name}: has version {metadata.get('version', '')[:20]!r} of the format, but this "
            f"Hamflow reads {VERSION}; update Hamflow, or export the model again."
        )
    try:
        values = json.loads(metadata.get("architecture", ""))
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
    """Raise a FileError for the suffixes of pickles, before the file is opened."""
    if os.path.splitext(name)[1].lower() in _PICKLES:
        _refuse_pickle(name)


def _refuse_pickle(name: str) -> None:
    raise FileError(
        f"{name}: is a pickle, which can contain programs, and is not opened; save the weights as "
        "safetensors (hamflow.descriptors.weights.save_weights)."
    )

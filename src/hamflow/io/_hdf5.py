"""A small reader of HDF5 files, for one dataset at the top of a file that may come from a stranger.

The HDF5 library can be made to read outside of its memory, and a file of some kilobytes can make it
allocate gigabytes before it says what the file holds. This reader knows only what such files need:
the structures that HDF5 writes unless it is asked for its newest format, and of these only a
dataset of floating-point numbers. Every address and length is compared with the size of the file
before it is used, no structure is visited twice, and nothing is allocated that the stored bytes
cannot fill. See the HDF5 File Format Specification, version 3.0; names are those of that document.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from io import BufferedReader
from typing import NamedTuple

import numpy as np

SIGNATURE = b"\x89HDF\r\n\x1a\n"

UNDEFINED = 2**64 - 1
"""The address of what was never written."""
_MOST_BYTES = 2**20  # of the header of an object, and of the names in a group
_SLACK = 2**16  # bytes that may be read beyond twice the size of the file

# The types of messages in the header of an object.
_DATASPACE, _LINK_INFO, _DATATYPE, _LINK, _EXTERNAL = 0x01, 0x02, 0x03, 0x06, 0x07
_LAYOUT, _FILTERS, _CONTINUATION, _SYMBOL_TABLE = 0x08, 0x0B, 0x10, 0x11
_SHARED = 2  # the flag of a message that is stored elsewhere

_ADDRESS = struct.Struct("<Q")

# What the properties of IEEE's floating-point numbers are in HDF5: the place of the sign; offset
# and precision; place and size of the exponent; place and size of the mantissa; the bias.
_IEEE = {
    2: (15, 0, 16, 10, 5, 0, 10, 15),
    4: (31, 0, 32, 23, 8, 0, 23, 127),
    8: (63, 0, 64, 52, 11, 0, 52, 1023),
}


class Damage(Exception):  # noqa: N818  (it becomes a FileError)
    """Half a sentence about what is wrong with the file."""


class Unsupported(Exception):  # noqa: N818  (it becomes a FileError)
    """A sentence, without the file's name, about what this reader does not know."""


class Filter(NamedTuple):
    """A filter that the bytes of a chunk went through: its number in HDF5, and its parameters."""

    number: int
    values: tuple[int, ...]


class Chunk(NamedTuple):
    """A stored piece of a dataset."""

    offset: tuple[int, ...]  # of its first element
    address: int
    size: int  # stored bytes
    skipped: int  # a bit for each filter that it did not go through


@dataclass(frozen=True)
class Dataset:
    """What a file says about a dataset.

    Attributes
    ----------
    shape : tuple of int, or None
        None for a dataset that can hold nothing.
    dtype : numpy.dtype or None
        None if the elements are something other than IEEE floating-point numbers.
    elsewhere : bool
        Whether its elements are in other files.
    data : bytes or None
        The elements, if they are stored in the header.
    address, size : int
        Where the elements are, and their bytes; with `chunks`, where the tree of the chunks is.
    chunks : tuple of int, or None
        The shape of a chunk.
    filters : tuple of Filter
        In the order in which they were applied.
    """

    shape: tuple[int, ...] | None
    dtype: np.dtype[np.floating] | None
    elsewhere: bool
    data: bytes | None
    address: int
    size: int
    chunks: tuple[int, ...] | None
    filters: tuple[Filter, ...]


class Hdf5File:
    """An open file that starts with `SIGNATURE`."""

    def __init__(self, file: BufferedReader) -> None:
        self._file = file
        self.size = os.fstat(file.fileno()).st_size
        # Structures that overlap could make a small file a long read.
        self._allowance = 2 * self.size + _SLACK
        self._root = self._root_header()

    def at(self, address: int, length: int) -> bytes:
        """Return bytes of the file; raise `Damage` if it does not have them."""
        if address > self.size or length > self.size - address:
            raise Damage("it ends before what it refers to")
        self._allowance -= length
        if self._allowance < 0:
            raise Damage("its structures overlap")
        self._file.seek(address)
        data = self._file.read(length)
        if len(data) != length:
            raise Damage("it ends before what it refers to")
        return data

    def find(self, name: str) -> int | str | None:
        """Return the address of an object of the top group, "link" for a link to one, or None."""
        wanted = name.encode()
        for kind, data in self._messages(self._root):
            if kind == _SYMBOL_TABLE:
                return self._in_symbol_table(_Bytes(data), wanted)
            if kind == _LINK:
                link, target = _link(_Bytes(data))
                if link == wanted:
                    return target
            if kind == _LINK_INFO and _has_dense_links(_Bytes(data)):
                raise Unsupported("holds too many objects; write the flow alone into the file.")
        return None

    def dataset(self, address: int) -> Dataset | None:
        """Return what the header of an object says; None if it is not a dataset."""
        found: dict[int, bytes] = {}
        for kind, data in self._messages(address):
            found.setdefault(kind, data)
        if _LAYOUT not in found or _DATASPACE not in found or _DATATYPE not in found:
            return None
        shape = _shape(_Bytes(found[_DATASPACE]))
        layout, content, place, size, chunks = _layout(_Bytes(found[_LAYOUT]))
        return Dataset(
            shape=shape,
            dtype=_dtype(_Bytes(found[_DATATYPE])),
            elsewhere=layout == "virtual" or _EXTERNAL in found,
            data=content,
            address=place,
            size=size,
            chunks=chunks,
            filters=_filters(_Bytes(found[_FILTERS])) if _FILTERS in found else (),
        )

    def chunks(self, dataset: Dataset) -> Iterator[Chunk]:
        """Yield the chunks of a dataset as its tree lists them."""
        assert dataset.chunks is not None
        rank = len(dataset.chunks)  # with one dimension for the bytes of an element
        key = 8 + 8 * rank
        for node in self._leaves(dataset.address, 1, key):
            for start in range(0, len(node) - key, key + 8):
                data = _Bytes(node[start : start + key + 8])
                size, skipped = data.u32(), data.u32()
                offset = tuple(data.u64() for _ in range(rank))
                yield Chunk(offset, data.u64(), size, skipped)

    def _root_header(self) -> int:
        start = _Bytes(self.at(0, min(self.size, 96)))
        start.take(len(SIGNATURE))
        version = start.u8()
        if version in (0, 1):
            start.take(4)
            sizes = start.u8(), start.u8()
            start.take(9 if version == 0 else 13)
            base = start.u64()
            start.take(32)  # three addresses, and the name of the top group
        elif version in (2, 3):
            sizes = start.u8(), start.u8()
            start.take(1)
            base = start.u64()
            start.take(16)
        else:
            raise Damage("its version is unknown")
        if sizes != (8, 8) or base != 0:
            raise Unsupported(
                "has addresses of an unusual form, or is damaged; write it again with h5py."
            )
        return start.u64()

    def _messages(self, address: int) -> Iterator[tuple[int, bytes]]:
        """Yield type and content of the messages in the header of an object."""
        new = self.at(address, 4) == b"OHDR"
        blocks, head = self._new_header(address) if new else self._old_header(address)
        seen: set[int] = set()
        total = 0
        while blocks:
            place, length = blocks.pop(0)
            total += length
            if place in seen or total > _MOST_BYTES:
                raise Damage("the header of an object is too long or repeats itself")
            seen.add(place)
            rest = _Bytes(self.at(place, length))
            while rest.left >= head:
                kind = rest.u8() if new else rest.u16()
                size, flags = rest.u16(), rest.u8()
                rest.take(head - (4 if new else 5))
                data = rest.take(size)
                if kind == _CONTINUATION:
                    where = _Bytes(data)
                    at, count = where.u64(), where.u64()
                    if new:  # between a signature and a checksum
                        if self.at(at, 4) != b"OCHK" or count < 8:
                            raise Damage("the header of an object is not continued")
                        at, count = at + 4, count - 8
                    blocks.append((at, count))
                elif flags & _SHARED and kind in (_DATASPACE, _DATATYPE, _LAYOUT, _FILTERS):
                    raise Unsupported("shares the type of its flow; write it without doing so.")
                else:
                    yield kind, data

    def _old_header(self, address: int) -> tuple[list[tuple[int, int]], int]:
        """Return the first block of messages of a header, and the bytes before each message."""
        start = _Bytes(self.at(address, 16))
        if start.u8() != 1:
            raise Damage("the header of an object has an unknown version")
        start.take(7)
        return [(address + 16, start.u32())], 8

    def _new_header(self, address: int) -> tuple[list[tuple[int, int]], int]:
        start = _Bytes(self.at(address, min(self.size - address, 34)))
        start.take(4)
        if start.u8() != 2:
            raise Damage("the header of an object has an unknown version")
        flags = start.u8()
        start.take((16 if flags & 0x20 else 0) + (4 if flags & 0x10 else 0))
        length = start.unsigned(1 << (flags & 3))
        return [(address + start.position, length)], 6 if flags & 4 else 4

    def _in_symbol_table(self, data: _Bytes, wanted: bytes) -> int | str | None:
        tree, heap = data.u64(), data.u64()
        start = _Bytes(self.at(heap, 32))
        if start.take(4) != b"HEAP":
            raise Damage("the names of its objects are missing")
        start.take(4)
        length = start.u64()
        start.take(8)
        if length > _MOST_BYTES:
            raise Unsupported("holds too many objects; write the flow alone into the file.")
        names = self.at(start.u64(), length)
        for node in self._leaves(tree, 0, 8):
            for place in range(8, len(node) - 8, 16):
                table = _ADDRESS.unpack_from(node, place)[0]
                head = _Bytes(self.at(table, 8))
                if head.take(4) != b"SNOD":
                    raise Damage("the list of its objects is broken")
                head.take(2)
                entries = _Bytes(self.at(table + 8, 40 * head.u16()))
                while entries.left:
                    name, header, cached = entries.u64(), entries.u64(), entries.u32()
                    entries.take(20)
                    if names[name : names.find(b"\0", name)] == wanted:
                        return "link" if cached == 2 else header
        return None

    def _leaves(self, address: int, kind: int, key: int) -> Iterator[bytes]:
        """Yield keys and children of the lowest nodes of a version 1 B-tree, from left to right."""
        stack: list[tuple[int, int | None]] = [(address, None)]
        seen: set[int] = set()
        while stack:
            place, expected = stack.pop()
            start = _Bytes(self.at(place, 24))
            if place in seen or start.take(4) != b"TREE" or start.u8() != kind:
                raise Damage("the tree of its chunks or objects is broken")
            seen.add(place)
            level, count = start.u8(), start.u16()
            if expected is not None and level != expected:
                raise Damage("the tree of its chunks or objects is broken")
            node = self.at(place + 24, count * (key + 8) + key)
            if level == 0:
                yield node
                continue
            places = range(key, len(node) - 8, key + 8)
            children = [_ADDRESS.unpack_from(node, at)[0] for at in places]
            stack.extend((child, level - 1) for child in reversed(children))


class _Bytes:
    """Numbers one after another; `Damage` if there are not enough bytes."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.position = 0

    @property
    def left(self) -> int:
        return len(self._data) - self.position

    def take(self, length: int) -> bytes:
        if length > self.left:
            raise Damage("one of its structures is too short")
        self.position += length
        return self._data[self.position - length : self.position]

    def unsigned(self, length: int) -> int:
        return int.from_bytes(self.take(length), "little")

    def u8(self) -> int:
        return self.unsigned(1)

    def u16(self) -> int:
        return self.unsigned(2)

    def u32(self) -> int:
        return self.unsigned(4)

    def u64(self) -> int:
        return self.unsigned(8)


def _link(data: _Bytes) -> tuple[bytes, int | str]:
    """Return the name of a link, and the address that it leads to, or "link" if it has none."""
    if data.u8() != 1:
        raise Damage("a link has an unknown version")
    flags = data.u8()
    kind = data.u8() if flags & 8 else 0
    data.take((8 if flags & 4 else 0) + (1 if flags & 16 else 0))
    name = data.take(data.unsigned(1 << (flags & 3)))
    return name, data.u64() if kind == 0 else "link"


def _has_dense_links(data: _Bytes) -> bool:
    data.take(1)
    data.take(8 if data.u8() & 1 else 0)
    return data.u64() != UNDEFINED


def _shape(data: _Bytes) -> tuple[int, ...] | None:
    version, rank, _ = data.u8(), data.u8(), data.u8()
    if version not in (1, 2) or rank > 32:
        raise Damage("the shape of its flow has an unknown version")
    kind = data.take(5 if version == 1 else 1)
    if version == 2 and kind[0] == 2:
        return None
    return tuple(data.u64() for _ in range(rank))


def _dtype(data: _Bytes) -> np.dtype[np.floating] | None:
    kind, bits, size = data.u8(), data.take(3), data.u32()
    order, normalization = bits[0] & 0x41, bits[0] >> 4 & 3
    if kind & 15 != 1 or size not in _IEEE or order > 1 or normalization != 2:
        return None
    numbers = struct.unpack("<HHBBBBI", data.take(12))
    if (bits[1], *numbers) != _IEEE[size]:
        return None
    return np.dtype(f"{'>' if order else '<'}f{size}")


def _layout(data: _Bytes) -> tuple[str, bytes | None, int, int, tuple[int, ...] | None]:
    """Return how a dataset is stored: class, content, address, bytes, and the shape of chunks."""
    version, kind = data.u8(), data.u8()
    if version not in (3, 4, 5):
        raise Unsupported("is of a very old version of HDF5; write it again with h5py.")
    if kind == 0:
        content = data.take(data.u16())
        return "compact", content, 0, len(content), None
    if kind == 1:
        return "contiguous", None, data.u64(), data.u64(), None
    if kind == 3:
        return "virtual", None, 0, 0, None
    if kind != 2:
        raise Damage("its flow is stored in an unknown way")
    if version != 3:
        raise Unsupported(
            "is in the newest format of HDF5, of which Hamflow reads only flows without "
            'compression; write it again without libver="latest".'
        )
    rank, address = data.u8(), data.u64()
    return "chunked", None, address, 0, tuple(data.u32() for _ in range(rank))


def _filters(data: _Bytes) -> tuple[Filter, ...]:
    version, count = data.u8(), data.u8()
    if version not in (1, 2) or count > 32:
        raise Damage("its compression has an unknown version")
    data.take(6 if version == 1 else 0)
    found = []
    for _ in range(count):
        number = data.u16()
        named = data.u16() if version == 1 or number >= 256 else 0
        data.take(2)
        values = data.u16()
        data.take(-(-named // 8) * 8 if version == 1 else named)
        found.append(Filter(number, tuple(data.u32() for _ in range(values))))
        data.take(4 if version == 1 and values % 2 else 0)
    return tuple(found)

"""A dataclass in a ``.npz`` file: its arrays as they are, and everything else as JSON.

The annotations of the fields say what the file must hold, so a new field needs nothing here. A
field that is an array has the annotation ``NDArray[...]``, or that or None. Others may be numbers,
truth values, texts, dataclasses of them, and tuples and dictionaries of all these.
"""

from __future__ import annotations

import json
import os
import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, asdict, fields, is_dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hamflow.errors import FileError
from hamflow.io._atomic import atomic_write
from hamflow.io._npz import open_npz
from hamflow.io._reading import reason

T = TypeVar("T")

JSON_KEY = "json"
"""The array of the file that holds the JSON text."""
_LONGEST_TEXT = 2**24  # bytes
_MOST_CHANNELS = 4


def write_record(path: str | os.PathLike[str], record: Any) -> None:
    """Write all fields of a dataclass, atomically; arrays are compressed."""
    kind = type(record)
    hints = typing.get_type_hints(kind)
    arrays: dict[str, NDArray[Any]] = {}
    rest: dict[str, Any] = {}
    for field in fields(record):
        value = getattr(record, field.name)
        dtype = _array_type(hints[field.name])
        if dtype is None:
            rest[field.name] = value
        elif value is not None:
            arrays[field.name] = np.asarray(value, dtype.newbyteorder("<"))
        else:
            rest[field.name] = None  # so that a lost array is noticed
    text = json.dumps({"kind": kind.__name__, "fields": rest}, default=_plain)
    arrays[JSON_KEY] = np.frombuffer(text.encode(), np.uint8)
    with atomic_write(path) as file:
        typing.cast(Any, np.savez_compressed)(file, **arrays)  # its annotation lacks the arrays


def _plain(value: Any) -> Any:
    """Return what JSON does not know, a dataclass or a number of NumPy, as what it does know."""
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    return value.item()


def read_record(path: str | os.PathLike[str], kind: type[T]) -> T:
    """Read a dataclass that `write_record` has written.

    Raises
    ------
    FileError
        If the file is missing, damaged or of another kind.
    """
    name = os.fspath(path)
    hints = typing.get_type_hints(kind)
    with open_npz(path) as archive:
        if JSON_KEY not in archive:
            raise FileError(
                f"{name}: is no saved {kind.__name__}, because it holds no array called "
                f"{JSON_KEY}; read a flow alone with hamflow.read_flow."
            )
        values = _parsed(name, archive.read(JSON_KEY, _check_text).tobytes(), kind, hints)
        for key, hint in hints.items():
            dtype = _array_type(hint)
            if dtype is not None and key in archive:
                values[key] = archive.read(key, _checker(key, dtype)).astype(dtype, copy=False)
    missing = _missing(kind, values)
    if missing:
        raise FileError(f"{name}: lacks {', '.join(missing)}; save the {kind.__name__} again.")
    return kind(**values)


def _parsed(name: str, text: bytes, kind: type, hints: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of the JSON text, which are no arrays."""
    try:
        content = json.loads(text)
        if content["kind"] != kind.__name__:
            raise FileError(f"{name}: holds a {content['kind']}, not a {kind.__name__}.")
        stored = content["fields"]
        unknown = sorted(set(stored) - set(hints))
        if unknown:
            raise FileError(
                f"{name}: holds {', '.join(unknown)}, which this version of Hamflow does not "
                "know; update Hamflow."
            )
        return {key: decoded(hints[key], value, key) for key, value in stored.items()}
    except FileError:
        raise
    # Whatever a text of another form leads to.
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        raise FileError(
            f"{name}: is damaged ({reason(error)}); save the {kind.__name__} again."
        ) from error


def _missing(kind: Any, values: Mapping[str, Any]) -> list[str]:
    return [
        field.name
        for field in fields(kind)
        if field.name not in values
        and field.default is MISSING
        and field.default_factory is MISSING
    ]


def decoded(hint: Any, value: Any, key: str) -> Any:
    """Return a value of JSON as its annotation says; raise a ValueError if it does not fit."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        # Of a number or None, the one that it is.
        hint = type(None) if value is None else next(a for a in args if a is not type(None))
        return decoded(hint, value, key)
    if origin is tuple and isinstance(value, list):
        kinds = [args[0]] * len(value) if args[1:] == (...,) else args
        if len(kinds) == len(value):
            pairs = zip(kinds, value, strict=True)
            return tuple(decoded(kind, item, key) for kind, item in pairs)
    if origin is dict and isinstance(value, dict):
        return {item: decoded(args[1], value[item], key) for item in value}
    if is_dataclass(hint) and isinstance(value, dict):
        hints = typing.get_type_hints(hint)
        values = {item: decoded(hints[item], value[item], item) for item in value}
        if not _missing(hint, values):
            return typing.cast(Any, hint)(**values)
    if hint is type(value) or (hint is float and type(value) is int):
        return float(value) if hint is float else value
    raise ValueError(f"{key} is {value!r:.40}")


def _array_type(hint: Any) -> np.dtype[Any] | None:
    """Return the type of the numbers of an array; None if the annotation is not that of one."""
    for part in (hint, *typing.get_args(hint)):
        if typing.get_origin(part) is np.ndarray:
            scalar: type[np.generic] = typing.get_args(typing.get_args(part)[1])[0]
            return np.dtype(scalar)
    return None


def _check_text(name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    if dtype != np.uint8 or len(shape) != 1 or shape[0] > _LONGEST_TEXT:
        raise FileError(f"{name}: its array {JSON_KEY} holds no text; the file is damaged.")


def _checker(key: str, wanted: np.dtype[Any]) -> Any:
    def check(name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        if dtype.newbyteorder("=") != wanted:
            raise FileError(f"{name}: its array {key} is of the type {dtype.str}, not {wanted}.")
        if len(shape) not in (2, 3) or (len(shape) == 3 and not 0 < shape[2] <= _MOST_CHANNELS):
            raise FileError(f"{name}: its array {key} has the shape {shape}, which is no image.")

    return check

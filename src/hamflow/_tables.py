"""Settings in TOML files, converted to dataclasses."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import NoneType
from typing import Any, ClassVar, TypeVar, get_args, get_origin, get_type_hints

from hamflow.errors import FileError, InputError
from hamflow.io._reading import open_regular

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

T = TypeVar("T")

_LONGEST = 2**20  # bytes of a file; those of all settings together are a few thousand


def config_of_file(path: str | os.PathLike[str], convert: Callable[[dict[str, Any]], T]) -> T:
    """Read a TOML file and convert its tables.

    Raises
    ------
    FileError
        If the file cannot be read, is not TOML, or `convert` raises an InputError.
    """
    name = os.fspath(path)
    try:
        with open_regular(path) as file:
            text = file.read(_LONGEST + 1)
        if len(text) > _LONGEST:
            raise FileError(f"{name}: is too long for settings; give a TOML file of them.")
        return convert(tomllib.loads(text.decode()))
    except RecursionError as trouble:
        raise FileError(f"{name}: is nested too deeply for settings; correct it.") from trouble
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as trouble:
        raise FileError(f"{name}: is not TOML ({trouble}); correct it.") from trouble
    except InputError as trouble:
        raise FileError(f"{name}: {trouble}") from trouble


def build(
    kind: type[Any],
    values: Mapping[str, Any],
    where: str = "",
    ready: Mapping[str, Any] | None = None,
) -> Any:
    """Return an instance of a dataclass from nested tables; missing values have their defaults.

    Parameters
    ----------
    kind : type
        A dataclass, whose fields may be dataclasses as well.
    values : mapping
        The tables of a TOML file.
    where : str
        A prefix of the names in error messages.
    ready : mapping, optional
        Fields that need no conversion.

    Raises
    ------
    InputError
        If a name is unknown or a value has a wrong type.
    """
    hints = {
        name: hint
        for name, hint in get_type_hints(kind).items()
        if get_origin(hint) is not ClassVar
    }
    unknown = sorted(set(values) - set(hints))
    if unknown:
        raise InputError(f"{where}{unknown[0]} is unknown; possible are {', '.join(hints)}.")
    converted = {name: _value(hints[name], value, where + name) for name, value in values.items()}
    return kind(**converted, **(ready or {}))


def _value(hint: Any, value: object, where: str) -> object:
    choices = (hint,) if get_origin(hint) is tuple else get_args(hint) or (hint,)
    # TOML has no value for None.
    if NoneType in choices and (value is None or value == "none"):
        return None
    nested = next((c for c in choices if dataclasses.is_dataclass(c)), None)
    if nested is not None:
        if not isinstance(value, Mapping):
            raise InputError(f"{where} must be a table, not {value!r}.")
        assert isinstance(nested, type)
        return build(nested, value, f"{where}.")
    if Path in choices:
        if not isinstance(value, str):
            raise InputError(f"{where} must be a path, not {value!r}.")
        return Path(value)
    if any(get_origin(c) is tuple for c in choices):
        if not isinstance(value, list) or not all(type(item) is int for item in value):
            raise InputError(f"{where} must be a list of whole numbers, not {value!r}.")
        return tuple(value)
    return _scalar(choices, value, where)


def _scalar(choices: tuple[Any, ...], value: object, where: str) -> object:
    if float in choices and type(value) is int and abs(value) < 2**53:
        return float(value)
    plain = [c for c in choices if c in (bool, int, float)]
    if plain and type(value) not in plain:
        raise InputError(f"{where} must be of type {plain[0].__name__}, not {value!r}.")
    return value

"""Weights in files: exactly what was saved, or one sentence that says what is wrong."""

from __future__ import annotations

import hashlib
import io
import json
import os
import pickle
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as st

from _flows import fixture_is_fine
from _networks import SMALL, random_weights
from hamflow import load_model
from hamflow.descriptors.architecture import Architecture
from hamflow.descriptors.int8 import Scales
from hamflow.descriptors.weights import read_network, read_weights, save_weights
from hamflow.errors import FileError, InputError

NETWORK = SMALL["paper"]
WEIGHTS = random_weights(NETWORK)
Header = dict[str, Any]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "net.safetensors"
    save_weights(path, NETWORK, WEIGHTS, {"model": "fq"})
    return path


def refuses(path: Path, what: str | None = None) -> str:
    """Return the one sentence with which a file is refused."""
    with pytest.raises(FileError, match=what) as caught:
        read_weights(path)
    text = str(caught.value)
    assert text.startswith(f"{path}: ")
    assert text.endswith(".")
    return text


def parts(data: bytes) -> tuple[Header, bytes]:
    length = int.from_bytes(data[:8], "little")
    return json.loads(data[8 : 8 + length]), data[8 + length :]


def assemble(header: Header | str, data: bytes) -> bytes:
    text = (header if isinstance(header, str) else json.dumps(header)).encode()
    return len(text).to_bytes(8, "little") + text + data


def edited(path: Path, edit: Callable[[Header], object]) -> Path:
    header, data = parts(path.read_bytes())
    edit(header)
    path.write_bytes(assemble(header, data))
    return path


@pytest.mark.parametrize("network", SMALL.values(), ids=SMALL)
def test_round_trip(network: Architecture, tmp_path: Path) -> None:
    weights = random_weights(network)
    path = tmp_path / "net.safetensors"
    save_weights(path, network, weights, {"window": "64", "model": "fq", "λ": "\n"})
    architecture, found, metadata = read_weights(path)
    assert architecture == network
    assert list(found) == list(network.parameters())
    for name, value in found.items():
        assert (value == weights[name]).all()
        assert value.dtype == np.float32
        assert value.flags.writeable
    assert metadata["format"] == "hamflow-descriptor"
    assert metadata["version"] == "1"
    assert (metadata["window"], metadata["model"], metadata["λ"]) == ("64", "fq", "\n")


def test_the_library_reads_it(file: Path) -> None:
    found = safetensors.numpy.load_file(file)
    assert set(found) == set(WEIGHTS)
    assert all((found[name] == WEIGHTS[name]).all() for name in WEIGHTS)


def test_what_the_library_writes_is_read(file: Path) -> None:
    _, _, metadata = read_weights(file)
    safetensors.numpy.save_file(WEIGHTS, file, metadata)
    architecture, found, again = read_weights(file)
    assert architecture == NETWORK
    assert all((found[name] == WEIGHTS[name]).all() for name in WEIGHTS)
    assert again == metadata


def test_same_arguments_same_bytes(file: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.safetensors"
    extra = {"b": "2", "a": "1"}
    save_weights(file, NETWORK, WEIGHTS, extra)
    save_weights(other, NETWORK, dict(reversed(WEIGHTS.items())), dict(reversed(extra.items())))
    assert file.read_bytes() == other.read_bytes()


def test_every_length_of_header(tmp_path: Path) -> None:
    # Some headers have lengths that begin as a pickle does.
    path = tmp_path / "net.safetensors"
    for length in range(0, 280, 7):
        save_weights(path, NETWORK, WEIGHTS, {"note": "x" * length})
        assert read_weights(path)[0] == NETWORK


def test_scales(file: Path) -> None:
    scales = Scales(np.full(4, 0.02, np.float32), np.arange(4, dtype=np.uint8))
    save_weights(file, NETWORK, WEIGHTS, {"precision": "int8"}, scales)
    network = read_network(file)
    assert network.scales is not None
    assert all((a == b).all() for a, b in zip(network.scales, scales, strict=True))
    assert (network.variants, network.usual_variant) == (("float", "int8"), "int8")
    assert network.digest == hashlib.sha256(file.read_bytes()).hexdigest()
    # Who only wants the weights gets nothing else.
    assert list(read_weights(file)[1]) == list(NETWORK.parameters())
    header, _ = parts(file.read_bytes())
    metadata = header["__metadata__"]
    alone = WEIGHTS | {"int8.scale": scales.scale}
    safetensors.numpy.save_file(alone, file, metadata)
    refuses(file, r"they differ in int8\.scale")
    safetensors.numpy.save_file(alone | {"int8.zero_point": scales.scale}, file, metadata)
    refuses(file, r"int8\.zero_point must be an array of 4 uint8 numbers")


# --- pickles -------------------------------------------------------------------------------------


class Malicious:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (self.path,))


def pickles(target: Path) -> dict[str, bytes]:
    found = {f"protocol {n}": pickle.dumps(Malicious(target), n) for n in range(2, 6)}
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("archive/data.pkl", found["protocol 2"])
    return found | {"archive": archive.getvalue()}


@pytest.mark.parametrize("suffix", [".safetensors", ".pt", ".pth", ".pkl", ".PT"])
@pytest.mark.parametrize(
    "kind", ["protocol 2", "protocol 3", "protocol 4", "protocol 5", "archive"]
)
def test_pickles_are_not_opened(kind: str, suffix: str, tmp_path: Path) -> None:
    target, path = tmp_path / "created", tmp_path / f"net{suffix}"
    path.write_bytes(pickles(target)[kind])
    for read in (read_weights, load_model):
        with pytest.raises(
            FileError, match=r"is a pickle, which can contain programs, .* safetens"
        ):
            read(path)
    assert not target.exists()
    pickle.loads(pickles(target)["protocol 2"])
    assert target.exists()  # it would have been


@pytest.mark.parametrize("suffix", [".pt", ".pth", ".pkl", ".ckpt"])
def test_names_of_pickles(suffix: str, file: Path) -> None:
    refuses(file.rename(file.with_suffix(suffix)), "is a pickle")


# --- files that are wrong ------------------------------------------------------------------------


def test_missing(tmp_path: Path) -> None:
    refuses(tmp_path / "gone.safetensors", "does not exist")


def test_folder(tmp_path: Path) -> None:
    refuses(tmp_path, "is a directory")


@pytest.mark.parametrize("content", [b"", b"{}", b"hello, world", b"\x00" * 64, b"\xff" * 64])
def test_foreign(content: bytes, file: Path) -> None:
    file.write_bytes(content)
    refuses(file, "is not a safetensors file")


def test_huge_header(file: Path) -> None:
    data = file.read_bytes()
    file.write_bytes((2**40).to_bytes(8, "little") + data[8:])
    refuses(file, "is not a safetensors file")
    file.write_bytes(len(data).to_bytes(8, "little") + data[8:])
    refuses(file, "ends within its header")


def test_huge_file(file: Path) -> None:
    os.truncate(file, 2**40)  # takes no space
    refuses(file, "more than the 67108864")


@pytest.mark.parametrize(
    "header",
    [
        "{",
        "{" * 100_000,
        '{"a":' + "[" * 100_000,
        '{"a": 1, "a": 2}',
        '{"a": ' + "9" * 5000 + "}",
        "{\x00}",
    ],
)
def test_unreadable_headers(header: str, file: Path) -> None:
    file.write_bytes(assemble(header, b""))
    refuses(file, "is damaged .*header")


def test_other_tensors(file: Path) -> None:
    safetensors.numpy.save_file(WEIGHTS, file)
    refuses(file, "is not a descriptor of Hamflow")
    _, _, metadata = read_weights_of(NETWORK, file)
    safetensors.numpy.save_file(WEIGHTS | {"more": np.zeros(3, np.float32)}, file, metadata)
    refuses(file, "The weights are not those of the network; they differ in more")
    safetensors.numpy.save_file(dict(list(WEIGHTS.items())[1:]), file, metadata)
    refuses(file, r"not those of the network; they differ in layers\.0\.weight")


def read_weights_of(network: Architecture, path: Path) -> tuple[Any, Any, dict[str, str]]:
    save_weights(path, network, random_weights(network))
    return read_weights(path)


@pytest.mark.parametrize("dtype", ["<f8", "<i4"])
def test_other_types(dtype: str, file: Path) -> None:
    _, _, metadata = read_weights(file)
    others = {name: value.astype(dtype) for name, value in WEIGHTS.items()}
    safetensors.numpy.save_file(others, file, metadata)
    refuses(file, r"layers\.0\.weight must be an array of float32")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite(value: float, file: Path) -> None:
    _, _, metadata = read_weights(file)
    bad = {name: weight.copy() for name, weight in WEIGHTS.items()}
    bad["layers.1.bias"][2] = value
    safetensors.numpy.save_file(bad, file, metadata)
    refuses(file, r"layers\.1\.bias must be finite")


EDITS: dict[str, tuple[Callable[[Header], object], str]] = {
    "no metadata": (lambda h: h.pop("__metadata__"), "is not a descriptor"),
    "metadata that is a list": (lambda h: h.update(__metadata__=[]), "is damaged"),
    "metadata that is no text": (lambda h: h["__metadata__"].update(x=1), "is damaged"),
    "another format": (lambda h: h["__metadata__"].update(format="x"), "is not a descriptor"),
    "another version": (lambda h: h["__metadata__"].update(version="2"), "version '2' .* update"),
    "no architecture": (lambda h: h["__metadata__"].pop("architecture"), "describes no network"),
    "a list": (lambda h: h["__metadata__"].update(architecture="[]"), "describes no network"),
    "nonsense": (lambda h: h["__metadata__"].update(architecture="{"), "describes no network"),
    "a deep one": (
        lambda h: h["__metadata__"].update(architecture="[" * 100_000),
        "describes no network",
    ),
    "a huge one": (
        lambda h: h["__metadata__"].update(
            architecture=json.dumps(NETWORK.metadata() | {"channels": 10**9})
        ),
        "describes no network .*channels must be a whole number from 1 to 1024",
    ),
    "another one": (
        lambda h: h["__metadata__"].update(
            architecture=json.dumps(NETWORK.metadata() | {"channels": 5})
        ),
        r"layers\.0\.weight must have the shape \(5, 3, 3, 3\)",
    ),
    "an entry that is none": (
        lambda h: h.update({"layers.0.bias": 3}),
        "is damaged",
    ),
    "a type that numpy does not have": (
        lambda h: h["layers.0.bias"].update(dtype="BF16", shape=[8]),
        "holds tensors of type 'BF16'",
    ),
    "8 bits that are missing": (
        lambda h: h["__metadata__"].update(precision="int4"),
        "The notes ask for the variant 'int4', but there is none",
    ),
    "another shape": (lambda h: h["layers.0.bias"].update(shape=[2, 2]), "must have the shape"),
    "a shape of truths": (
        lambda h: h["layers.0.bias"].update(shape=[4, True]),
        "is damaged",
    ),
    "a shape of fractions": (
        lambda h: h["layers.0.bias"].update(shape=[4.0]),
        "is damaged",
    ),
    "a place before the start": (
        lambda h: h["layers.0.weight"].update(data_offsets=[-4, 428]),
        "is damaged",
    ),
    "a place beyond the end": (
        lambda h: h["layers.0.weight"].update(data_offsets=[2**40, 2**40 + 432]),
        "is damaged",
    ),
    "a place that is too small": (
        lambda h: h["layers.0.weight"].update(data_offsets=[0, 4]),
        "is damaged",
    ),
    "no place": (
        lambda h: h["layers.0.weight"].update(data_offsets=None),
        "is damaged",
    ),
}


@pytest.mark.parametrize("edit", EDITS)
def test_edited_headers(edit: str, file: Path) -> None:
    function, message = EDITS[edit]
    refuses(edited(file, function), message)


def test_too_much_and_too_little(file: Path) -> None:
    data = file.read_bytes()
    file.write_bytes(data + b"\x00")
    refuses(file, r"is damaged .* get the file again")
    file.write_bytes(data[:-1])
    refuses(file, r"is damaged .* get the file again")


ANY_TIME = settings(fixture_is_fine, max_examples=150)


@ANY_TIME
@given(data=st.data())
def test_truncations(data: st.DataObject, file: Path) -> None:
    save_weights(file, NETWORK, WEIGHTS)
    content = file.read_bytes()
    file.write_bytes(content[: data.draw(st.integers(0, len(content) - 1))])
    refuses(file)


@ANY_TIME
@given(data=st.data())
def test_changed_bytes(data: st.DataObject, file: Path) -> None:
    save_weights(file, NETWORK, WEIGHTS)
    content = bytearray(file.read_bytes())
    header = 8 + int.from_bytes(content[:8], "little")
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, header - 1) | st.integers(0, len(content) - 1))
        content[place] = data.draw(st.integers(0, 255))
    file.write_bytes(content)
    with suppress(FileError):
        # What can be changed is numbers, and the names and values of notes.
        architecture, weights, _ = read_weights(file)
        assert {n: w.shape for n, w in weights.items()} == architecture.parameters()


@ANY_TIME
@given(content=st.binary(max_size=200), length=st.integers(0, 200))
def test_random_headers(content: bytes, length: int, file: Path) -> None:
    file.write_bytes(length.to_bytes(8, "little") + b"{" + content)
    refuses(file)


# --- saving what is wrong ------------------------------------------------------------------------


def test_nothing_wrong_is_saved(tmp_path: Path) -> None:
    path = tmp_path / "net.safetensors"

    def refused(weights: Any, extra: Any, message: str) -> None:
        with pytest.raises(InputError, match=message):
            save_weights(path, NETWORK, weights, extra)

    bias = "layers.0.bias"
    refused({}, {}, "not those of the network")
    refused(WEIGHTS | {"more": WEIGHTS[bias]}, {}, "they differ in more")
    refused(
        WEIGHTS | {bias: WEIGHTS[bias].astype(float)}, {}, rf"{bias} must be an array of float32"
    )
    refused(WEIGHTS | {bias: WEIGHTS[bias][:2]}, {}, rf"{bias} must have the shape \(4,\)")
    refused(WEIGHTS | {bias: [1.0] * 4}, {}, rf"{bias} must be an array of float32")
    refused(WEIGHTS | {bias: np.full(4, np.nan, np.float32)}, {}, f"{bias} must be finite")
    refused(WEIGHTS, {"step": 3}, "must be text")
    refused(WEIGHTS, {"step": "\ud800"}, "must be text")
    refused(WEIGHTS, {"format": "x"}, "The note 'format' is reserved")
    refused(WEIGHTS, {"note": "x" * 2**20}, "do not fit into the header")
    assert os.listdir(tmp_path) == []


def test_folder_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="does not exist"):
        save_weights(tmp_path / "gone" / "net.safetensors", NETWORK, WEIGHTS)

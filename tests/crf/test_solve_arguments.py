"""What the solver takes and what it refuses, and parameters from a file."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from _crf_problems import Array, usual
from _problems import same_bytes
from hamflow import FileError, InputError, crf
from hamflow.crf import CrfConfig

BITS = np.zeros((5, 6), np.uint64)
THREE_WORDS = np.zeros((5, 6, 3), np.uint64)
PHI = np.zeros((5, 6, 4), np.float32)
IMAGE = np.zeros((5, 6, 3), np.uint8)
GOOD: dict[str, Any] = {"bits0": BITS, "bits1": BITS, "image": IMAGE, "window": 4}


def labels_with(value: int) -> Array:
    labels = np.zeros((5, 6), np.int16)
    labels[2, 3] = value
    return labels


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"bits1": None}, r"either bits0 and bits1, or phi0 and phi1"),
        ({"bits0": None, "bits1": None}, r"either bits0 and bits1, or phi0 and phi1"),
        ({"phi0": PHI, "phi1": PHI}, r"either bits0 and bits1, or phi0 and phi1"),
        ({"phi0": PHI}, r"either bits0 and bits1, or phi0 and phi1"),
        ({"bits1": None, "phi1": PHI}, r"either bits0 and bits1, or phi0 and phi1"),
        ({"bits0": BITS.astype(np.int64)}, r"bits0 must be of type uint64, not int64"),
        ({"bits1": BITS[:, 1:].copy()}, r"bits0 and bits1 must have one shape"),
        ({"bits0": BITS[0]}, r"bits0 must have 2 axes"),
        ({"bits0": BITS[..., None]}, r"bits0 and bits1 must have one shape"),
        ({"bits0": THREE_WORDS, "bits1": THREE_WORDS}, r"one or two words per pixel, not 3"),
        ({"bits0": BITS.tolist()}, r"bits0 must be a numpy array, not list"),
        ({"bits0": BITS[:, ::2]}, r"bits0 is not contiguous"),
        ({"bits0": BITS[:0], "bits1": BITS[:0]}, r"at least one element"),
        ({"image": IMAGE[1:]}, r"size of the descriptors, 6×5, but is 6×4"),
        ({"image": IMAGE.swapaxes(0, 1)}, r"size of the descriptors, 6×5, but is 5×6"),
        ({"image": IMAGE[..., :2]}, r"image must have the shape"),
        ({"image": None}, r"image is None"),
        ({"image": np.full((5, 6), np.nan)}, r"values from 0 to 1"),
        ({"image": np.full((5, 6), 255.0)}, r"values from 0 to 1"),
        ({"image": np.full((5, 6), -0.1)}, r"values from 0 to 1"),
        ({"image": IMAGE.astype(np.int32)}, r"uint8, uint16 or floating point, but is int32"),
        ({"image": IMAGE.astype(bool)}, r"uint8, uint16 or floating point, but is bool"),
        ({"window": 3}, r"even number"),
        ({"window": 0}, r"even number"),
        ({"window": (0, 0, 0, 1)}, r"du must be from 1"),
        ({"window": (0, 1, 0)}, r"four numbers"),
        ({"window": None}, r"whole number"),
        ({"initial_labels": (labels_with(4), labels_with(0))}, r"initial_labels .* 0 to 3"),
        ({"initial_labels": (labels_with(0), labels_with(-1))}, r"initial_labels .* 0 to 3"),
        (
            {"initial_labels": (labels_with(0).astype(int), labels_with(0))},
            r"initial_labels\[0\] must be of type int16",
        ),
        (
            {"initial_labels": (labels_with(0), labels_with(0)[1:])},
            r"initial_labels\[1\] must have the shape \(5, 6\)",
        ),
        ({"initial_lam": np.zeros((5, 6, 3), np.int16)}, r"initial_lam must have the shape"),
        ({"initial_lam": np.zeros((5, 6, 4), np.float32)}, r"initial_lam is of type float32"),
        ({"initial_lam": np.zeros((5, 6), np.int16)}, r"initial_lam must have 3 axes"),
    ],
)
def test_bad_arguments(changes: dict[str, Any], sentence: str) -> None:
    crf.solve(**GOOD)
    with pytest.raises(InputError, match=sentence) as error:
        crf.solve(**GOOD | changes)
    assert str(error.value).endswith(".")


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e20])
def test_bad_floats(value: float) -> None:
    phi = PHI.copy()
    phi[1, 2, 3] = value
    with pytest.raises(InputError, match="phi1 has values"):
        crf.solve(phi0=PHI, phi1=phi, image=IMAGE, window=4)


def test_floats_need_float32() -> None:
    config = CrfConfig(arithmetic="int16")
    with pytest.raises(InputError, match="'int16' needs bits"):
        crf.solve(phi0=PHI, phi1=PHI, image=IMAGE, window=4, config=config)


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("alpha", -1.0, "alpha must not be negative"),
        ("tau1", -0.1, "tau1 must not be negative"),
        ("gap_tolerance", -1e-9, "gap_tolerance must not be negative"),
        ("tau2", 0.2, "tau2 must be at least tau1, but 0.2 < 0.25"),
        ("delta", 1.99, "delta must be at least 2"),
        ("kappa", -0.01, "kappa must be from 0 to 1"),
        ("kappa", 1.01, "kappa must be from 0 to 1"),
        ("outer", 0, "outer must be at least 1"),
        ("inner", -3, "inner must be at least 1"),
        ("outer", 2.5, "outer must be a whole number, not 2.5"),
        ("inner", None, "inner must be a whole number, not None"),
        ("minorant", "tree", "minorant must be one of 'sequential', 'hierarchical', not 'tree'"),
        ("rounding", None, "rounding must be one of 'argmin', 'icm', 'rows', 'chains', not None"),
        ("arithmetic", "int8", "arithmetic must be one of 'auto', 'int16', 'float32', not 'int8'"),
        ("tau2", "much", "tau2 must be a number, not 'much'"),
        *(
            (name, value, f"{name} must be finite")
            for name in ("c_outside", "alpha", "tau1", "tau2", "delta", "gap_tolerance", "kappa")
            for value in (math.nan, math.inf)
        ),
    ],
)
def test_bad_parameters(name: str, value: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence) as error:
        CrfConfig(**{name: value})
    assert str(error.value).endswith(".")


def test_parameters_of_numpy() -> None:
    config = CrfConfig(tau2=np.float32(50), outer=np.int64(2))  # type: ignore[arg-type]
    assert (type(config.tau2), type(config.outer)) == (float, int)
    assert config == CrfConfig(tau2=50.0, outer=2)
    assert CrfConfig.paper() == CrfConfig(outer=5, inner=8, gap_tolerance=0.0, rounding="argmin")


def test_nothing_is_written_to_the_arguments() -> None:
    problem = usual()
    arrays = [*problem.descriptors.values(), problem.image]
    kept = [array.copy() for array in arrays]
    for array in arrays:
        array.flags.writeable = False
    problem.solve()
    assert all(same_bytes(a, b) for a, b in zip(arrays, kept, strict=True))


# --- parameters from a file -----------------------------------------------------------------------


@pytest.mark.parametrize("table", ["", "[matcher]\n"])
def test_parameters_from_a_file(tmp_path: Path, table: str) -> None:
    file = tmp_path / "crf.toml"
    file.write_text(f"{table}tau1 = 4.0\nouter = 3\nrounding = 'icm'\n")
    assert CrfConfig(tau2=50).updated(file) == CrfConfig(tau1=4, tau2=50, outer=3, rounding="icm")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tau1 = ", "is not TOML"),
        ("tau3 = 1.0", "tau3 is unknown; possible are c_outside, alpha"),
        ("tau1 = 100.0", "tau2 must be at least tau1"),
        (None, "does not exist"),
    ],
)
def test_a_bad_file_of_parameters(tmp_path: Path, text: str | None, message: str) -> None:
    file = tmp_path / "crf.toml"
    if text is not None:
        file.write_text(text)
    with pytest.raises(FileError, match=f"crf.toml: .*{message}"):
        CrfConfig().updated(file)

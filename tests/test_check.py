"""Validation of images and of settings, which all packages share."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from hamflow._check import as_flow, as_intensities, check_range, to_bytes, to_rgb, unit_intensities
from hamflow.errors import InputError


@pytest.mark.parametrize(
    ("value", "limits", "options", "words"),
    [
        (5, (0, 4), {}, "a number from 0 to 4, not 5"),
        (-0.1, (0, 4), {}, "a number from 0 to 4, not -0.1"),
        (float("nan"), (0, 4), {}, "a number from 0 to 4, not nan"),
        ("2", (0, 4), {}, "a number from 0 to 4, not '2'"),
        (True, (0, 4), {}, "a number from 0 to 4, not True"),
        (2.0, (0, 4), {"whole": True}, "a whole number from 0 to 4, not 2.0"),
        (True, (0, 4), {"whole": True}, "a whole number from 0 to 4, not True"),
        (2**30 + 1, (0, 2**30), {"whole": True}, "a whole number from 0 to 1073741824, not 107374"),
        (-1, (0,), {"whole": True}, "a whole number of at least 0, not -1"),
        (0, (0, 1), {"above": True}, "a number above 0 and at most 1, not 0"),
        (0.0, (0,), {"above": True}, "a number above 0, not 0.0"),
        (1, (1e-6, 0.5), {}, "a number from 1e-06 to 0.5, not 1"),
    ],
)
def test_out_of_range(value: Any, limits: Any, options: Any, words: str) -> None:
    with pytest.raises(InputError) as caught:
        check_range(SimpleNamespace(it=value), "it", *limits, **options)
    assert str(caught.value).startswith(f"it must be {words}")


@pytest.mark.parametrize(
    ("value", "limits", "options"),
    [
        (0, (0, 4), {}),
        (4.0, (0, 4), {}),
        (float("inf"), (0,), {}),
        (4, (0, 4), {"whole": True}),
        (1e-42, (0, 1), {"above": True}),
    ],
)
def test_in_range(value: Any, limits: Any, options: Any) -> None:
    check_range(SimpleNamespace(it=value), "it", *limits, **options)


def test_pixels() -> None:
    for dtype, top in ((np.uint8, 255), (np.uint16, 65535), (np.float16, 1), (np.float64, 1)):
        image = np.array([[0, top]], dtype)
        assert as_intensities(image) is image
        unit = unit_intensities(image)
        assert unit.dtype == np.float32
        assert unit.tolist() == [[0, 1]]
    for bad, remedy in (
        (1.5, "divide it by 255"),
        (256, "divide it by 65535"),
        (65536, "divide it by its largest"),
        (-0.1, "undo"),
        (np.nan, "replace those that"),
    ):
        with pytest.raises(InputError, match=f"^first must have values from 0 to 1.*; .*{remedy}"):
            as_intensities([[float(bad)]], "first")
    for dtype in (bool, np.int32, complex):
        with pytest.raises(InputError, match="must be of type uint8, uint16 or floating point"):
            unit_intensities(np.zeros((2, 2), dtype))
    with pytest.raises(InputError, match="must have the shape"):
        as_intensities(np.zeros((2, 2, 4), np.uint8))


def test_to_bytes() -> None:
    assert to_bytes(np.array([[0, 128, 129, 65535]], np.uint16)).tolist() == [[0, 0, 1, 255]]
    assert to_bytes(np.array([[0, 0.5, 1]])).tolist() == [[0, 128, 255]]
    assert to_bytes(np.array([[False, True]])).tolist() == [[0, 255]]
    assert to_bytes([[1.0, 0.0]], "mask").tolist() == [[255, 0]]
    with pytest.raises(InputError, match=r"^mask must have values from 0 to 1"):
        to_bytes(np.array([[2.0]]), "mask")
    assert to_rgb(np.array([[0, 7]], np.uint8)).tolist() == [[[0, 0, 0], [7, 7, 7]]]


def test_nothing() -> None:
    with pytest.raises(InputError, match=r"^first is None; OpenCV's imread returns this"):
        as_intensities(None, "first")  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"^backward is None; pass an array"):
        as_flow(None, "backward")  # type: ignore[arg-type]


# --- tensors ---


def test_tensors() -> None:
    torch = pytest.importorskip("torch")
    image = torch.arange(48, dtype=torch.uint8).reshape(2, 8, 3)
    assert (as_intensities(image) == image.numpy()).all()
    assert np.shares_memory(as_intensities(image), image.numpy())
    flow = torch.zeros((2, 4, 2))
    assert as_flow(flow).dtype == np.float32
    with pytest.raises(InputError, match=r"^first is a tensor .*; pass first\.detach\(\)\.$"):
        as_intensities(torch.zeros((2, 4, 3), requires_grad=True), "first")
    with pytest.raises(InputError, match=r"; pass flow\.detach\(\)\.$"):
        as_flow(flow.requires_grad_())
    with pytest.raises(
        InputError, match=r"\.transpose\(1, 2, 0\), .*\.permute\(1, 2, 0\) if it is a tensor\.$"
    ):
        as_intensities(image.permute(2, 0, 1), "first")
    with pytest.raises(InputError, match=r"\.permute\(1, 2, 0\) if it is a tensor\.$"):
        as_flow(torch.zeros((2, 6, 5)))
    with pytest.raises(InputError, match=r"pass one of them at a time, such as first\[0\]"):
        as_intensities(image[None], "first")
    with pytest.raises(InputError, match=r"; pass image\.float\(\)\.$"):
        as_intensities(torch.zeros((2, 4), dtype=torch.bfloat16))
    # Where torch has no graphics card, a tensor without memory stands for one on it.
    for gradient, calls in ((False, ".cpu()"), (True, ".detach().cpu()")):
        away = torch.zeros((2, 4, 3), device="meta", requires_grad=gradient)
        with pytest.raises(InputError, match=re.escape(f"pass first{calls}.")):
            as_intensities(away, "first")

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from _trees import check_pair, message_of, save_flow, save_image, scene
from hamflow.datasets.chairs import FlyingChairsDataset
from hamflow.errors import InputError

NUMBERS = (1, 2, 4, 11)
OFFICIAL = "FlyingChairs_train_val.txt"


@pytest.fixture
def chairs(tmp_path: Path) -> Path:
    root = tmp_path / "FlyingChairs_release"
    for number in NUMBERS:
        shown, stem = scene(number), f"{number:05}"
        save_image(root / "data" / f"{stem}_img1.ppm", shown.image0)
        save_image(root / "data" / f"{stem}_img2.ppm", shown.image1)
        save_flow(root / "data" / f"{stem}_flow.flo", shown.flow)
    (root / "data/README").write_text("no pair")
    return root


def names(numbers: tuple[int, ...]) -> tuple[str, ...]:
    return tuple(f"{number:05}" for number in numbers)


def test_all(chairs: Path) -> None:
    for split in ("all", "training"):
        data = FlyingChairsDataset(chairs, split=split)
        assert data.names == names(NUMBERS)
    for pair, number in zip(data, NUMBERS, strict=True):
        check_pair(pair, scene(number))
        assert pair.occluded is None


@pytest.mark.parametrize("file", [OFFICIAL, "chairs_split.txt"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_split(chairs: Path, file: str, end: str) -> None:
    marks = ["1", "2", "1", "1", *["2"] * 6, "2"]
    (chairs / file).write_bytes((end.join(marks) + end).encode())
    assert FlyingChairsDataset(chairs).names == names((1, 4))
    assert FlyingChairsDataset(chairs, split="validation").names == names((2, 11))
    assert FlyingChairsDataset(chairs, split="all").names == names(NUMBERS)
    (pair, _) = FlyingChairsDataset(chairs, split="validation")
    assert np.array_equal(pair.flow, scene(2).flow)


def test_no_split_to_validate_on(chairs: Path) -> None:
    said = message_of(lambda: FlyingChairsDataset(chairs, split="validation"), chairs / OFFICIAL)
    assert "does not exist" in said
    assert "get this file" in said


@pytest.mark.parametrize("text", ["", "1\n2\n", "1\n2\n1\n3\n" + "1\n" * 7, "1\n\n2\n1\n\n"])
def test_damaged_split(chairs: Path, text: str) -> None:
    (chairs / OFFICIAL).write_text(text)
    assert "must be 1 (training) or 2 (validation)" in message_of(
        lambda: FlyingChairsDataset(chairs), chairs / OFFICIAL
    )


def test_missing_pieces(chairs: Path) -> None:
    for kind in ("img2.ppm", "flow.flo"):
        path = chairs / f"data/00004_{kind}"
        path.rename(chairs / "away")
        said = message_of(lambda: FlyingChairsDataset(chairs), path)
        assert "does not exist; expected is FlyingChairs' tree" in said
        assert "data/00001_flow.flo" in said
        (chairs / "away").rename(path)
    message_of(lambda: FlyingChairsDataset(chairs / "data"), chairs / "data/data")
    shutil.rmtree(chairs / "data")
    (chairs / "data").mkdir()
    assert "holds no image pairs" in message_of(lambda: FlyingChairsDataset(chairs), chairs)
    with pytest.raises(InputError, match="split must be training, validation or all, not 'test'"):
        FlyingChairsDataset(chairs, split="test")  # type: ignore[arg-type]

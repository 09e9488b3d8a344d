"""Where the pairs of a batch come from."""

from __future__ import annotations

import csv
from pathlib import Path

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hamflow
from _batches import write_frames
from _videos import moving, write_video
from hamflow.datasets import SyntheticConfig, open_dataset
from hamflow.datasets.synthetic import write_sintel
from hamflow.errors import FileError, HamflowError, InputError
from hamflow.scale.pairs import ImagePair
from hamflow.scale.sources import open_source


def names(pairs: list[ImagePair]) -> list[str]:
    return [pair.name for pair in pairs]


def test_folder_of_frames(tmp_path: Path) -> None:
    write_frames(tmp_path, 3)
    pairs, described = open_source(tmp_path)
    assert pairs == [
        ImagePair("f00", str(tmp_path / "f00.png"), str(tmp_path / "f01.png")),
        ImagePair("f01", str(tmp_path / "f01.png"), str(tmp_path / "f02.png")),
    ]
    assert described == {"input": [tmp_path.name], "every": 1}
    assert names(open_source(tmp_path, every=2)[0]) == ["f00"]


def test_relative_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers may have another current folder."""
    write_frames(tmp_path / "in", 2)
    monkeypatch.chdir(tmp_path)
    assert open_source("in")[0] == open_source(tmp_path / "in")[0]
    assert open_source(".")[1]["input"] == [tmp_path.name]


def test_natural_order(tmp_path: Path) -> None:
    for name in ("f1", "f2", "f10"):
        hamflow.write_image(tmp_path / f"{name}.png", np.zeros((4, 4), np.uint8))
    pairs = open_source(tmp_path)[0]
    assert [Path(pair.image1).stem for pair in pairs] == ["f2", "f10"]


def test_tree(tmp_path: Path) -> None:
    write_frames(tmp_path / "a" / "b", 2)
    write_frames(tmp_path / "c", 3)
    write_frames(tmp_path / ".hidden", 3)
    pair = tmp_path / "pair"
    pair.mkdir()
    for name in ("frame1", "frame2", "flow", "occ"):  # as the data set `folder` has it
        hamflow.write_image(pair / f"{name}.png", np.zeros((4, 4), np.uint8))
    (tmp_path / "notes.txt").write_text("no image")
    found = open_source(tmp_path)[0]
    assert names(found) == ["a/b/f00", "c/f00", "c/f01", "pair"]
    assert found[-1].image1 == str(pair / "frame2.png")
    several = open_source([tmp_path / "c", tmp_path / "a"])[0]
    assert names(several) == ["c/f00", "c/f01", "a/b/f00"]


def test_videos(tmp_path: Path) -> None:
    one = write_video(tmp_path / "one.mp4", moving(3))
    two = write_video(tmp_path / "two.avi", moving(2))
    broken = tmp_path / "broken.mp4"
    broken.write_bytes(b"no video")
    pairs = open_source([one, two, broken])[0]
    assert names(pairs) == ["one/frame_0001", "one/frame_0002", "two/frame_0001", "broken"]
    assert pairs[1] == ImagePair("one/frame_0002", str(one), str(one), 1, 2)
    assert names(open_source(tmp_path)[0]) == ["broken", *names(pairs)[:3]]
    with pytest.raises(FileError, match=r"missing\.mp4: does not exist"):
        open_source([one, tmp_path / "missing.mp4"])


def test_data_set(tmp_path: Path) -> None:
    write_sintel(tmp_path, SyntheticConfig(height=32, width=48), 2)
    data = open_dataset("sintel", tmp_path)
    pairs, described = open_source(data)
    assert names(pairs) == list(data.names)
    assert pairs[0].image0 == str(data[0].image0_path)
    assert described == {"dataset": "SintelDataset"}


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_tables(tmp_path: Path, kind: str) -> None:
    rows = [
        {"image0": "a.png", "image1": "b.png", "name": "x/y", "other": "1"},
        {"image0": "/c.png", "image1": "s3://bucket/d.png", "name": "", "other": ""},
        {"image0": "file:///e%20f.png", "image1": "g.png", "name": "z", "other": ""},
    ]
    table = tmp_path / f"pairs.{kind}"
    if kind == "csv":
        with open(table, "w", encoding="utf-8-sig", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    else:
        pq.write_table(pa.Table.from_pylist(rows), table)
    assert open_source(table)[0] == [
        ImagePair("x/y", str(tmp_path / "a.png"), str(tmp_path / "b.png")),
        ImagePair("pair_0002", "/c.png", "s3://bucket/d.png"),
        ImagePair("z", "/e f.png", str(tmp_path / "g.png")),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("first,second\na,b\n", "columns called image0 and image1"),
        ("image0,image1\n", "columns called image0 and image1"),
        ("image0,image1\na\n", "row 1 of this CSV table has too many or too few cells"),
        ("image0,image1\na,b\na,\n", "row 2 has no image1"),
        ('image0,image1\n"a,b\n', "is not a CSV table"),
        ("image0,image1,name\na,b,x\nc,d,x\n", "Two pairs have the name 'x'"),
        ("image0,image1,name\na,b,../x\n", "cannot be that of a file"),
        ("image0,image1,name\na,b,/x\n", "cannot be that of a file"),
        ("image0,image1,name\na,b," + 201 * "x", "cannot be that of a file"),
    ],
)
def test_wrong_tables(tmp_path: Path, text: str, message: str) -> None:
    table = tmp_path / "pairs.csv"
    table.write_text(text)
    with pytest.raises(HamflowError, match=message):
        open_source(table)


def test_wrong_parquet(tmp_path: Path) -> None:
    (tmp_path / "pairs.parquet").write_bytes(b"PAR1 is not all")
    with pytest.raises(FileError, match="is not a Parquet table"):
        open_source(tmp_path / "pairs.parquet")


def test_nothing(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no pairs"):
        open_source(tmp_path)
    with pytest.raises(InputError, match="every must be at least 1"):
        open_source(tmp_path, every=0)


def test_urls(tmp_path: Path) -> None:
    write_frames(tmp_path, 3)
    memory = fsspec.filesystem("memory")
    memory.put(str(tmp_path), "/frames", recursive=True)
    memory.pipe("/list/pairs.csv", b"image0,image1\na.png,memory://frames/f01.png\n")
    try:
        pairs = open_source("memory://frames")[0]
        assert names(pairs) == ["f00", "f01"]
        assert pairs[0].image1 == "memory://frames/f01.png"
        assert open_source("memory://list/pairs.csv")[0] == [
            ImagePair("pair_0001", "memory://list/a.png", "memory://frames/f01.png")
        ]
        with pytest.raises(FileError, match="cannot be reached"):
            open_source("nonsense://frames")
    finally:
        memory.rm("/frames", recursive=True)
        memory.rm("/list", recursive=True)

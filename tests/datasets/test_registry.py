from __future__ import annotations

import json
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

import hamflow.datasets
from _problems import run_python
from _trees import check_pair, save_flow, save_image, save_pair, scene
from hamflow.datasets import PairDataset, SyntheticConfig, SyntheticDataset, open_dataset, registry
from hamflow.datasets.folder import FolderDataset
from hamflow.datasets.sintel import SintelDataset
from hamflow.errors import FileError, InputError

ON_DISK = sorted(set(registry.DATASETS) - {"synthetic"})

ROOMS = '''
from hamflow.datasets._listing import Listing, Root
from hamflow.datasets.flow_pair import FlowPair
from hamflow.datasets.pair_dataset import PairDataset

_EXPECTED = "expected are ROOT/frames/00001_a.png, 00001_b.png and ROOT/flow/00001.flo and so on."


class RoomsDataset(PairDataset):
    """The pairs of the Rooms data set."""

    def __init__(self, root: Root, *, dark: bool = False) -> None:
        top = Listing(root, _EXPECTED)
        frames, flows = top.folder("dark" if dark else "frames"), top.folder("flow")
        pairs = (
            FlowPair(
                match[1],
                frames.file(match[0]),
                frames.file(f"{match[1]}_b.png"),
                flow_path=flows.file(f"{match[1]}.flo"),
            )
            for match in frames.matches(r"(\\d{5})_a\\.png")
        )
        super().__init__(top, pairs)
'''
"""The example of docs/architecture.md, with an option."""


@pytest.fixture
def sintel(tmp_path: Path) -> Path:
    for k in range(1, 12):
        save_image(tmp_path / f"training/final/alley_1/frame_{k:04}.png", scene(k).image0)
        save_flow(tmp_path / f"training/flow/alley_1/frame_{k:04}.flo", scene(k).flow)
    return tmp_path


def test_names() -> None:
    assert get_args(registry.DatasetName) == tuple(registry.DATASETS)
    assert set(registry.DATASETS) == {
        *("sintel", "kitti2012", "kitti2015", "middlebury", "middlebury-stereo", "chairs"),
        *("things", "spring", "hd1k", "folder", "synthetic"),
    }


@pytest.mark.parametrize("name", ON_DISK)
def test_every_one_says_what_it_expects(name: str, tmp_path: Path) -> None:
    for root in (tmp_path, tmp_path / "gone"):
        with pytest.raises(
            FileError, match=r"(does not exist|holds no image pairs); expected (is|are) "
        ):
            open_dataset(name, root)


def test_options(sintel: Path) -> None:
    data = open_dataset("sintel", sintel, pass_="final")
    assert isinstance(data, SintelDataset)
    assert len(data) == 10
    assert np.array_equal(data[0].flow, scene(1).flow)
    assert open_dataset("sintel", str(sintel), pass_="final", subset=None).names == data.names
    share = open_dataset("sintel", sintel, pass_="final", subset=0.2)
    assert share.names == data.evenly(0.2).names == ("alley_1/frame_0003", "alley_1/frame_0008")
    assert open_dataset("sintel", sintel, pass_="final", subset=1).names == data.names
    one = open_dataset("sintel", sintel, pass_="final", subset=["alley_1/frame_0004"])
    assert one.names == ("alley_1/frame_0004",)
    assert len(open_dataset("sintel", sintel, pass_="final", subset="alley_1")) == 10


def test_folder(tmp_path: Path) -> None:
    save_pair(tmp_path / "group/pair", scene())
    data = open_dataset("folder", tmp_path)
    assert isinstance(data, FolderDataset)
    check_pair(data[0], scene())


def test_synthetic(tmp_path: Path) -> None:
    config = SyntheticConfig(height=32, width=48)
    data = open_dataset("synthetic", config=config, seed=3, size=2)
    assert isinstance(data, SyntheticDataset)
    assert len(data) == 2
    expected = SyntheticDataset(config, seed=3, size=2)[1]
    assert np.array_equal(data[1].image0, expected.image0)
    save_image(tmp_path / "photo.png", scene().image0)
    assert open_dataset("synthetic", tmp_path).folder == str(tmp_path)


def test_unknown_things(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^There is no data set 'sintl'; known are chairs, fold"):
        open_dataset("sintl", tmp_path)
    with pytest.raises(
        InputError,
        match=r"^The data set sintel has no option 'pass'; possible are split, pass_, subset\.$",
    ):
        open_dataset("sintel", tmp_path, **{"pass": "clean"})
    with pytest.raises(InputError, match=r"possible are subset\.$"):
        open_dataset("folder", tmp_path, split="test")
    with pytest.raises(InputError, match=r"no option 'subset'; possible are config, seed, size\.$"):
        open_dataset("synthetic", subset=0.5)
    with pytest.raises(InputError, match=r"^The data set spring needs its root"):
        open_dataset("spring")
    with pytest.raises(InputError, match=r"^split must be training or test"):
        open_dataset("hd1k", tmp_path, split="all")


def test_public_names_are_complete() -> None:
    assert hamflow.datasets.__all__ == sorted(hamflow.datasets.__all__)
    with pytest.raises(AttributeError, match=r"No hamflow\.datasets attribute Gold"):
        hamflow.datasets.Gold  # noqa: B018


def test_a_new_data_set_is_one_file_and_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "new_rooms.py").write_text(ROOMS)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(registry.DATASETS, "rooms", "new_rooms:RoomsDataset")
    root = tmp_path / "data"
    save_image(root / "frames/00007_a.png", scene().image0)
    save_image(root / "frames/00007_b.png", scene().image1)
    save_flow(root / "flow/00007.flo", scene().flow)
    data = open_dataset("rooms", root, subset="00007")
    assert isinstance(data, PairDataset)
    check_pair(data[0], scene())
    assert registry.dataset_options("rooms") == ["dark", "subset"]
    with pytest.raises(FileError, match=r"dark: does not exist; expected are ROOT/frames/"):
        open_dataset("rooms", root, dark=True)


def test_only_what_is_needed_is_loaded() -> None:
    code = (
        "import hamflow.datasets, json, sys\n"
        "try: hamflow.datasets.open_dataset('hd1k', '/gone')\n"
        "except ValueError: pass\n"
        "print(json.dumps(list(sys.modules)))"
    )
    run = run_python("-c", code)
    assert run.returncode == 0, run.stderr
    loaded = set(json.loads(run.stdout))
    assert "hamflow.datasets.hd1k" in loaded
    others = {"spring", "things", "sintel", "kitti", "middlebury_stereo", "synthetic"}
    assert loaded.isdisjoint({f"hamflow.datasets.{name}" for name in others})
    assert loaded.isdisjoint({"torch", "h5py", "onnxruntime", "cv2", "rich", "tyro"})

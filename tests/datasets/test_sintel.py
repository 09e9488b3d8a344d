from __future__ import annotations

import os
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from _trees import check_pair, message_of, save_flow, save_image, save_mask, scene
from hamflow.datasets import PairDataset, SyntheticConfig, SyntheticDataset
from hamflow.datasets.pair_dataset import evenly
from hamflow.datasets.sintel import SintelDataset
from hamflow.datasets.synthetic import write_sintel
from hamflow.errors import InputError

NAMES = ("alley_1/frame_0001", "alley_1/frame_0002", "bamboo_2/frame_0001")
LENGTHS = {"alley_1": 3, "bamboo_2": 2}


def invalid_of() -> NDArray[np.bool_]:
    mask = np.zeros((40, 56), np.bool_)
    mask[5:9, 3:] = True
    return mask


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Frame k of a scene shows the first frame of the scene with the seed k."""
    root = tmp_path_factory.mktemp("sintel")
    for split in ("training", "test"):
        for name, length in LENGTHS.items():
            for k in range(1, length + 1):
                for pass_, brighter in (("clean", 0), ("final", 1)):
                    path = root / split / pass_ / name / f"frame_{k:04}.png"
                    save_image(path, scene(k).image0 // 2 + np.uint8(brighter))
    for name, length in LENGTHS.items():
        for k in range(1, length):
            below = root / "training"
            save_flow(below / "flow" / name / f"frame_{k:04}.flo", scene(k).flow)
            save_mask(below / "occlusions" / name / f"frame_{k:04}.png", scene(k).occluded)
            save_mask(below / "invalid" / name / f"frame_{k:04}.png", invalid_of())
    (root / "training/clean/.DS_Store").write_text("of the Finder")
    (root / "training/clean/alley_1/._frame_0001.png").write_text("of the Finder")
    (root / "README.txt").write_text("no scene")
    return root


@pytest.fixture
def tree(written: Path, tmp_path: Path) -> Path:
    """A copy to damage."""
    return Path(shutil.copytree(written, tmp_path / "sintel"))


@pytest.mark.parametrize("pass_", ["clean", "final"])
def test_training(written: Path, pass_: str) -> None:
    data = SintelDataset(written, pass_=pass_)  # type: ignore[arg-type]
    assert data.names == NAMES
    assert data.groups == ("alley_1", "bamboo_2")
    brighter = np.uint8(pass_ == "final")
    for pair, first in zip(data, (1, 2, 1), strict=True):
        assert np.array_equal(pair.image0, scene(first).image0 // 2 + brighter)
        assert np.array_equal(pair.image1, scene(first + 1).image0 // 2 + brighter)
        assert (np.isnan(pair.flow) == invalid_of()[:, :, None]).all()
        assert (pair.flow == scene(first).flow)[~invalid_of()].all()
        assert np.array_equal(pair.occluded, scene(first).occluded)


def test_test_split_has_no_truth(written: Path) -> None:
    data = SintelDataset(str(written), split="test", pass_="final")
    assert data.names == NAMES
    pair = data[1]
    assert pair.image0.shape == pair.image1.shape == (40, 56, 3)
    assert pair.occluded is None
    assert pair.flow_path is None
    message = message_of(lambda: pair.flow, written / "test/final/alley_1/frame_0002.png")
    assert "not known" in message
    assert "use a split with known flow" in message


def test_parts(written: Path) -> None:
    data = SintelDataset(written)
    assert data.subset("alley_1").names == NAMES[:2]
    assert data.subset(["bamboo_2/frame_0001"]).names == NAMES[2:]
    assert data[1:].names == NAMES[1:]
    assert data[::-1].names == NAMES[::-1]
    assert isinstance(data[1:], SintelDataset)
    assert isinstance(data.evenly(0.5), SintelDataset)
    assert repr(data[:2]) == f"<SintelDataset {str(written / 'training')!r}: 2 pairs>"
    with pytest.raises(InputError, match="'alley_3', which is neither a pair nor a group"):
        data.subset("alley_3")
    copied = pickle.loads(pickle.dumps(data))
    assert copied.names == NAMES
    assert np.array_equal(copied[0].image0, data[0].image0)


def test_only_names_are_looked_at(tree: Path) -> None:
    for path in (tree / "training").rglob("frame_*"):
        path.write_bytes(b"damaged")
    data = SintelDataset(tree)
    assert data.names == NAMES
    message_of(lambda: data[0].image0, tree / "training/clean/alley_1/frame_0001.png")


def test_masks_are_optional(tree: Path) -> None:
    shutil.rmtree(tree / "training/occlusions/alley_1")
    shutil.rmtree(tree / "training/invalid")
    first, _, last = SintelDataset(tree)
    assert first.occluded is None
    assert last.occluded is not None
    assert (first.flow == scene(1).flow).all()


def test_missing_pieces(tree: Path) -> None:
    def message(missing: str) -> str:
        return message_of(lambda: SintelDataset(tree), tree / missing)

    for file in ("training/clean/alley_1/frame_0002.png", "training/flow/alley_1/frame_0002.flo"):
        (tree / file).rename(tree / "away")
        said = message(file)
        assert "does not exist; expected is MPI-Sintel's tree" in said
        assert "training/flow/<scene>/frame_0001.flo" in said
        (tree / "away").rename(tree / file)
    shutil.rmtree(tree / "training/flow/bamboo_2")
    assert "does not exist; expected" in message("training/flow/bamboo_2")
    shutil.rmtree(tree / "training/flow")
    message("training/flow")
    # Nothing but the truth is missing.
    assert len(SintelDataset(tree, split="test")) == 3
    shutil.rmtree(tree / "training/clean")
    message("training/clean")
    (tree / "training/clean").mkdir()
    (tree / "training/flow").mkdir()
    assert "holds no image pairs; expected" in message("training")
    shutil.rmtree(tree)
    message("")


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may read anything")
def test_folder_that_may_not_be_listed(tree: Path) -> None:
    folder = tree / "training/clean/alley_1"
    folder.chmod(0)
    try:
        assert "check its permissions" in message_of(lambda: SintelDataset(tree), folder)
    finally:
        folder.chmod(0o700)


def test_wrong_options(written: Path) -> None:
    with pytest.raises(InputError, match=r"^split must be training or test, not 'train'\.$"):
        SintelDataset(written, split="train")  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"^pass_ must be clean or final, not \['clean'\]\.$"):
        SintelDataset(written, pass_=["clean"])  # type: ignore[arg-type]


def test_what_hamflow_synth_writes(tmp_path: Path) -> None:
    config = SyntheticConfig(height=40, width=56, max_displacement=6)
    write_sintel(tmp_path, config, 2)
    rendered = SyntheticDataset(config, size=2)
    for pass_ in (0, 1):
        data = SintelDataset(tmp_path, pass_="final" if pass_ else "clean")
        assert data.groups == ("scene_00000", "scene_00001")
        for number, pair in enumerate(data):
            shown = rendered.both(number)[pass_]
            check_pair(pair, shown)  # type: ignore[arg-type]
            assert np.array_equal(pair.occluded, shown.occluded)


# Evenly sampled shares


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> SintelDataset:
    """As many scenes and frames as the real training split has; the files are empty."""
    root = tmp_path_factory.mktemp("large")
    # 23 scenes with 1064 frames, most of 50, as in the real one.
    lengths = [50] * 17 + [49, 45, 40, 36, 24, 20]
    assert sum(lengths) - len(lengths) == 1041
    for number, length in enumerate(lengths):
        for kind, suffix, count in (("clean", "png", length), ("flow", "flo", length - 1)):
            folder = root / "training" / kind / f"scene_{number:02}"
            folder.mkdir(parents=True)
            for k in range(1, count + 1):
                (folder / f"frame_{k:04}.{suffix}").touch()
    return SintelDataset(root)


def test_the_shares_of_the_paper(large: SintelDataset) -> None:
    learned = large.evenly(0.2)
    evaluated = large.evenly(0.4, disjoint_from=learned)
    assert (len(large), len(learned), len(evaluated)) == (1041, 208, 416)
    assert not set(learned.names) & set(evaluated.names)
    # Evenly from all scenes.
    for share, part in ((0.2, learned), (0.4, evaluated)):
        assert part.names == tuple(sorted(part.names))
        for group in large.groups:
            frames = [name for name in large.names if name.startswith(f"{group}/")]
            of_part = [name for name in part.names if name in set(frames)]
            assert abs(len(of_part) - share * len(frames)) <= 1
            places = np.array([frames.index(name) for name in of_part])
            assert np.diff(places).max() <= (6 if part is learned else 4)
    # Always the same, and the same as by number.
    assert large.evenly(0.2).names == learned.names
    assert learned.names == tuple(large.names[number] for number in evenly(1041, 0.2))


def test_other_shares(large: SintelDataset) -> None:
    everything = large.evenly(1)
    assert everything.names == large.names
    assert len(large.evenly(1e-9)) == 1
    rest = large.evenly(0.8, disjoint_from=large.evenly(0.2))
    assert len(rest) == 833
    for share in (0, -0.1, 1.001, float("nan")):
        with pytest.raises(InputError, match=r"^share must be above 0 and at most 1"):
            large.evenly(share)
    with pytest.raises(InputError, match=r"asks for 937 of 1041 pairs, but only 833 are not in"):
        large.evenly(0.9, disjoint_from=large.evenly(0.2))
    # Any pairs can be left out, those of another pass as well.
    assert large[:2].evenly(0.5, disjoint_from=[large[0]]).names == large.names[1:2]
    assert len(large[:0].evenly(0.5)) == 0


def test_disjoint_for_all_sizes(large: SintelDataset) -> None:
    for size in (*range(1, 60), 500):
        data: PairDataset = large[:size]
        for first, second in ((0.2, 0.4), (0.5, 0.3), (0.1, 0.1)):
            learned = data.evenly(first)
            if max(1, round(size * second)) > size - len(learned):
                continue
            evaluated = data.evenly(second, disjoint_from=learned)
            assert not set(learned.names) & set(evaluated.names)
            assert len(set(evaluated.names)) == max(1, round(size * second))

"""Which pairs a run learns from and validates on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import hamflow  # noqa: E402
from _learning import one_thread, tiny_config, write_pairs  # noqa: E402, F401
from hamflow import FileError, InputError  # noqa: E402
from hamflow.datasets.synthetic import SyntheticConfig  # noqa: E402
from hamflow.learning.augment import Sample  # noqa: E402
from hamflow.learning.config import AugmentConfig, DataConfig, TrainConfig  # noqa: E402
from hamflow.learning.data import (  # noqa: E402
    PairSource,
    TrainingPairs,
    _reduced,
    as_tensor,
    evenly,
    training_batches,
    validation_samples,
)

PLAIN = AugmentConfig(mirror=False, photometric=0, blur=0, noise=0)


def content(sample: Sample) -> bytes:
    return b"".join(array.tobytes() for array in vars(sample).values())


def folder_config(root: Path, **changes: object) -> TrainConfig:
    settings: dict[str, Any] = {"dataset": "folder", "root": root, "crop": (32, 32)}
    return tiny_config(data=DataConfig(**(settings | changes)))


def brightness(sample: Sample) -> int:
    """Which of `write_pairs` it is."""
    return round(float(sample.image0.min()) * 255) % 16


def test_evenly() -> None:
    assert evenly(10, 1.0) == list(range(10))
    assert evenly(10, 0.2) == [2, 7]
    assert evenly(3, 0.01) == [1]
    assert evenly(1, 0.2) == [0]
    chosen = evenly(1041, 0.2)  # Sintel
    assert len(chosen) == 208
    assert set(np.diff(chosen)) == {5, 6} or set(np.diff(chosen)) == {5}
    assert 0 <= chosen[0] < chosen[-1] < 1041


def test_a_pair_follows_from_its_number() -> None:
    config = tiny_config(augment=AugmentConfig())
    pairs, again = TrainingPairs(config), TrainingPairs(config)
    first = [content(pairs[number]) for number in (0, 5, 2)]
    assert first == [content(again[number]) for number in (2, 5, 0)][::-1]
    assert len(set(first)) == 3
    other = TrainingPairs(replace(config, seed=1))
    assert content(other[0]) != first[0]


def test_synthetic_pairs_have_all_there_is() -> None:
    sample = TrainingPairs(tiny_config())[3]
    assert sample.image0.shape == sample.image1.shape == (48, 48, 3)
    assert sample.image0.dtype == sample.flow.dtype == np.float32
    assert 0 <= sample.image0.min() < sample.image0.max() <= 1
    assert sample.flow.shape == (48, 48, 2)
    assert sample.occluded.shape == (48, 48)
    assert np.abs(sample.flow).max() < 7


def numbers_of(config: TrainConfig, first: int, rank: int, processes: int) -> list[list[bytes]]:
    batches = training_batches(config, first, rank, processes)
    return [[content(sample) for sample in batch] for batch in batches]


def test_batches_of_processes_make_up_the_joint_batch() -> None:
    config = tiny_config(steps=2)
    whole = numbers_of(replace(config, batch=4), 0, 0, 1)
    halves = [numbers_of(replace(config, batch=2), 0, rank, 2) for rank in (0, 1)]
    for step in range(2):
        assert whole[step] == halves[0][step] + halves[1][step]
    assert len({sample for batch in whole for sample in batch}) == 8
    # And a later start goes on with the same ones.
    assert numbers_of(replace(config, batch=4), 1, 0, 1) == whole[1:]


def test_the_number_of_steps_takes_no_memory() -> None:
    batch = next(training_batches(tiny_config(steps=10**12), 10**11))
    assert len(batch) == 1


@pytest.mark.slow
def test_workers_give_the_same_pairs() -> None:
    config = tiny_config(steps=5, augment=AugmentConfig())
    alone = numbers_of(config, 1, 0, 1)
    assert len(alone) == 4
    assert numbers_of(replace(config, workers=2), 1, 0, 1) == alone


@pytest.mark.parametrize("workers", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_a_damaged_pair_is_one_sentence(tmp_path: Path, workers: int) -> None:
    config = replace(folder_config(write_pairs(tmp_path / "data")), workers=workers)
    damaged = tmp_path / "data" / "group" / "pair1" / "frame2.png"
    damaged.write_bytes(damaged.read_bytes()[:100])
    with pytest.raises(FileError) as caught:
        list(training_batches(config, 0))
    assert str(caught.value).startswith(str(damaged))
    assert "\n" not in str(caught.value)


def test_folder(tmp_path: Path) -> None:
    root = write_pairs(tmp_path, count=4)
    config = folder_config(root)
    pairs = TrainingPairs(config)
    samples = [pairs[number] for number in range(12)]
    assert {sample.flow.shape for sample in samples} == {(32, 32, 2)}
    turns = [[brightness(sample) for sample in samples[i : i + 4]] for i in (0, 4, 8)]
    # Every pair once in a turn, and not always in one order.
    assert all(sorted(turn) == [0, 1, 2, 3] for turn in turns)
    assert len(set(map(tuple, turns))) > 1


def test_folder_as_it_is(tmp_path: Path) -> None:
    root = write_pairs(tmp_path, count=2)
    source = PairSource(DataConfig(dataset="folder", root=root), seed=0)
    assert source.count == 2
    sample = source[1]
    pair = hamflow.datasets.open_dataset("folder", root)[1]
    np.testing.assert_allclose(sample.image0 * 255, pair.image0, atol=1e-3)
    assert np.array_equal(sample.flow, pair.flow)
    assert np.array_equal(sample.occluded, pair.occluded)
    (root / "group" / "pair1" / "occ.png").unlink()
    assert not PairSource(DataConfig(dataset="folder", root=root), seed=0)[1].occluded.any()


def test_subset_is_evenly_sampled(tmp_path: Path) -> None:
    root = write_pairs(tmp_path, count=10)
    source = PairSource(DataConfig(dataset="folder", root=root, subset=0.2), seed=0)
    assert [brightness(source[number]) for number in range(source.count)] == [2, 7]


def test_whole_images_and_reduced_ones(tmp_path: Path) -> None:
    root = write_pairs(tmp_path, count=1)
    whole = TrainingPairs(folder_config(root, crop=None))
    plain = replace(folder_config(root, crop=None, reduce=3), augment=PLAIN)
    assert whole[0].flow.shape == (48, 64, 2)
    small = TrainingPairs(plain)[0]
    assert small.flow.shape == (16, 21, 2)
    pair = hamflow.datasets.open_dataset("folder", root)[0]
    block = pair.image0[3:6, 6:9].reshape(-1, 3).mean(0) / 255
    np.testing.assert_allclose(small.image0[1, 2], block, atol=1e-5)
    np.testing.assert_allclose(
        small.flow[1, 2], pair.flow[3:6, 6:9].reshape(-1, 2).mean(0) / 3, rtol=1e-5
    )


def test_reduced_knows_what_all_of_a_box_knows(tmp_path: Path) -> None:
    root = write_pairs(tmp_path, count=1)
    folder = root / "group" / "pair0"
    flow = hamflow.read_flow(folder / "flow.flo")
    flow[0, 0] = np.nan
    hamflow.write_flow(folder / "flow.flo", flow)
    hidden = np.zeros((48, 64, 3), np.uint8)
    hidden[:2, 2:4] = 255  # all of a box,
    hidden[0, 4:6] = 255  # half
    hidden[0, 6] = 255  # and a quarter
    hamflow.write_image(folder / "occ.png", hidden)
    sample = PairSource(DataConfig(dataset="folder", root=root, reduce=2), seed=0)[0]
    assert np.argwhere(np.isnan(sample.flow).any(axis=2)).tolist() == [[0, 0]]
    assert np.argwhere(sample.occluded).tolist() == [[0, 1], [0, 2]]


def test_rendered_scenes_are_reduced_too() -> None:
    synthetic = SyntheticConfig(height=48, width=64, max_displacement=8)
    whole, small = (
        PairSource(DataConfig(reduce=factor, synthetic=synthetic), seed=3)[5] for factor in (1, 2)
    )
    assert small.flow.shape == (24, 32, 2)
    expected = _reduced(whole, 2)
    for name in ("image0", "image1", "flow", "occluded"):
        assert np.array_equal(getattr(small, name), getattr(expected, name))


def test_reduced_to_nothing() -> None:
    image = np.zeros((8, 20, 3), np.float32)
    sample = Sample(image, image, image[..., :2], np.zeros((8, 20), bool))
    with pytest.raises(InputError, match="fewer than 16 rows or columns"):
        _reduced(sample, 16)
    assert _reduced(sample, 8).flow.shape == (1, 2, 2)


def test_validation_pairs_stay_the_same_and_are_others() -> None:
    config = tiny_config(validation_pairs=3)
    first = [content(sample) for sample in validation_samples(config)]
    assert first == [content(sample) for sample in validation_samples(config)]
    assert len(set(first)) == 3
    pairs = TrainingPairs(config)
    assert not {content(pairs[number]) for number in range(4)} & set(first)


def test_validation_on_a_folder(tmp_path: Path) -> None:
    data = DataConfig(dataset="folder", root=write_pairs(tmp_path, count=6), crop=(32, 32))
    config = tiny_config(validation=data, validation_pairs=3)
    samples = list(validation_samples(config))
    assert [brightness(sample) for sample in samples] == [1, 3, 5]
    assert samples[0].flow.shape == (48, 64, 2)  # whole
    assert len(list(validation_samples(replace(config, validation_pairs=100)))) == 6


def test_images_of_several_sizes() -> None:
    images = [np.zeros((4, 5, 3), np.float32), np.ones((4, 5, 3), np.float32)]
    tensor = as_tensor(images)
    assert tensor.shape == (2, 3, 4, 5)
    assert tensor.is_contiguous()
    assert tensor.mean((1, 2, 3)).tolist() == [0, 1]
    with pytest.raises(InputError, match=r"differ in size; set data\.crop, or set batch to 1"):
        as_tensor([*images, np.zeros((4, 6, 3), np.float32)])


def test_missing_data_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="missing: does not exist"):
        TrainingPairs(folder_config(tmp_path / "missing"))
    with pytest.raises(FileError, match="holds no image pairs"):
        TrainingPairs(folder_config(tmp_path))

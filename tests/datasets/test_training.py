"""Public data sets as what to learn from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from _learning import one_thread, tiny_config  # noqa: E402, F401
from _trees import save_flow, save_image, save_mask, scene  # noqa: E402
from hamflow.cli import train as command  # noqa: E402
from hamflow.cli.main import main  # noqa: E402
from hamflow.errors import FileError  # noqa: E402
from hamflow.learning.config import DataConfig, TrainConfig, config_of, config_values  # noqa: E402
from hamflow.learning.data import PairSource, TrainingPairs, training_batches  # noqa: E402


@pytest.fixture
def sintel(tmp_path: Path) -> Path:
    root = tmp_path / "sintel"
    for k in range(1, 7):
        save_image(root / f"training/clean/alley_1/frame_{k:04}.png", scene(k).image0)
    for k in range(1, 6):
        save_flow(root / f"training/flow/alley_1/frame_{k:04}.flo", scene(k).flow)
        save_mask(root / f"training/occlusions/alley_1/frame_{k:04}.png", scene(k).occluded)
    return root


def test_pairs_of_sintel(sintel: Path) -> None:
    source = PairSource(DataConfig(dataset="sintel", root=sintel, subset=0.4), seed=0)
    assert source.count == 2
    for number, shown in ((0, scene(2)), (1, scene(4))):
        sample = source[number]
        np.testing.assert_allclose(sample.image0 * 255, shown.image0, atol=1e-3)
        assert np.array_equal(sample.flow, shown.flow)
        assert np.array_equal(sample.occluded, shown.occluded)
    data = DataConfig(dataset="sintel", root=sintel, crop=(32, 40))
    (batch,) = training_batches(tiny_config(data=data, steps=1, batch=2), 0)
    assert [sample.flow.shape for sample in batch] == [(32, 40, 2)] * 2


def test_train_on_sintel(
    sintel: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    configs: list[TrainConfig] = []
    monkeypatch.setattr(command, "run_training", lambda config, *_, **__: configs.append(config))
    options = ["--subset", "0.4", "--data.crop", "32", "48"]
    assert main(["train", "-o", "x", "--data", "sintel", str(sintel), *options]) == 0
    (config,) = configs
    expected = DataConfig(dataset="sintel", root=sintel, subset=0.4, crop=(32, 48))
    assert config.data == expected
    assert config_of(config_values(config)) == config
    assert TrainingPairs(config)[0].flow.shape in ((32, 48, 2), (48, 32, 2))
    with pytest.raises(SystemExit):
        main(["train", "-o", "x", "--data", "sintl", str(sintel)])
    assert "sintel" in capsys.readouterr().err
    with pytest.raises(FileError, match="expected is MPI-Sintel's tree"):
        TrainingPairs(replace(config, data=replace(config.data, root=sintel / "gone")))

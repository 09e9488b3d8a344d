"""The settings of a run: files, defaults, and what is wrong with them in one sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hamflow import FileError, InputError
from hamflow.datasets.synthetic import SyntheticConfig
from hamflow.descriptors.architecture import Architecture
from hamflow.learning.config import (
    AugmentConfig,
    DataConfig,
    TrainConfig,
    config_of,
    config_values,
    read_config,
)

FILE = """
steps = 12
learning_rate = 1            # a whole number will do
start = "weights.safetensors"
checkpoint_minutes = inf

[network]
kind = "context"
scales = [1, 4]

[data]
dataset = "folder"
root = "pairs"
crop = "none"

[augment]
mirror = false

[validation.synthetic]
clean = true
"""


def written(folder: Path, text: str) -> Path:
    file = folder / "run.toml"
    file.write_text(text)
    return file


def test_file(tmp_path: Path) -> None:
    config = read_config(written(tmp_path, FILE))
    assert config == TrainConfig(
        steps=12,
        learning_rate=1.0,
        start=Path("weights.safetensors"),
        checkpoint_minutes=float("inf"),
        network=Architecture(kind="context", scales=(1, 4)),
        data=DataConfig(dataset="folder", root=Path("pairs"), crop=None),
        augment=AugmentConfig(mirror=False),
        validation=DataConfig(synthetic=SyntheticConfig(clean=True)),
    )
    assert isinstance(config.learning_rate, float)
    assert read_config(written(tmp_path, "")) == TrainConfig()


def test_there_and_back(tmp_path: Path) -> None:
    for config in (TrainConfig(), read_config(written(tmp_path, FILE))):
        assert config_of(json.loads(json.dumps(config_values(config)))) == config
    # As older checkpoints have it: without what is None.
    values = config_values(TrainConfig())
    assert config_of({k: v for k, v in values.items() if v is not None}) == TrainConfig()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("steps = ", "is not TOML"),
        ("a = " + "[" * 2000, "is nested too deeply"),
        ("step = 3", "step is unknown; possible are network, model, "),
        ("[data.synthetic]\nheigth = 3", "data.synthetic.heigth is unknown"),
        ("[validation]\nrot = 3", "validation.rot is unknown"),
        ("steps = 1.5", "steps must be of type int, not 1.5"),
        ("steps = true", "steps must be of type int, not True"),
        ("steps = 'three'", "steps must be of type int, not 'three'"),
        ("steps = [3]", r"steps must be of type int, not \[3\]"),
        ("learning_rate = '1'", "learning_rate must be of type float"),
        (f"learning_rate = {10**400}", "learning_rate must be of type float"),
        ("learning_rate = nan", "learning_rate must be a number above 0 and at most 1e"),
        ("learning_rate = inf", "learning_rate must be a number above 0 and at most 1e"),
        ("outside = nan", "outside must be a number from -1e"),
        ("data = 3", "data must be a table, not 3"),
        ("start = 3", "start must be a path, not 3"),
        ("model = 'qf'", "model must be ff, fq or qq, not 'qf'"),
        ("model = 3", "model must be ff, fq or qq, not 3"),
        ("target = ['one']", "target must be one or spread"),
        ("precision = 'float16'", "precision must be float32 or bfloat16, not 'float16'"),
        ("window = 127", "window must be even, but is 127"),
        ("batch = 0", "batch must be a whole number of at least 1, not 0"),
        ("workers = -1", "workers must be a whole number of at least 0"),
        ("seed = 2147483648", "seed must be a whole number from 0 to 2147483647"),
        ("bootstrap = 1.1", "bootstrap must be a number from 0 to 1, not 1.1"),
        ("clip = 0", "clip must be a number above 0, not 0"),
        ("[network]\nm = 32", "fq needs descriptors of m = 64, not 32"),
        ("[network]\nlayers = 8", "layers must be odd"),
        ("[network]\nscales = 3", "network.scales must be a list of whole numbers, not 3"),
        ("[network]\nscales = [3, 'a']", "network.scales must be a list of whole numbers"),
        ("[data]\ncrop = 256", "data.crop must be a list of whole numbers, not 256"),
        ("[data]\ncrop = [256]", "crop must be a height and a width"),
        ("[data]\ncrop = [256, 8]", "crop must be a height and a width, at least 16 × 16"),
        ("[data]\ncrop = [1.5, 2.5]", "data.crop must be a list of whole numbers"),
        ("[data]\ndataset = 'sintl'", "dataset must be one of chairs, .*things, not 'sintl'"),
        ("[data]\ndataset = 'sintel'", "The data set sintel needs its root"),
        ("[data]\ndataset = 'folder'", "The data set folder needs its root"),
        ("[data]\nsubset = 0", "subset must be a number above 0 and at most 1"),
        ("[data]\nreduce = 17", "reduce must be a whole number from 1 to 16"),
        ("[data.synthetic]\nheight = 8", "height must be a whole number from 32"),
        ("[augment]\nblur = 2", "blur must be a number from 0 to 1"),
        ("[augment]\nrescale = 0.5", "rescale must be a number from 1 to 4"),
        ("[augment]\nnoise = -1", "noise must be a number from 0 to 10"),
    ],
)
def test_wrong_files(tmp_path: Path, text: str, words: str) -> None:
    file = written(tmp_path, text)
    with pytest.raises(FileError, match=words) as caught:
        read_config(file)
    assert str(caught.value).startswith(str(file))
    assert "\n" not in str(caught.value)


def test_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"missing\.toml: does not exist"):
        read_config(tmp_path / "missing.toml")
    with pytest.raises(FileError, match="is a directory; give the path of a file"):
        read_config(tmp_path)
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(FileError, match="is not TOML"):
        read_config(tmp_path / "bytes.toml")


def test_m_is_free_for_ff() -> None:
    assert TrainConfig(model="ff", network=Architecture(m=32)).network.m == 32
    with pytest.raises(InputError, match="qq needs descriptors of m = 64"):
        TrainConfig(model="qq", network=Architecture(m=32))

"""``paper table1``: its cells, its files, and its trainings."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from _paths import ROOT
from _runs import save_network
from experiments.cli.app import main
from experiments.paper import table1
from experiments.paper.findings import table_of
from experiments.paper.table1 import Network, Table1Config, parse_network, read_table1_config
from hamflow import FileError, InputError
from hamflow.datasets import SyntheticConfig, demo_scene, open_dataset
from hamflow.datasets.synthetic import write_sintel
from hamflow.evaluation import Method, MethodConfig, evaluate, pool
from hamflow.io._text import read_rows
from hamflow.learning.config import config_of, read_config

COMMAND = ("paper", "table1")
RECIPES = ROOT / "experiments" / "recipes"
SCENES = [demo_scene(32, 40, seed) for seed in range(2)]
TINY = """
scale = 1
window = 16
[training]
steps = 2
window = 16
validation_pairs = 0
workers = 0
[training.network]
channels = 4
"""


@pytest.fixture(scope="module")
def sintel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data") / "sintel"
    write_sintel(folder, SyntheticConfig(height=32, width=48, max_displacement=4.0), 5)
    return folder


def test_cells(tmp_path: Path) -> None:
    weights = {n: save_network(tmp_path / n.name, k) for k, n in enumerate(table1.NETWORKS)}
    config = Table1Config(scale=1, window=8)
    found = table1.run(SCENES, weights, config)
    expected = {
        Network("ff", 5): "trained qq crf_f crf_q",
        Network("ff", 7): "trained qq crf_f crf_q",
        Network("fq", 9): "trained qq crf_q",
        Network("qq", 7): "qq crf_q",
    }
    for network, columns in expected.items():
        assert [c for n, c in found if n == network] == columns.split()
    for network, column, name in (
        (Network("ff", 5), "trained", "wta-ff"),
        (Network("fq", 7), "trained", "wta-fq"),
        (Network("ff", 7), "qq", "wta-qq"),
        (Network("ff", 5), "crf_f", "crf-f"),
        (Network("qq", 9), "crf_q", "crf-q"),
    ):
        method = Method(MethodConfig(name, model=str(weights[network]), window=8))
        one, other = found[network, column], evaluate(SCENES, method)
        assert [r.metrics for r in one.records] == [r.metrics for r in other.records]
    table = table_of(table1.rows(found))
    metrics = [r.metrics for r in found[Network("fq", 5), "qq"].records if r.metrics is not None]
    pooled = pool(metrics).pooled
    assert table[Network("fq", 5)]["qq"]["noc"] == pytest.approx(pooled.epe_noc)
    assert table[Network("fq", 5)]["qq"]["all"] == pytest.approx(pooled.epe_all)


def test_command_with_weights(
    tmp_path: Path,
    sintel: Path,
    out: Path,
    capsys: pytest.CaptureFixture[str],
    fails: Callable[..., str],
) -> None:
    nets = tmp_path / "nets"
    for number, name in enumerate(("ff-5", "fq-5", "qq-5")):
        save_network(nets / name, number)
    file = tmp_path / "table1.toml"
    file.write_text("scale = 2\nwindow = 8\n")
    args = [
        *("--data", "sintel", str(sintel), "--subset", "scene_00001", "--no-train"),
        *("--weights", str(nets), "--networks", "ff-5", "fq-5", "qq-5"),
        *("--config", str(file), "-o", str(out)),
    ]
    assert main([*COMMAND, *args]) == 0
    printed = capsys.readouterr().out
    assert "5.25 (10.38)" in printed  # the paper's
    assert "FQ as trained is better than QQ" in printed
    assert "The training of ff-5, fq-5, qq-5 is only partly known" in printed
    rows = read_rows(out / "table1.csv")[1]
    assert len(rows) == 4 + 3 + 2
    pair = open_dataset("sintel", sintel, subset="scene_00001")
    method = MethodConfig("crf-f", model=str(nets / "ff-5" / table1.WEIGHTS), window=8, scale=2)
    (record,) = evaluate(pair, Method(method)).records
    assert record.metrics is not None
    (row,) = [r for r in rows if r["column"] == "crf_f"]
    assert float(row["epe_all"]) == record.metrics.epe_all
    # Nothing is measured twice, and nothing is lost.
    assert "earlier evaluation" in fails(*args)
    before = (out / "table1.csv").read_bytes()
    assert main([*COMMAND, *args, "--resume"]) == 0
    assert (out / "table1.csv").read_bytes() == before


def test_command_trains_what_is_missing(
    tmp_path: Path, sintel: Path, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    torch = pytest.importorskip("torch")
    threads = torch.get_num_threads()
    nets = tmp_path / "nets"
    kept = save_network(nets / "ff-5", 3).read_bytes()
    file = tmp_path / "tiny.toml"
    synthetic = "[training.data.synthetic]\nheight = 32\nwidth = 32\nmax_displacement = 4.0\n"
    file.write_text(TINY + synthetic)
    args = [
        *(*COMMAND, "--data", "sintel", str(sintel), "--subset", "0.2"),
        *("--weights", str(nets), "--networks", "ff-5", "qq-5", "fq-7"),
        *("--config", str(file), "-o", str(out)),
    ]
    assert main(args) == 0
    assert (nets / "ff-5" / table1.WEIGHTS).read_bytes() == kept
    rows = read_rows(out / "table1.csv")[1]
    assert {(row["train"], row["layers"]) for row in rows} == {
        ("ff", "5"),
        ("qq", "5"),
        ("fq", "7"),
    }
    from hamflow.learning.state import read_state  # noqa: PLC0415

    config, progress = read_state(nets / "fq-7" / "checkpoint.safetensors")
    assert (config.model, config.network.layers, config.network.channels) == ("fq", 7, 4)
    assert progress.step == 2
    # And all of them once more, with what the runs themselves have written.
    weights = nets / "fq-7" / table1.WEIGHTS
    written = weights.read_bytes()
    weights.unlink()
    capsys.readouterr()
    again = [*args, "--resume", "--no-train"]
    assert main(again) == 0
    printed = capsys.readouterr().out
    assert f"Wrote {weights} from " in printed
    assert "cannot be compared" not in printed
    assert "weights count" not in printed
    assert weights.read_bytes() == written
    torch.set_num_threads(threads)


def test_the_papers_protocol_on_sintel(tmp_path: Path, sintel: Path, out: Path) -> None:
    """Learn from 20 %, evaluate on other 40 %, by the shipped file, cut short."""
    torch = pytest.importorskip("torch")
    threads = torch.get_num_threads()
    text = (RECIPES / "table1-sintel.toml").read_text()
    file = tmp_path / "short.toml"
    for old, new in (
        ("steps = 20000", "steps = 1\nworkers = 0\nvalidation_pairs = 0"),
        ("window = 128", "window = 16"),
    ):
        assert old in text
        text = text.replace(old, new)
    file.write_text(text)
    args = [*COMMAND, "--data", "sintel", str(sintel), "--networks", "fq-5", "-o", str(out)]
    assert main([*args, "--config", str(file), "--weights", str(tmp_path / "nets")]) == 0
    from hamflow.learning.state import read_state  # noqa: PLC0415

    config, _ = read_state(tmp_path / "nets" / "fq-5" / "checkpoint.safetensors")
    assert (config.data.dataset, config.data.subset, config.data.root) == ("sintel", 0.2, sintel)
    assert config.data.crop is None
    every = open_dataset("sintel", sintel, pass_="clean")
    learned = every.evenly(0.2)
    evaluated = {row["pair"] for row in read_rows(out / "table1.csv")[1]}
    assert evaluated == set(every.evenly(0.4, disjoint_from=learned).names)
    assert len(evaluated) == 2
    assert not evaluated & set(learned.names)
    torch.set_num_threads(threads)


def test_recipes_are_readable(tmp_path: Path) -> None:
    assert len(list(RECIPES.glob("*.toml"))) > 5
    for path in RECIPES.glob("*.toml"):
        if path.name.startswith("table1"):
            config = read_table1_config(path, "sintel", tmp_path)
            assert (config.scale, config.window) == (2, 128)
        else:
            read_config(path)


def test_unfinished_training_is_not_taken(
    tmp_path: Path, sintel: Path, out: Path, fails: Callable[..., str]
) -> None:
    torch = pytest.importorskip("torch")
    threads = torch.get_num_threads()
    from hamflow.learning.loop import train  # noqa: PLC0415

    config = config_of(
        {
            "steps": 3,
            "window": 16,
            "validation_pairs": 0,
            "workers": 0,
            "model": "qq",
            "network": {"layers": 5, "channels": 4},
            "data": {"synthetic": {"height": 32, "width": 32, "max_displacement": 4.0}},
        }
    )
    folder = tmp_path / "nets" / "qq-5"

    train(config, folder, callback=lambda _: signal.raise_signal(signal.SIGTERM))
    args = ("--data", "sintel", sintel, "--subset", "0.2", "--networks", "qq-5", "-o", out)
    nets = ("--weights", tmp_path / "nets")
    file = tmp_path / "t.toml"
    file.write_text("scale = 1\nwindow = 8\n")
    sentence = fails(*args, *nets, "--no-train", "--config", file)
    assert "not finished" in sentence
    assert main([*COMMAND, *map(str, (*args, *nets, "--config", file))]) == 0
    from hamflow.learning.state import read_state  # noqa: PLC0415

    assert read_state(folder / "checkpoint.safetensors")[1].step == 3
    torch.set_num_threads(threads)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nothing = 1\n", "nothing is unknown"),
        ("[evaluation]\nnothing = 1\n", "nothing is unknown"),
        ("[training]\nsteps = 0\n", "steps"),
        ('[training.data]\ndataset = "kitti2015"\n', "needs its root"),
        ("scale = 'a'\n", "scale"),
        ("scale = 0\n", "scale must be a whole number, at least 1"),
        ("scale = true\n", "scale"),
        ("window = 15\n", "window must be even"),
        ("window = -2\n", "window must be even"),
        ("window = 5000\n", "window must be even"),
        ("training = 3\n", "training"),
        ('[training]\nmodel = "ff"\n[training.network]\nm = 32\n', "m must be 64"),
        ("[training]\ndata = 3\n", "data"),
        ("evaluation = 3\n", "evaluation"),
        ("[", "is not TOML"),
    ],
)
def test_bad_files(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(text)
    with pytest.raises(FileError, match=message):
        read_table1_config(path, "sintel", tmp_path)


def test_names() -> None:
    assert [parse_network(network.name) for network in table1.NETWORKS] == list(table1.NETWORKS)
    for name in ("fq", "fq-6", "aa-5", "", "fq-7-x"):
        with pytest.raises(InputError, match="fq-7"):
            parse_network(name)


def test_missing_weights(
    sintel: Path, tmp_path: Path, out: Path, fails: Callable[..., str]
) -> None:
    args = ("--data", "sintel", sintel, "--weights", tmp_path / "none", "-o", out, "--no-train")
    assert "ff-5/last.safetensors: does not exist" in fails(*args)

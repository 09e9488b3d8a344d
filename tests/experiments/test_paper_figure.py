"""``paper figure`` on a tiny scene."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import hamflow
from experiments.cli import paper_figure
from experiments.cli.app import main
from experiments.cli.paper_figure import parse_region
from experiments.paper.figure import (
    Panel,
    Region,
    busiest_region,
    check_pair,
    estimate_panels,
    find_networks,
    prepare_methods,
)
from experiments.paper.figure_layout import draw_figure
from hamflow.crf import CrfConfig, solve
from hamflow.datasets import demo_scene
from hamflow.errors import FileError, InputError
from hamflow.flow import endpoint_error

SCENE = demo_scene(40, 56)
FRAMES = (SCENE.image0, SCENE.image1)
PAIRS = ["--ff", "pairs", "--fq", "pairs", "--qq", "pairs"]


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    names = [str(tmp_path / name) for name in ("a.png", "b.png", "t.flo")]
    hamflow.write_image(names[0], SCENE.image0)
    hamflow.write_image(names[1], SCENE.image1)
    hamflow.write_flow(names[2], SCENE.flow)
    return names


@pytest.fixture
def _inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def figure(files: list[str], *options: str) -> int:
    return main(["paper", "figure", *files[:2], "--d", "8", *options])


def test_figure(files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "f.png"
    options = ["--truth", files[2], "--scale", "1", "--region", "4,5,12,16", "-o", str(path)]
    assert figure(files, *PAIRS, *options) == 0
    picture = hamflow.read_image(path)
    height, width = picture.shape[:2]
    assert width == pytest.approx(1800, abs=2)
    assert (picture[2, 2] == 255).all()
    assert (picture != 255).any(axis=2).mean() > 0.5
    assert height > 300
    printed = capsys.readouterr().out
    bits = [hamflow.pair_bits(image) for image in FRAMES]
    wta = hamflow.matching.min_projection(*bits, 8).wta()
    joint = solve(bits0=bits[0], bits1=bits[1], image=FRAMES[0], window=8, config=CrfConfig.paper())
    for name, flow in (("QQ, WTA", wta), ("QQ, CRF Q", joint.flow), ("FQ, CRF Q", joint.flow)):
        assert f"{name}: {endpoint_error(flow, SCENE.flow).mean():.2f} px" in printed
    assert "FF, CRF F: " in printed
    assert "4,5,12,16" in printed


def test_without_images_a_scene_is_rendered(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paper_figure, "demo_scene", lambda **_: SCENE)
    output = ["-o", str(tmp_path / "f.png"), "--d", "8", "--models", "QQ", "--qq", "pairs"]
    assert main(["paper", "figure", *output]) == 0
    # Its true flow is known, so errors are written.
    assert "QQ, WTA: " in capsys.readouterr().out
    assert main(["paper", "figure", *output, "--truth", "t.flo"]) == 1
    assert "--truth" in capsys.readouterr().err


def test_what_is_written(files: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # As text rather than as outlines, to be read here.
    import matplotlib as mpl  # noqa: PLC0415

    monkeypatch.setitem(mpl.rcParams, "svg.fonttype", "none")
    path = tmp_path / "f.svg"
    options = ["--models", "FQ", "QQ", "--fq", "pairs", "--qq", "fast", "-o", str(path)]
    assert figure(files, *options) == 0
    text = path.read_text()
    for words in ("frame 1", "frame 2", "FQ", "WTA", "CRF Q", "networks pairs, fast", "D = 8"):
        assert words in text
    assert "at 1/2 of their size" in text
    assert ">FF<" not in text
    assert "truth" not in text


def test_the_shipped_model_says_so(files: list[str], tmp_path: Path) -> None:
    path = tmp_path / "f.pdf"
    assert figure(files, "--models", "QQ", "-o", str(path)) == 0
    assert path.read_bytes().startswith(b"%PDF")
    from experiments.cli.paper_figure import _note  # noqa: PLC0415

    assert "the shipped model 'default'" in _note({"QQ": "default"}, 8, 2, known=False)
    runs = {"FQ": "runs/fq-7/last.safetensors", "QQ": "other/mine.onnx"}
    assert "networks fq-7, mine" in _note(runs, 8, 1, known=True)  # type: ignore[arg-type]


def test_panels_are_those_of_each_network() -> None:
    networks = find_networks(("FF", "QQ"), {"FF": "pairs", "QQ": "pairs"})
    named: list[str] = []
    methods = prepare_methods(networks, d=8, scale=2)
    panels = estimate_panels(*FRAMES, methods, progress=named.append)
    assert [(panel.matching, panel.kind) for panel in panels] == [
        ("FF", "WTA"),
        ("QQ", "WTA"),
        ("FF", "CRF F"),
        ("QQ", "CRF Q"),
    ]
    assert len(named) == len(methods) == 4
    for panel in panels:
        assert panel.flow.shape == (40, 56, 2)
        assert panel.error is None
        assert (panel.flow % 2 == 0).all()  # whole pixels of the reduced frames
    # On signs, scalar products and Hamming distances have the same minimum.
    assert np.array_equal(panels[0].flow, panels[1].flow)


def test_all_panels_share_the_colors(tmp_path: Path) -> None:
    """The same flow looks the same in each panel, whatever else there is."""
    still = np.zeros((30, 30, 2), np.float32)
    quick = np.full((30, 30, 2), 9, np.float32)
    image = np.full((30, 30), 200, np.uint8)
    panels = [Panel("QQ", "WTA", quick), Panel("QQ", "CRF Q", still)]
    path = tmp_path / "f.png"
    region = Region(3, 4, 10, 10)
    assert draw_figure(path, (image, image), panels, truth=quick, region=region) == region
    picture = hamflow.read_image(path).reshape(-1, 3)
    color = hamflow.flow_to_color(quick, max_flow=float(np.hypot(9, 9)))[0, 0]
    share = (np.abs(picture.astype(int) - color).max(axis=1) <= 2).mean()
    # The truth and the local model with their regions: half of all panels.
    assert share > 0.3


def test_busiest_region() -> None:
    flow = np.zeros((100, 200, 2), np.float32)
    flow[50:60, 120:130] = (3, -4)
    flow[10:12, 20:22] = 200  # small, however fast it is
    region = busiest_region(flow)
    assert (region.width, region.height) == (30, 40)
    # In the middle of it.
    assert abs(region.x + 15 - 125) <= 1
    assert abs(region.y + 20 - 55) <= 1
    flow[:50] = np.nan
    assert busiest_region(flow).height == 40
    for shape in ((5, 6), (1, 1), (300, 9)):
        tiny = busiest_region(np.zeros((*shape, 2), np.float32))
        tiny.check(shape)


def test_networks_in_a_folder(tmp_path: Path) -> None:
    for name in ("fq-7", "qq-7", "qq-5"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "last.safetensors").write_text("")
    found = find_networks(("FQ", "QQ"), {}, tmp_path)
    assert found == {
        "FQ": str(tmp_path / "fq-7" / "last.safetensors"),
        "QQ": str(tmp_path / "qq-7" / "last.safetensors"),
    }
    mixed = find_networks(("FF", "QQ"), {"FF": "default"}, tmp_path, layers=5)
    assert mixed == {"FF": "default", "QQ": str(tmp_path / "qq-5" / "last.safetensors")}
    with pytest.raises(FileError, match=r"ff-7.*does not exist.*--ff"):
        find_networks(("FF", "FQ", "QQ"), {}, tmp_path)


def test_networks_by_name() -> None:
    assert find_networks(("FF", "QQ"), {}) == {"FF": "default", "QQ": "default"}
    with pytest.raises(InputError, match="no network for FF"):
        find_networks(("FF", "QQ"), {"QQ": "pairs"})
    with pytest.raises(InputError, match="--models does not name FF"):
        find_networks(("QQ",), {"FF": "pairs"})
    for wrong in ((), ("QQ", "QQ")):
        with pytest.raises(InputError, match="--models"):
            find_networks(wrong, {})


def test_parse_region() -> None:
    assert parse_region("1,2,30,40") == Region(1, 2, 30, 40)
    for text in ("1,2,3", "a,b,c,d", "", "1,2,3,4,5"):
        with pytest.raises(InputError, match="--region"):
            parse_region(text)


@pytest.mark.parametrize("region", ["-1,0,9,9", "0,0,57,10", "0,30,10,11", "3,3,0,5"])
def test_region_outside(region: str, files: list[str], tmp_path: Path) -> None:
    path = tmp_path / "f.png"
    assert figure(files, *PAIRS, f"--region={region}", "-o", str(path)) == 1
    assert not path.exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["-o", "f.gif"], "suffix"),
        (["-o", "missing/f.png"], "create it first"),
        (["-o", "f.png", "--weights", "nowhere"], "'python -m experiments paper table1'"),
        (["-o", "f.png", "--ff", "nowhere.onnx"], "no network for FQ"),
        (["-o", "f.png", "--models", "QQ", "--qq", "nowhere.onnx"], "nowhere.onnx"),
        (["-o", "f.png", "--d", "7"], "--d must be even"),
        (["-o", "f.png", "--scale", "0"], "--scale must be"),
        (["-o", "f.png", "--scale", "100"], "smaller --scale"),
        (["-o", "f.png", "--truth", "f.png"], "itself"),
        (["-o", "a.png"], "itself"),
    ],
)
@pytest.mark.usefixtures("_inside")
def test_errors(
    options: list[str], words: str, files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert figure(files, *options) == 1
    captured = capsys.readouterr()
    assert words in captured.err
    assert captured.err.endswith(".\n")
    assert captured.out == ""  # no bar has begun


def test_sizes_must_be_one(files: list[str]) -> None:
    with pytest.raises(InputError, match=r"SECOND.*56×40 and 55×40"):
        check_pair(FRAMES[0], FRAMES[1][:, :-1])
    with pytest.raises(InputError, match="--truth"):
        check_pair(*FRAMES, SCENE.flow[:-1])
    with pytest.raises(InputError, match="no pixel of known flow"):
        check_pair(*FRAMES, np.full_like(SCENE.flow, np.nan))
    methods = prepare_methods({"QQ": "pairs"}, d=8)
    with pytest.raises(InputError, match="SECOND"):
        estimate_panels(FRAMES[0], FRAMES[1][:-1], methods)
    # And no input is written over.
    assert figure(files, "-o", files[0]) == 1


def test_without_matplotlib(
    files: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert figure(files, "-o", str(tmp_path / "f.png")) == 1
    assert "pip install 'hamflow[plot]'" in capsys.readouterr().err

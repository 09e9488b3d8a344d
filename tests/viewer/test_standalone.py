"""The page as one file: what it holds, and that its arrays can be read again."""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

import hamflow
from hamflow.cli.main import main
from hamflow.datasets import SyntheticScene, demo_scene
from hamflow.errors import InputError
from hamflow.pipeline.explain import Explanation
from hamflow.result import FlowResult
from hamflow.viewer.coding import UNKNOWN, as_ranges, as_steps, packed_differences
from hamflow.viewer.standalone import Shown, ShownResult, page_html, write_page

Estimate = tuple[SyntheticScene, FlowResult, Explanation]


@pytest.fixture(scope="module")
def estimate() -> Estimate:
    scene = demo_scene(80, 128)
    return scene, *hamflow.Estimator("fast").explained(scene.image0, scene.image1)


def shown(estimate: Estimate, **more: Any) -> Shown:
    scene, result, explanation = estimate
    part = ShownResult("fast", result, truth=scene.flow, explanation=explanation)
    return Shown(more.get("name", "demo"), [scene.image0, scene.image1], [part])


def data_of(page: str) -> Any:
    found = re.search(r'id="hamflow-data">(.*?)</script>', page)
    assert found is not None
    return json.loads(found[1])


def blob(page: str, number: int) -> bytes:
    found = re.search(rf'id="blob-{number}">([^<]*)</script>', page)
    assert found is not None
    return base64.b64decode(found[1], validate=True)


def undone(data: bytes, shape: tuple[int, ...]) -> NDArray[np.int16]:
    """What ``undelta`` of coding.js does, in the slowest way."""
    octets = np.frombuffer(zlib.decompress(data), np.uint8).astype(np.int64)
    half = len(octets) // 2
    differences = (octets[:half] + 256 * octets[half:]).reshape(shape)
    return differences.cumsum(axis=1).astype(np.uint16).view(np.int16)


@given(arrays(np.int16, st.tuples(*3 * [st.integers(1, 5)])))
def test_differences_can_be_undone(values: NDArray[np.int16]) -> None:
    assert (undone(packed_differences(values), values.shape) == values).all()


@given(arrays(np.float32, (3, 4, 2), elements=st.floats(-5000, 5000, width=32)), st.booleans())
def test_steps_are_fine_enough(flow: NDArray[np.float32], unknown: bool) -> None:
    if unknown:
        flow[1, 2] = np.nan
    whole, step = as_steps(flow)
    assert ((whole == UNKNOWN) == np.isnan(flow)).all()
    known = ~np.isnan(flow)
    assert abs(whole[known] * step - flow[known]).max() <= step / 2 + 1e-6
    # 16 bits for what there is, but no finer than a thousandth of a pixel.
    assert step <= max(2.0**-10, abs(flow[known]).max() / 16383)


def test_slacks_are_within_half_a_step() -> None:
    slack = np.random.default_rng(0).integers(-2000, 2000, (4, 5, 30)).astype(np.int16)
    slack[2, 3] = 7  # all alike
    rounded, ranges = as_ranges(slack, 0.25)
    values = ranges[..., :1] + ranges[..., 1:] * rounded
    assert (abs(values - 0.25 * slack) <= ranges[..., 1:] / 2 + 1e-3).all()
    assert (values[2, 3] == 1.75).all()


def test_the_flow_can_be_read_again(estimate: Estimate) -> None:
    page, _ = page_html([shown(estimate)])
    [result] = data_of(page)["results"]
    layer = result["layers"]["flow"]
    values = undone(blob(page, layer["blob"]), tuple(layer["shape"])) * layer["step"]
    assert abs(values - estimate[1].flow).max() <= layer["step"] / 2
    assert sorted(result["layers"]) == ["backward", "confidence", "flow", "occlusion", "truth"]
    assert result["explanation"]["slack"] is not None
    error = np.hypot(*np.moveaxis(estimate[1].flow - estimate[0].flow, 2, 0)).mean()
    assert result["error"]["epe"] == pytest.approx(error, rel=1e-4)


def test_names_are_text(estimate: Estimate) -> None:
    nasty = "</script><script>alert(1)</script><!--&amp;\u2028"
    page, _ = page_html([shown(estimate, name=nasty)], title=nasty)
    assert "<script>alert" not in page
    assert data_of(page)["sources"][0]["name"] == nasty
    # Only what was there when the page was written may run.
    assert "unsafe" not in page.split("Content-Security-Policy")[1].split(">")[0]


def test_what_has_no_room_is_left_out_in_order(estimate: Estimate) -> None:
    whole, _ = page_html([shown(estimate)])
    sizes = {
        name: 4 * -(-len(blob(whole, number)) // 3)
        for name, number in (
            ("slack", data_of(whole)["results"][0]["explanation"]["slack"][0]),
            ("bits", data_of(whole)["results"][0]["explanation"]["bitsBlobs"][0]),
            ("backward", data_of(whole)["results"][0]["layers"]["backward"]["blob"]),
        )
    }
    total = sum(len(text) for text in re.findall(r'id="blob-\d+">([^<]*)<', whole))

    def held(limit: int) -> tuple[bool, bool, bool, list[str]]:
        data = data_of(page_html([shown(estimate)], limit=limit)[0])
        [result] = data["results"]
        why = result["explanation"]
        backward = "backward" in result["layers"]
        return backward, why is not None, bool(why and why["slack"]), data["notes"]

    assert held(total) == (True, True, True, [])
    without_slacks = held(total - 1)
    assert without_slacks[:3] == (True, True, False)
    assert re.fullmatch(r"Without the slacks of 1 of 1 results, .* MB\.", *without_slacks[3])
    slacks = data_of(whole)["results"][0]["explanation"]["slack"]
    rest = total - sum(4 * -(-len(blob(whole, number)) // 3) for number in slacks)
    assert held(rest - 1)[:3] == (True, False, False)
    needed = (
        rest
        - sizes["backward"]
        - sum(
            4 * -(-len(blob(whole, number)) // 3)
            for number in _numbers(data_of(whole)["results"][0]["explanation"])
            if number not in slacks
        )
    )
    assert held(needed)[:3] == (False, False, False)
    with pytest.raises(InputError, match="more than the limit of"):
        held(needed - 1)


def _numbers(why: dict[str, Any]) -> list[int]:
    prior = why["prior"]
    found = [*why["bitsBlobs"], why["labelsBlob"], *why["slack"]]
    return found + ([prior["flowBlob"], prior["weightBlob"]] if prior else [])


def test_a_flow_alone_and_unknown_vectors(tmp_path: Path) -> None:
    flow = np.full((20, 30, 2), np.nan, np.float32)
    notes = write_page(tmp_path / "page.html", [Shown("flow", [], [ShownResult("a", flow)])])
    assert notes == []
    data = data_of((tmp_path / "page.html").read_text("utf-8"))
    assert data["sources"][0]["frames"] == 0
    assert data["results"][0]["summary"] == {"mean_length": 0.0, "longest": 0.0}


def test_wrong_sizes_are_refused(estimate: Estimate) -> None:
    scene, result, _ = estimate
    with pytest.raises(InputError, match="size of the flow, 128×80, but one has 127×80"):
        page_html([Shown("a", [scene.image0[:, 1:]], [ShownResult("a", result)])])
    with pytest.raises(InputError, match="must have one size"):
        flows = [ShownResult("a", result.flow), ShownResult("b", result.flow[1:])]
        page_html([Shown("a", [], flows)])
    with pytest.raises(InputError, match="at least one result"):
        page_html([Shown("a", [scene.image0], [])])


@pytest.fixture
def inputs(estimate: Estimate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    scene, result, _ = estimate
    monkeypatch.chdir(tmp_path)
    hamflow.write_image("1.png", scene.image0)
    hamflow.write_image("2.png", scene.image1)
    hamflow.write_flow("true.flo", scene.flow)
    result.save("saved.npz")
    return tmp_path


@pytest.mark.parametrize(
    ("line", "labels", "frames", "explained"),
    [
        ("1.png 2.png --preset fast realtime --truth true.flo", ["fast", "realtime"], 2, True),
        ("1.png 2.png 1.png --preset realtime", ["realtime"], 3, True),
        ("1.png 2.png --preset realtime --max-memory 2GB", ["realtime"], 2, False),
        ("1.png 2.png saved.npz true.flo", ["saved.npz", "true.flo"], 2, False),
        ("1.png saved.npz", ["saved.npz"], 1, False),
        ("true.flo", ["true.flo"], 0, False),
        ("1.png 2.png 1.png saved.npz true.flo", ["saved"], 3, False),
    ],
)
def test_the_command(
    inputs: Path,
    capsys: pytest.CaptureFixture[str],
    *,
    line: str,
    labels: list[str],
    frames: int,
    explained: bool,
) -> None:
    assert main(["view", *line.split(), "-o", "page.html"]) == 0
    assert capsys.readouterr().out.startswith("Wrote page.html: ")
    data = data_of((inputs / "page.html").read_text("utf-8"))
    assert [run["label"] for run in data["runs"]] == labels
    assert len(data["frames"]["s0"]) == frames
    for run in data["runs"]:
        assert sorted(map(int, run["results"])) == list(range(max(1, frames - 1)))
    assert all((result["explanation"] is not None) == explained for result in data["results"])


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("1.png -o a.html", "1.png: name the second image, too, or a flow file."),
        ("1.png 2.png -o a.png", "--output must end in .html, but is a.png."),
        (
            "1.png 2.png 1.png saved.npz -o a.html",
            "3 images need 2 flow files, one for each image but the last, but 1 are named.",
        ),
        (
            "1.png 2.png 1.png --truth true.flo -o a.html",
            "--truth is the flow of one pair; name two images with it.",
        ),
        ("1.png 3.png -o a.html", "3.png: does not exist; check the path."),
        (
            "1.png 2.png --max-memory much -o a.html",
            "--max-memory must be an amount of memory such as 600MB, 4GB or 2GiB, not 'much'.",
        ),
    ],
)
def test_wrong_words(inputs: Path, fails: Callable[..., str], line: str, sentence: str) -> None:
    assert fails("view", *line.split()) == f"hamflow: {sentence}\n"
    assert not list(inputs.glob("a.*"))

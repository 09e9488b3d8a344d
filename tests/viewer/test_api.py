"""The story behind the page: look at sources, run jobs, read results; all as Python gives them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

import hamflow
from _viewer import Browser, Page, follow, moving, pixels, run, served, upload
from hamflow import Estimator, FlowResult
from hamflow.viewer.front import PAGE

COUNT = 4
STEP = (3, 1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Frames, and the truth of the first two pairs."""
    folder = tmp_path_factory.mktemp("given") / "walk"
    folder.mkdir()
    for k, frame in enumerate(moving(COUNT, *STEP)):
        hamflow.write_image(folder / f"{k}.png", frame)
    truth = folder.parent / "truth"
    truth.mkdir()
    for k in range(2):
        hamflow.write_flow(truth / f"{k}.flo", np.full((60, 80, 2), STEP, np.float32))
    return folder


@pytest.fixture(scope="module")
def page(folder: Path) -> Iterator[Page]:
    with served([folder], truth=folder.parent / "truth") as page:
        yield page


@pytest.fixture(scope="module")
def browser(page: Page) -> Browser:
    return page.browser()


@pytest.fixture(scope="module")
def source(browser: Browser) -> dict[str, Any]:
    found: list[dict[str, Any]] = browser.get("/api/sources").json()
    assert len(found) == 1
    return found[0]


@pytest.fixture(scope="module")
def done(browser: Browser, source: dict[str, Any]) -> dict[str, Any]:
    """The whole stretch."""
    return run(browser, source["id"], first=0, last=COUNT - 1)


@pytest.fixture(scope="module")
def result(done: dict[str, Any]) -> str:
    name: str = done["results"]["0"]
    return name


@pytest.fixture(scope="module")
def expected(folder: Path) -> tuple[FlowResult, hamflow.Explanation]:
    return Estimator("realtime").explained(folder / "0.png", folder / "1.png")


def test_the_page(browser: Browser) -> None:
    assert browser.get("/").text == (PAGE / "index.html").read_text(encoding="utf-8")
    for file in PAGE.iterdir():
        answer = browser.get(f"/page/{file.name}")
        assert answer.content == file.read_bytes()
    assert browser.head("/").content == b""
    assert browser.post("/").status_code == 405


def test_info(browser: Browser) -> None:
    info = browser.get("/api/info").json()
    assert info["version"] == hamflow.__version__
    assert [preset["name"] for preset in info["presets"]][:2] == ["realtime", "fine"]
    assert info["limits"]["queue"] > 0


def test_the_source(source: dict[str, Any]) -> None:
    assert source["kind"] == "sequence"
    assert source["name"] == "walk"
    assert (source["width"], source["height"], source["frames"]) == (80, 60, COUNT)
    assert source["names"] == ["0", "1", "2", "3"]
    assert source["truth"]
    assert source["times"] is None


def test_frames(browser: Browser, source: dict[str, Any], folder: Path) -> None:
    for k in range(COUNT):
        answer = browser.get(f"/api/sources/{source['id']}/frames/{k}")
        assert (pixels(answer.content) == hamflow.read_image(folder / f"{k}.png")).all()
        assert "immutable" in answer.headers["cache-control"]
    small = pixels(browser.get(f"/api/sources/{source['id']}/frames/0?width=40").content)
    assert small.shape == (30, 40, 3)
    answer = browser.get(f"/api/sources/{source['id']}/frames/4")
    assert (answer.status_code, answer.json()["detail"]) == (404, "walk has no frame 4; it has 4.")


def test_a_stretch(done: dict[str, Any]) -> None:
    assert done["state"] == "done"
    assert done["share"] == 1
    assert sorted(done["results"]) == ["0", "1", "2"]
    assert done["cuts"] == []
    directions = [(step["index"], step["direction"]) for step in done["history"]]
    assert {(k, d) for k in range(3) for d in ("forward", "backward")} == set(directions)
    assert all(step["bound"] <= step["energy"] for step in done["history"])
    assert {step["scale"] for step in done["history"]} == {1}


def test_progress_never_falls(browser: Browser, source: dict[str, Any]) -> None:
    answer = browser.post("/api/jobs", json={"source": source["id"], "index": 2})
    states = follow(browser, answer.json()["id"])
    assert states[-1]["state"] == "done"
    shares = [state["share"] for state in states]
    assert shares == sorted(shares)
    assert list(states[-1]["results"]) == ["2"]
    assert browser.get(f"/api/jobs/{states[-1]['id']}").json() == states[-1]
    assert states[-1] in browser.get("/api/jobs").json()


def test_the_result(
    browser: Browser, result: str, expected: tuple[FlowResult, hamflow.Explanation]
) -> None:
    found = browser.get(f"/api/results/{result}").json()
    summary = expected[0].summary()
    assert found["summary"] | {"seconds": 0} == summary | {"seconds": 0}
    assert (found["width"], found["height"], found["scale"]) == (80, 60, expected[0].scale)
    assert (found["energy"], found["bound"]) == (expected[0].energy, expected[0].bound)
    assert found["window"] == list(expected[0].window.as_tuple())
    assert found["full_color"] == hamflow.visualize.typical_length(expected[0].flow)
    assert found["layers"] == ["flow", "backward", "occlusion", "confidence", "error", "truth"]
    truth = np.full((60, 80, 2), STEP, np.float32)
    error = hamflow.endpoint_error(expected[0].flow, truth)
    assert found["error"]["epe"] == pytest.approx(error.mean())
    assert found["explained"]


def array(browser: Browser, result: str, name: str, query: str = "") -> Any:
    answer = browser.get(f"/api/results/{result}/layers/{name}{query}")
    assert answer.status_code == 200
    shape = [int(side) for side in answer.headers["x-shape"].split(",")]
    return np.frombuffer(answer.content, answer.headers["x-dtype"]).reshape(shape)


def test_layers(
    browser: Browser, result: str, expected: tuple[FlowResult, hamflow.Explanation]
) -> None:
    flow = expected[0]
    assert (array(browser, result, "flow", "?type=float32") == flow.flow).all()
    assert (array(browser, result, "flow") == flow.flow.astype(np.float16)).all()
    assert flow.backward is not None
    assert (array(browser, result, "backward", "?type=float32") == flow.backward).all()
    assert (array(browser, result, "occlusion").astype(bool) == flow.occlusion).all()
    confidence = array(browser, result, "confidence")
    assert confidence.dtype == np.uint8
    assert np.abs(confidence / 255 - flow.confidence).max() < 0.51 / 255
    truth = array(browser, result, "truth", "?type=float32")
    assert (truth == STEP).all()
    error = hamflow.endpoint_error(flow.flow, truth)
    assert (array(browser, result, "error", "?type=float32") == error).all()


def test_a_result_without_truth(browser: Browser, done: dict[str, Any]) -> None:
    result = done["results"]["2"]
    found = browser.get(f"/api/results/{result}").json()
    assert found["error"] is None
    assert "truth" not in found["layers"]
    assert browser.get(f"/api/results/{result}/layers/error").status_code == 404


def test_layers_are_compressed_for_other_machines(
    page: Page, browser: Browser, result: str
) -> None:
    async def answer(encoding: str, address: str) -> httpx.Response:
        transport = httpx.ASGITransport(page.front, client=(address, 5))
        async with httpx.AsyncClient(
            transport=transport, base_url=page.address, cookies=dict(browser.cookies)
        ) as far:
            headers = {"Accept-Encoding": encoding}
            return await far.get(f"/api/results/{result}/layers/flow", headers=headers)

    packed = asyncio.run(answer("gzip, deflate", "10.0.0.7"))
    assert packed.headers["content-encoding"] == "gzip"
    for plain in (answer("identity", "10.0.0.7"), answer("gzip", "127.0.0.1")):
        found = asyncio.run(plain)
        assert "content-encoding" not in found.headers
        assert found.content == packed.content


@pytest.mark.parametrize("place", [(0, 0), (79, 59), (40, 30), (13, 44)])
def test_a_pixel(
    browser: Browser,
    result: str,
    expected: tuple[FlowResult, hamflow.Explanation],
    place: tuple[int, int],
) -> None:
    x, y = place
    found = browser.get(f"/api/results/{result}/pixel?x={x}&y={y}").json()
    flow, explanation = expected
    u, v = (float(component) for component in flow.flow[y, x])
    why = explanation.pixel(x, y, around=(u, v)).as_dict()
    assert {name: found[name] for name in why} == why
    assert found["flow"] == [u, v]
    assert found["match"] == [x + u, y + v]
    assert flow.confidence is not None
    assert found["confidence"] == flow.confidence[y, x]
    assert found["expected_error"] == pytest.approx(1 / float(flow.confidence[y, x]) - 1)
    assert found["truth"] == list(STEP)
    column, row = round(x + u), round(y + v)
    if 0 <= column < 80 and 0 <= row < 60:
        assert flow.backward is not None
        back = flow.backward[row, column]
        assert found["backward"] == [float(component) for component in back]
        assert found["round_trip"] == pytest.approx(float(np.hypot(u + back[0], v + back[1])))
    else:
        assert found["backward"] is None


def test_a_pixel_outside(browser: Browser, result: str) -> None:
    answer = browser.get(f"/api/results/{result}/pixel?x=80&y=3")
    assert answer.status_code == 422
    assert "outside of the image of 80×60 pixels" in answer.json()["detail"]
    assert browser.get(f"/api/results/{result}/pixel?x=1").json()["detail"] == "y: Field required."


def test_warped(
    browser: Browser,
    result: str,
    folder: Path,
    expected: tuple[FlowResult, hamflow.Explanation],
) -> None:
    found = pixels(browser.get(f"/api/results/{result}/warped").content)
    assert (found == expected[0].warp(hamflow.read_image(folder / "1.png"))).all()


def test_a_track(browser: Browser, done: dict[str, Any]) -> None:
    """From the middle of the stretch, to its beginning and its end."""
    name = done["results"]["1"]
    points = browser.get(f"/api/results/{name}/track?x=40&y=30").json()["points"]
    assert [point["index"] for point in points] == [0, 1, 2, 3]
    for point in points:
        steps = point["index"] - 1
        assert abs(point["x"] - (40 + 3 * steps)) < 1
        assert abs(point["y"] - (30 + steps)) < 1
        assert point["visible"]
    answer = browser.get(f"/api/results/{name}/track?x=90&y=3")
    assert answer.status_code == 422


@pytest.mark.parametrize("form", ["flo", "kitti.png", "npz"])
def test_downloads(
    browser: Browser,
    result: str,
    form: str,
    tmp_path: Path,
    expected: tuple[FlowResult, hamflow.Explanation],
) -> None:
    answer = browser.get(f"/api/results/{result}/download/{form}")
    assert f'filename="flow_0000.{form}"' in answer.headers["content-disposition"]
    path = tmp_path / f"flow.{form}"
    path.write_bytes(answer.content)
    least = 1 / 128 if form == "kitti.png" else 0
    assert np.abs(hamflow.read_flow(path) - expected[0].flow).max() <= least
    if form == "npz":
        assert FlowResult.load(path).energy == expected[0].energy


def test_the_download_of_a_picture(
    browser: Browser, result: str, expected: tuple[FlowResult, hamflow.Explanation]
) -> None:
    answer = browser.get(f"/api/results/{result}/download/png")
    assert (pixels(answer.content) == expected[0].to_color(key=True)).all()
    assert browser.get(f"/api/results/{result}/download/exe").status_code == 422


def test_the_download_of_a_page(
    browser: Browser, source: dict[str, Any], done: dict[str, Any], result: str
) -> None:
    address = f"/api/results/{result}/download/html"
    answer = browser.get(address, params={"view": '{"mode": "blink"}'})
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert 'filename="flow_0000.html"' in answer.headers["content-disposition"]
    assert answer.text.lower().startswith("<!doctype html>")
    assert "blink" in answer.text
    other = run(browser, source["id"], preset="fast")["results"]["0"]
    both = browser.get(address, params={"also": [other]})
    assert len(both.content) > len(answer.content)
    for wrong, status in (({"view": "blink"}, 422), ({"also": [done["results"]["1"]]}, 409)):
        assert browser.get(address, params=wrong).status_code == status


def test_a_flow_that_a_format_cannot_hold(page: Page, browser: Browser, tmp_path: Path) -> None:
    window = hamflow.Window.of(2)
    flow = np.full((8, 9, 2), 600, np.float32)
    FlowResult(flow, None, None, None, None, None, None, window, 1).save(tmp_path / "far.npz")
    files = [("files", ("far.npz", (tmp_path / "far.npz").read_bytes()))]
    source = browser.post("/api/sources", files=files).json()
    answer = browser.get(f"/api/results/{source['result']}/download/kitti.png")
    assert answer.status_code == 422
    assert "kitti" in answer.json()["detail"].lower()


def test_another_window_and_preset(browser: Browser, source: dict[str, Any]) -> None:
    job = run(browser, source["id"], index=1, preset="fast", window=16)
    found = browser.get(f"/api/results/{job['results']['1']}").json()
    assert (found["preset"], found["window"], found["index"]) == ("fast", [-8, 16, -8, 16], 1)


@pytest.mark.parametrize(
    ("wanted", "status", "message"),
    [
        ({"index": 3}, 422, "walk has 4 frames, so that the last pair begins with frame 2."),
        ({"first": 0, "last": 4}, 422, "the last pair begins with frame 2"),
        ({"first": 2, "last": 2}, 422, "last must be greater than first"),
        ({"first": 2}, 422, "a stretch needs both first and last"),
        ({"index": 0, "first": 0, "last": 1}, 422, "give either index or first and last"),
        ({"index": -1}, 422, "index: Input should be greater than or equal to 0."),
        ({"window": 7}, 422, "window: Must be 'auto' or an even number"),
        (
            {"preset": "best"},
            422,
            "There is no preset 'best'; choose one of realtime, fine, balanced",
        ),
        ({"preset": "/etc/passwd.toml"}, 422, "There is no preset"),
        ({"other": 1}, 422, "other: Extra inputs are not permitted."),
        ({"source": "nothing"}, 404, "There is no such source"),
    ],
)
def test_wrong_jobs(
    browser: Browser, source: dict[str, Any], wanted: dict[str, Any], status: int, message: str
) -> None:
    answer = browser.post("/api/jobs", json={"source": source["id"], **wanted})
    assert answer.status_code == status
    assert message in answer.json()["detail"]


def test_a_cut(browser: Browser) -> None:
    frames = moving(3, height=120, width=160)
    frames.append(np.random.default_rng(5).integers(0, 256, frames[0].shape, np.uint8))
    job = run(browser, upload(browser, *frames)["id"], first=1, last=3)
    assert job["cuts"] == [2]
    assert browser.get(f"/api/results/{job['results']['2']}").json()["cut"]
    points = browser.get(f"/api/results/{job['results']['1']}/track?x=80&y=50").json()["points"]
    assert [point["index"] for point in points] == [1, 2]  # a track ends at a cut


def test_shared_sources_stay(browser: Browser, source: dict[str, Any]) -> None:
    answer = browser.delete(f"/api/sources/{source['id']}")
    assert answer.status_code == 409
    assert answer.json()["detail"] == "walk was given on the command line, and stays."

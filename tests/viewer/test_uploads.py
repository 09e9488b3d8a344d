"""What browsers send: images, videos and results, damaged ones, too large ones, hostile ones."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hamflow
from _flows import fixture_is_fine
from _png import SIGNATURE, chunk, header
from _videos import write_video
from _viewer import Browser, Page, moving, png, run, served, upload
from hamflow import FlowResult, Window
from hamflow.crf import CrfStep
from hamflow.viewer.limits import Limits
from hamflow.viewer.opening import cleaned

LIMITS = Limits(
    upload_bytes=300_000, upload_files=6, pixels=10_000, frames=5, sources=8, store_bytes=10**8
)


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    with served(limits=LIMITS) as page:
        yield page


@pytest.fixture
def browser(page: Page) -> Browser:
    return page.browser()


def send(browser: Browser, *files: tuple[str, bytes], truth: Any = None) -> tuple[int, str]:
    """Status and sentence for an upload."""
    parts = [("files", file) for file in files] + ([("truth", truth)] if truth else [])
    answer = browser.post("/api/sources", files=parts)
    return answer.status_code, answer.json().get("detail", "")


def files_in(page: Page) -> list[Path]:
    return [path for path in page.registry.workspace.path.rglob("*") if path.is_file()]


def result_file(path: Path, height: int = 60, width: int = 80) -> bytes:
    flow = np.zeros((height, width, 2), np.float32)
    FlowResult(flow, None, None, None, None, None, None, Window.of(2), 1).save(path)
    return path.read_bytes()


def test_images(page: Page, browser: Browser) -> None:
    source = upload(browser, *moving(2))
    assert (source["kind"], source["name"], source["frames"]) == ("pair", "0.png, 1.png", 2)
    assert source in browser.get("/api/sources").json()
    assert not source["shared"]
    many = upload(browser, *moving(4))
    assert (many["kind"], many["name"]) == ("sequence", "0.png … 3.png")
    before = len(files_in(page))
    for name in (source["id"], many["id"]):
        assert browser.delete(f"/api/sources/{name}").status_code == 204
        assert browser.get(f"/api/sources/{name}/frames/0").status_code == 404
    assert len(files_in(page)) == before - 6
    assert browser.get("/api/sources").json() == []


def test_a_source_goes_with_its_jobs_and_results(page: Page, browser: Browser) -> None:
    before = len(files_in(page))
    source = upload(browser, *moving(2))
    job = run(browser, source["id"])
    assert len(files_in(page)) > before + 2
    browser.delete(f"/api/sources/{source['id']}")
    assert browser.get(f"/api/jobs/{job['id']}").status_code == 404
    assert browser.get(f"/api/results/{job['results']['0']}").status_code == 404
    assert len(files_in(page)) == before


def test_truth(browser: Browser, tmp_path: Path) -> None:
    truth = tmp_path / "truth.flo"
    hamflow.write_flow(truth, np.full((60, 80, 2), (3, 1), np.float32))
    source = upload(browser, *moving(2), truth=("t.flo", truth.read_bytes()))
    assert source["truth"]
    result = run(browser, source["id"])["results"]["0"]
    assert browser.get(f"/api/results/{result}").json()["error"]["epe"] < 1


def test_a_video(browser: Browser, tmp_path: Path) -> None:
    video = write_video(tmp_path / "clip.mp4", moving(4, height=64))
    answer = browser.post("/api/sources", files=[("files", ("clip.mp4", video.read_bytes()))])
    source = answer.json()
    assert (source["kind"], source["name"], source["frames"]) == ("sequence", "clip.mp4", 4)
    assert source["times"] == pytest.approx([0, 1 / 30, 2 / 30, 3 / 30], abs=1e-3)
    assert not source["loading"]
    job = run(browser, source["id"], first=0, last=3)
    assert sorted(job["results"]) == ["0", "1", "2"]


def test_a_long_video(browser: Browser, tmp_path: Path) -> None:
    video = write_video(tmp_path / "clip.mp4", moving(8, height=64))
    answer = browser.post("/api/sources", files=[("files", ("clip.mp4", video.read_bytes()))])
    assert answer.json()["frames"] == LIMITS.frames
    assert answer.json()["note"] == "Only the first 5 frames are shown."


def test_a_result(page: Page, browser: Browser, tmp_path: Path) -> None:
    content = result_file(tmp_path / "r.npz")
    answer = browser.post("/api/sources", files=[("files", ("r.npz", content))])
    source = answer.json()
    assert (source["kind"], source["frames"], source["width"]) == ("result", 0, 80)
    result = browser.get(f"/api/results/{source['result']}").json()
    session = page.registry.session(browser.cookies[page.guard.session_cookie])
    loaded = page.registry.result(session, source["result"]).load()
    assert isinstance(loaded.flow, np.memmap)  # on the disk, however many there are
    assert not result["explained"]
    assert result["layers"] == ["flow"]
    pixel = browser.get(f"/api/results/{source['result']}/pixel?x=3&y=4").json()
    assert (pixel["flow"], pixel["u"], pixel["occluded"]) == ([0, 0], None, None)
    assert browser.get(f"/api/results/{source['result']}/warped").status_code == 409
    answer = browser.post("/api/jobs", json={"source": source["id"]})
    assert answer.status_code == 409
    assert answer.json()["detail"] == "r.npz has no images, so that nothing can be estimated."


def test_a_result_with_its_images(browser: Browser, tmp_path: Path) -> None:
    first, second = (png(frame) for frame in moving(2))
    files = [("1.png", first), ("2.png", second), ("r.npz", result_file(tmp_path / "r.npz"))]
    answer = browser.post("/api/sources", files=[("files", file) for file in files])
    source = answer.json()
    assert (source["kind"], source["frames"]) == ("pair", 2)
    assert browser.get(f"/api/results/{source['result']}/warped").status_code == 200


def unusual(path: Path, vector: float, sure: float, number: float) -> bytes:
    """A saved result with such numbers."""
    flow = np.full((60, 80, 2), vector, np.float32)
    confidence = np.full((60, 80), sure, np.float32)
    FlowResult(
        *(flow, flow, np.ones((60, 80), np.bool_), confidence, number, number, number),
        *(Window.of(2), 1),
        history=(CrfStep(1, number, number, number),),
        timings={"matching": number},
    ).save(path)
    return path.read_bytes()


@pytest.mark.parametrize(
    ("vector", "sure"), [(np.nan, 1), (np.inf, 1), (-1e30, 1), (0, np.nan), (0, 1.5), (0, -np.inf)]
)
def test_results_that_nobody_has_estimated(
    browser: Browser, tmp_path: Path, vector: float, sure: float
) -> None:
    status, sentence = send(browser, ("r.npz", unusual(tmp_path / "r.npz", vector, sure, 1)))
    assert status == 415
    assert sentence.startswith("r.npz: holds numbers that no result has")


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf, 1e300])
@pytest.mark.parametrize("vector", [-1e6, 513])
def test_unusual_results(browser: Browser, tmp_path: Path, vector: float, number: float) -> None:
    """No answer fails, and none has numbers that JSON does not know."""
    first, second = (png(frame) for frame in moving(2))
    result = unusual(tmp_path / "r.npz", vector, 0, number)
    files = [("1.png", first), ("2.png", second), ("r.npz", result)]
    answer = browser.post("/api/sources", files=[("files", file) for file in files])
    assert answer.status_code == 201
    result = answer.json()["result"]
    for rest in (
        *("", "/layers/flow", "/layers/confidence", "/warped", "/pixel?x=3&y=4", "/track?x=3&y=4"),
        *(f"/download/{form}" for form in ("flo", "png", "npz", "html")),
    ):
        answer = browser.get(f"/api/results/{result}{rest}")
        assert answer.status_code == 200, rest
        if answer.headers["content-type"] == "application/json":
            assert not {"NaN", "Infinity"} & set(re.findall(r"\w+", answer.text))
    assert browser.get(f"/api/results/{result}/download/kitti.png").status_code == 422


def bomb(width: int, height: int) -> bytes:
    """A PNG file of few bytes that announces many pixels."""
    data = chunk(b"IDAT", zlib.compress(bytes(10_000)))
    return SIGNATURE + header(width, height, 8) + data + chunk(b"IEND", b"")


IMAGE = png(moving(2)[0])


@pytest.mark.parametrize(
    ("files", "status", "message"),
    [
        ([("a.png", IMAGE)], 422, "a.png: is one image, but a flow needs two"),
        ([("a.png", IMAGE), ("b.txt", b"hello")], 415, "b.txt: is not an image that Hamflow reads"),
        ([("a.png", IMAGE), ("b.png", IMAGE[:300])], 415, "b.png: cannot be decoded"),
        ([("a.png", IMAGE), ("b.png", b"")], 415, "b.png: is not an image"),
        ([("notes.txt", b"hello")], 415, "notes.txt: is no image, video or saved result"),
        ([("r.npz", b"PK\x03\x04hello")], 415, "r.npz: does not end like a .npz file"),
        ([("a.png", bomb(30_000, 30_000))] * 2, 415, "a.png: its header announces"),
        ([("a.png", bomb(3_000, 3_000))] * 2, 413, "a.png: has 3000×3000 pixels, but at most"),
        ([("a.png", IMAGE)] * 7, 413, "7 files are more than the 6 of one upload"),
        ([("a.png", IMAGE), ("b.png", png(moving(2, height=50)[0]))], 422, "b.png: has 80×50"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_wrong_files(
    page: Page, browser: Browser, files: list[tuple[str, bytes]], status: int, message: str
) -> None:
    before = files_in(page)
    found, sentence = send(browser, *files)
    assert (found, message in sentence) == (status, True), sentence
    assert str(page.registry.workspace.path) not in sentence
    assert files_in(page) == before  # nothing remains


def test_wrong_truths(page: Page, browser: Browser, tmp_path: Path) -> None:
    images = [("a.png", IMAGE), ("b.png", IMAGE)]
    small = tmp_path / "small.flo"
    hamflow.write_flow(small, np.zeros((5, 6, 2), np.float32))
    before = files_in(page)
    for truth, status, message in [
        (("t.flo", b"hello"), 415, "t.flo: "),
        (("t.exe", b"hello"), 415, "t.exe: is no flow file by its name"),
        (
            ("t.flo", small.read_bytes()),
            422,
            "The truth has 6×5 vectors, but the images have 80×60",
        ),
    ]:
        found, sentence = send(browser, *images, truth=truth)
        assert (found, message in sentence) == (status, True), sentence
    assert files_in(page) == before


def test_a_result_of_another_size(browser: Browser, tmp_path: Path) -> None:
    content = result_file(tmp_path / "r.npz", 5, 6)
    status, sentence = send(browser, ("a.png", IMAGE), ("b.png", IMAGE), ("r.npz", content))
    assert (status, "The result has 6×5 vectors" in sentence) == (422, True)
    status, sentence = send(browser, ("r.npz", content), ("s.npz", content))
    assert (status, "Only one saved result" in sentence) == (422, True)


def test_too_many_bytes(browser: Browser) -> None:
    status, sentence = send(browser, ("a.png", bytes(LIMITS.upload_bytes)))
    assert status == 413
    assert sentence == "The request has more than the 300000 bytes that are taken."
    assert browser.post("/api/jobs", content=b" " * 100_000).status_code == 413


def test_too_many_bytes_without_a_length(browser: Browser) -> None:
    """They are counted as they come."""

    def body() -> Iterator[bytes]:
        yield b'--x\r\nContent-Disposition: form-data; name="files"; filename="a"\r\n\r\n'
        for _ in range(2 * LIMITS.upload_bytes // 10_000):
            yield bytes(10_000)

    kind = "multipart/form-data; boundary=x"
    answer = browser.post("/api/sources", content=body(), headers={"Content-Type": kind})
    assert answer.status_code == 413


def test_too_many_sources(browser: Browser) -> None:
    for _ in range(LIMITS.sources):
        upload(browser, *moving(2))
    status, sentence = send(browser, ("a.png", IMAGE), ("b.png", IMAGE))
    assert (status, sentence) == (429, "There are 8 sources already; remove one first.")


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("../../etc/passwd", "passwd"),
        ("C:\\Users\\me\\a.png", "a.png"),
        ("a\r\nSet-Cookie: x", "aSet-Cookie: x"),
        ("\0", "unnamed"),
        ("..", ".."),
        ("x" * 500, "x" * 100),
        ("<script>.png", "<script>.png"),
    ],
)
def test_names_are_only_shown(name: str, shown: str) -> None:
    assert cleaned(name) == shown


def test_names_lead_nowhere(page: Page, browser: Browser) -> None:
    files = [("files", (f"../../../evil{k}.png", png(f))) for k, f in enumerate(moving(2))]
    source = browser.post("/api/sources", files=files).json()
    assert source["name"] == "evil0.png, evil1.png"
    workspace = page.registry.workspace.path
    assert all(path.is_relative_to(workspace) for path in files_in(page))
    assert not list(workspace.parent.glob("evil*"))
    assert workspace.stat().st_mode & 0o077 == 0  # for nobody else


@settings(fixture_is_fine, max_examples=15)
@given(
    name=st.sampled_from(["a.png", "a.jpg", "a.mp4", "a.npz", "a.tif", "a"]),
    start=st.sampled_from(
        [b"", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff\xe0", b"PK\x03\x04", b"II*\0", IMAGE[:200]]
    ),
    rest=st.binary(max_size=200),
)
def test_arbitrary_bytes(page: Page, name: str, start: bytes, rest: bytes) -> None:
    status, sentence = send(page.browser(), (name, start + rest), ("b.png", IMAGE))
    assert status in (413, 415, 422)
    assert sentence.endswith(".")
    assert "Traceback" not in sentence


def test_old_explanations_make_room() -> None:
    with served() as page:
        browser = page.browser()
        source = upload(browser, *moving(2, height=120, width=160))["id"]
        names = [run(browser, source)["results"]["0"]]
        used = sum(path.stat().st_size for path in files_in(page))
        # Room for another result, but not for what explains both.
        page.registry.limits = replace(page.registry.limits, store_bytes=round(1.8 * used))
        names.append(run(browser, source)["results"]["0"])
        explained = [browser.get(f"/api/results/{name}").json()["explained"] for name in names]
        assert explained == [False, True]
        pixel = browser.get(f"/api/results/{names[0]}/pixel?x=3&y=4").json()
        assert pixel["u"] is None
        assert len(pixel["flow"]) == 2
        for _ in range(6):
            answer = browser.post("/api/jobs", json={"source": source})
            if answer.status_code == 429:
                assert "keeps at most" in answer.json()["detail"]
                break
            browser.get(f"/api/jobs/{answer.json()['id']}/events")
        else:
            pytest.fail("The store never was full.")

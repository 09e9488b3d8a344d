"""Jobs: the queue and its limit, cancellation, failures, and browsers that do not mix."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from _viewer import Browser, Page, moving, run, served, upload, wait_until
from hamflow.viewer.limits import Limits

LONG = {"preset": "paper", "window": 256}
"""Settings with which a job takes long."""


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    with served(limits=Limits(queue=3, sessions=5)) as page:
        yield page


@pytest.fixture
def browser(page: Page) -> Iterator[Browser]:
    browser = page.browser()
    yield browser
    for job in browser.get("/api/jobs").json():
        browser.delete(f"/api/jobs/{job['id']}")


@pytest.fixture
def source(browser: Browser) -> str:
    name: str = upload(browser, *moving(2, height=200, width=300))["id"]
    return name


def start(browser: Browser, source: str, **wanted: Any) -> dict[str, Any]:
    job: dict[str, Any] = browser.post("/api/jobs", json={"source": source, **wanted}).json()
    return job


def state(browser: Browser, job: dict[str, Any]) -> str:
    found: str = browser.get(f"/api/jobs/{job['id']}").json()["state"]
    return found


def worker(page: Page) -> Any:
    """The process that computes."""
    return page.registry.queue._runner._process


def test_a_running_job_is_canceled(page: Page, browser: Browser, source: str) -> None:
    job = start(browser, source, **LONG)
    wait_until(lambda: browser.get(f"/api/jobs/{job['id']}").json()["stage"] == "matching")
    process = worker(page)
    canceled = browser.delete(f"/api/jobs/{job['id']}").json()
    assert (canceled["state"], canceled["results"]) == ("canceled", {})
    process.join()
    assert process.exitcode != 0  # also in the middle of native code
    events = browser.get(f"/api/jobs/{job['id']}/events").text
    assert events.count("data:") == 1
    # Another process takes its place.
    assert run(browser, source)["state"] == "done"
    assert worker(page) is not process
    assert browser.delete(f"/api/jobs/{job['id']}").json()["state"] == "canceled"


def test_results_before_the_cancellation_remain(browser: Browser) -> None:
    source = upload(browser, *moving(12, height=100, width=150))["id"]
    job = start(browser, source, first=0, last=11, preset="balanced")
    wait_until(lambda: len(browser.get(f"/api/jobs/{job['id']}").json()["results"]) > 1)
    browser.delete(f"/api/jobs/{job['id']}")
    results = browser.get(f"/api/jobs/{job['id']}").json()["results"]
    assert 1 < len(results) < 11
    for name in results.values():
        assert browser.get(f"/api/results/{name}").status_code == 200


def test_the_queue(browser: Browser, source: str) -> None:
    jobs = [start(browser, source, **LONG) for _ in range(3)]
    wait_until(lambda: state(browser, jobs[0]) == "running")
    listed = browser.get("/api/jobs").json()
    assert [job["state"] for job in listed] == ["running", "queued", "queued"]
    assert [job["position"] for job in listed] == [0, 1, 2]
    answer = browser.post("/api/jobs", json={"source": source})
    assert answer.status_code == 429
    assert answer.json()["detail"].startswith("3 jobs are waiting or running already")
    browser.delete(f"/api/jobs/{jobs[1]['id']}")  # one that has not begun
    assert [job["state"] for job in browser.get("/api/jobs").json()][1] == "canceled"
    assert browser.get(f"/api/jobs/{jobs[2]['id']}").json()["position"] == 1
    last = start(browser, source)
    for job in (jobs[0], jobs[2]):
        browser.delete(f"/api/jobs/{job['id']}")
    wait_until(lambda: state(browser, last) == "done")


def test_removing_a_source_cancels_its_jobs(page: Page, browser: Browser, source: str) -> None:
    job = start(browser, source, **LONG)
    wait_until(lambda: state(browser, job) == "running")
    assert browser.delete(f"/api/sources/{source}").status_code == 204
    assert browser.get("/api/jobs").json() == []
    assert page.registry.queue._runner.job is None or worker(page).exitcode != 0


def test_a_worker_that_dies(page: Page, browser: Browser, source: str) -> None:
    job = start(browser, source, **LONG)
    wait_until(lambda: state(browser, job) == "running")
    worker(page).kill()
    wait_until(lambda: state(browser, job) == "failed")
    error = browser.get(f"/api/jobs/{job['id']}").json()["error"]
    assert error.startswith("The process that computes ended unexpectedly")
    assert run(browser, source)["state"] == "done"


def test_a_frame_that_has_gone(page: Page, browser: Browser) -> None:
    source = upload(browser, *moving(2))["id"]
    session = page.registry.session(browser.cookies[page.guard.session_cookie])
    page.registry.source(session, source).frames[1].unlink()
    job = run(browser, source)
    assert job["state"] == "failed"
    assert job["error"] == "1.png: does not exist; check the path."


def test_browsers_do_not_mix(page: Page, browser: Browser, source: str) -> None:
    other = page.browser()
    assert other.get("/api/sources").json() == []
    job = run(browser, source)
    result = job["results"]["0"]
    for path in (
        f"/api/sources/{source}/frames/0",
        f"/api/jobs/{job['id']}",
        f"/api/jobs/{job['id']}/events",
        *(f"/api/results/{result}{rest}" for rest in ("", "/layers/flow", "/pixel?x=1&y=1")),
        *(f"/api/results/{result}{rest}" for rest in ("/warped", "/download/flo")),
        f"/api/results/{result}/track?x=1&y=1",
    ):
        assert browser.get(path).status_code == 200
        answer = other.get(path)
        assert answer.status_code == 404
        assert answer.json()["detail"].startswith("There is no such ")
    assert other.post("/api/jobs", json={"source": source}).status_code == 404
    assert other.delete(f"/api/sources/{source}").status_code == 404
    assert other.delete(f"/api/jobs/{job['id']}").status_code == 404
    assert other.get("/api/jobs").json() == []
    # The same source of the command line, but results of one's own.
    mine = {job["id"] for job in browser.get("/api/jobs").json()}
    assert run(other, upload(other, *moving(2))["id"])["id"] not in mine


def test_browsers_at_the_same_time(page: Page) -> None:
    """Each gets the flow of its own images."""

    def story(u: int) -> float:
        browser = page.browser()
        result = run(browser, upload(browser, *moving(2, u, 0))["id"])["results"]["0"]
        flow: list[float] = browser.get(f"/api/results/{result}/pixel?x=40&y=30").json()["flow"]
        return flow[0]

    with ThreadPoolExecutor(3) as pool:
        assert [round(u) for u in pool.map(story, (2, 5, 8))] == [2, 5, 8]


def test_old_browsers_are_forgotten(page: Page) -> None:
    first = page.browser()
    source = upload(first, *moving(2))["id"]
    folder = next(
        found.folder
        for session in page.registry._sessions.values()
        for found in session.sources.values()
        if found.id == source
    )
    assert isinstance(folder, Path)
    assert folder.exists()
    for _ in range(6):
        page.browser()
    assert first.get("/api/sources").json() == []
    assert not folder.exists()

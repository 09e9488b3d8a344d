"""The command itself: where it listens, what it says, and what it leaves behind."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

import hamflow
from _problems import run_python
from _viewer import moving, png, wait_until
from hamflow.viewer import server

COMMAND = ("serve", "--no-browser")
PACKAGES = str(Path(hamflow.__file__).resolve().parents[1])  # also from another folder


@pytest.fixture
def images(tmp_path: Path) -> list[str]:
    paths = [tmp_path / f"{k}.png" for k in range(2)]
    for path, frame in zip(paths, moving(2), strict=True):
        hamflow.write_image(path, frame)
    return [str(path) for path in paths]


@contextmanager
def started(folder: Path, *words: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run the command with temporary files in `folder`; yield it, and the address it prints."""
    environment = {**os.environ, "PYTHONPATH": PACKAGES, "TMPDIR": str(folder)}
    elsewhere = folder.parent / "elsewhere"
    if elsewhere.exists():  # where nothing may be written
        environment |= {"HOME": str(elsewhere), "XDG_CACHE_HOME": str(elsewhere)}
    command = [sys.executable, "-u", "-m", "hamflow", "serve", "--no-browser", *words]
    with subprocess.Popen(
        command,
        env=environment,
        cwd=elsewhere if elsewhere.exists() else None,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            found = re.search(r"http://\S+", line)
            assert found is not None, line + process.stdout.read()
            yield process, found[0]
        finally:
            process.kill()


def group_exists(number: int) -> bool:
    try:
        os.killpg(number, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_nothing_is_left_behind(tmp_path: Path, images: list[str], number: int) -> None:
    """Uploads, results and the process that computes go with the server, also in mid-work."""
    folder, elsewhere = tmp_path / "temporary", tmp_path / "elsewhere"
    folder.mkdir()
    elsewhere.mkdir()
    with started(folder, *images, "--port", "0") as (process, address):
        with httpx.Client(base_url=address, verify=False, timeout=60) as browser:
            assert browser.get("/").status_code == 200
            frames = moving(2, height=300, width=400)
            files = [("files", (f"{k}.png", png(frame))) for k, frame in enumerate(frames)]
            source = browser.post("/api/sources", files=files).json()
            wanted = {"source": source["id"], "preset": "paper", "window": 256}
            job = browser.post("/api/jobs", json=wanted).json()
            with browser.stream("GET", f"/api/jobs/{job['id']}/events") as events:
                for line in events.iter_lines():
                    if '"stage": "matching"' in line:
                        break
                (workspace,) = folder.iterdir()
                assert any(workspace.rglob("upload-*"))
                process.send_signal(number)
                assert process.wait(60) == 0
        assert list(folder.iterdir()) == []
        assert list(elsewhere.iterdir()) == []
        assert process.stdout is not None
        assert process.stdout.read() == ""
        wait_until(lambda: not group_exists(process.pid))  # no worker is left


def test_another_address_has_a_token(tmp_path: Path) -> None:
    with started(tmp_path, "--host", "0.0.0.0", "--port", "0") as (_, address):
        assert re.search(r"/\?token=[\w-]{32}$", address)
        port = httpx.URL(address).port
        token = httpx.URL(address).params["token"]
        local = f"http://127.0.0.1:{port}/"
        assert httpx.get(local).status_code == 401
        assert httpx.get(local, params={"token": token}).status_code == 200


def test_a_port_that_is_taken(fails: Callable[..., str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        assert fails("--port", port) == (
            f"hamflow: --port {port} is taken; choose another, or 0 for any that is free.\n"
        )


def test_the_usual_port_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        monkeypatch.setattr(server, "PORT", other.getsockname()[1])
        with server._listening("127.0.0.1", None) as listener:
            assert listener.getsockname()[1] != server.PORT


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--host", "no.such.host.invalid"], "There is no address 'no.such.host.invalid'"),
        (["--host", "192.0.2.1"], "cannot be listened at"),
        (["--port", "99999"], "--port must be from 0 to 65535, not 99999."),
        (["--preset", "best"], "There is no preset 'best'"),
        (["nothing.png", "other.png"], "nothing.png: does not exist; check the path."),
    ],
)
def test_wrong_words(fails: Callable[..., str], words: list[str], message: str) -> None:
    before = set(Path(tempfile.gettempdir()).glob("hamflow-serve-*"))
    assert message in fails(*words)
    assert set(Path(tempfile.gettempdir()).glob("hamflow-serve-*")) <= before


@pytest.mark.parametrize("package", ["fastapi", "python_multipart", "uvicorn"])
def test_the_extra_is_missing(
    fails: Callable[..., str], monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setattr(server, "find_spec", lambda name: None if name == package else object())
    assert fails() == (
        "hamflow: hamflow serve needs more packages: pip install 'hamflow[viewer]'.\n"
    )


def test_the_browser_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(server.webbrowser, "open", opened.append)
    monkeypatch.setattr("uvicorn.Server.run", lambda *_, **__: None)
    told: list[str] = []
    server.serve([], port=0, told=told.append)
    server.serve([], port=0, told=told.append, browser=False)
    assert len(told) == 2
    assert [address in told[0] for address in opened] == [True]


def test_nothing_of_it_is_imported_with_the_package() -> None:
    code = (
        "import sys, hamflow.viewer.server\n"
        "print([n for n in ('fastapi', 'pydantic', 'uvicorn') if n in sys.modules])"
    )
    assert run_python("-c", code, PYTHONPATH=PACKAGES).stdout == "[]\n"

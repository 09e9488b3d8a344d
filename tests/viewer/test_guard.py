"""Who may talk to the server: requests that other sites, and other machines, could send."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest

from _viewer import Page, served
from hamflow.viewer.guard import HEADERS, Guard, is_loopback
from hamflow.viewer.refusals import Refusal


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    with served() as page:
        yield page


@pytest.fixture(scope="module")
def open_page() -> Iterator[Page]:
    """A server that other machines can reach."""
    with served(host="0.0.0.0") as page:
        yield page


@pytest.mark.parametrize(
    ("host", "answer"),
    [
        *((host, True) for host in ("127.0.0.1", "localhost", "::1", "127.8.0.1")),
        *((host, False) for host in ("0.0.0.0", "::", "192.168.0.7", "example.org")),
    ],
)
def test_loopback(host: str, answer: bool) -> None:
    assert is_loopback(host) is answer
    assert (Guard(host, 80).token is None) is answer


@pytest.mark.parametrize("host", ["127.0.0.1:{}", "localhost:{}", "LOCALHOST:{}", "[::1]:{}"])
def test_own_names(page: Page, host: str) -> None:
    headers = {"Host": host.format(page.port)}
    assert page.stranger().get("/", headers=headers).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        *("evil.example:{}", "127.0.0.1", "127.0.0.1:1", "127.0.0.1.evil.example:{}"),
        *("10.0.0.7:{}", "evil@127.0.0.1.example:{}", "", "[", "localhost:port"),
        "localhost:{}:80",
    ],
)
@pytest.mark.parametrize("path", ["/", "/page/main.js", "/api/sources", "/openapi.json"])
def test_other_names_are_refused(page: Page, host: str, path: str) -> None:
    """A name of another site that suddenly stands for this machine (DNS rebinding)."""
    answer = page.stranger().get(path, headers={"Host": host.format(page.port)})
    assert answer.status_code in (400, 421)  # 400: not even a request
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "file://"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
    ids=str,
)
@pytest.mark.parametrize("method", ["POST", "DELETE"])
def test_other_origins_are_refused(page: Page, method: str, headers: dict[str, str]) -> None:
    """A page of another site that lets the browser send something (CSRF)."""
    browser = page.browser()
    path = "/api/jobs" if method == "POST" else "/api/jobs/x"
    answer = browser.request(method, path, headers=headers)
    assert answer.status_code == 403
    assert "other sites" in answer.json()["detail"]


def test_the_own_origin(page: Page) -> None:
    headers = {"Origin": page.address, "Sec-Fetch-Site": "same-origin"}
    assert page.browser().delete("/api/jobs/x", headers=headers).status_code == 404
    assert page.browser().delete("/api/jobs/x").status_code == 404  # not a browser at all


@pytest.mark.parametrize(
    "path", ["/", "/page/nothing", "/api/info", "/api/nothing", "/openapi.json"]
)
def test_headers_of_all_answers(page: Page, path: str) -> None:
    answer = page.browser().get(path)
    for name, value in HEADERS.items():
        assert answer.headers[name] == value
    assert "script-src 'self';" in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "server" not in answer.headers
    assert "access-control-allow-origin" not in answer.headers


def test_the_session_is_a_cookie_that_no_script_sees(page: Page) -> None:
    cookie = page.stranger().get("/").headers["set-cookie"]
    assert cookie.startswith(f"hamflow_session_{page.port}=")
    assert cookie.endswith("Path=/; HttpOnly; SameSite=Strict")
    browser = page.browser()
    assert "set-cookie" not in browser.get("/").headers  # it has one
    wrong = page.stranger(cookies={page.guard.session_cookie: "guessed"}).get("/api/jobs")
    assert "guessed" not in wrong.headers["set-cookie"]


def test_a_link_from_another_site_does_not_replace_the_session(page: Page) -> None:
    answer = page.stranger().get("/", headers={"Sec-Fetch-Site": "cross-site"})
    assert answer.status_code == 200
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize(
    "path",
    [
        *("/page/../server.py", "/page/..%2fserver.py", "/page/%2e%2e/server.py", "/page/"),
        *("/page//etc/passwd", "/page/..\\server.py", "/page/index.html/..", "/page/%00"),
        *("/server.py", "/../../pyproject.toml", "//etc/passwd"),
    ],
)
def test_no_path_leads_out_of_the_page(page: Page, path: str) -> None:
    with socket.create_connection(("127.0.0.1", page.port)) as connection:
        request = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{page.port}\r\nConnection: close\r\n\r\n"
        connection.sendall(request.encode())
        answer = b""
        while block := connection.recv(4096):
            answer += block
    assert answer.startswith((b"HTTP/1.1 404 ", b"HTTP/1.1 400 "))
    assert b"import" not in answer


def test_huge_headers(page: Page) -> None:
    for length, status in ((1_000, 200), (20_000, 431)):
        answer = page.stranger().get("/", headers={"X-Long": "x" * length})
        assert answer.status_code == status


def test_other_machines_need_the_token(open_page: Page) -> None:
    token = open_page.guard.token
    assert token is not None
    stranger = open_page.stranger()
    for path in (
        *("/", "/page/main.js", "/api/sources", "/openapi.json"),
        *("/?token=wrong", "/?token="),
    ):
        answer = stranger.get(path)
        assert answer.status_code == 401
        assert "lacks the token" in answer.json()["detail"]
        assert "set-cookie" not in answer.headers
    # The token counts in the address of the page alone.
    assert stranger.get(f"/api/sources?token={token}").status_code == 401
    assert stranger.get(f"/?token={token}").status_code == 200
    assert stranger.get("/api/sources").status_code == 200  # by the cookie
    assert stranger.get("/").status_code == 200
    cookies = open_page.stranger().get(f"/?token={token}").headers.get_list("set-cookie")
    assert len(cookies) == 2
    assert all("HttpOnly; SameSite=Strict" in cookie for cookie in cookies)


def headers(host: str, **more: Any) -> dict[str, str]:
    return {"host": host, **more}


def test_names_of_an_open_server() -> None:
    guard = Guard("0.0.0.0", 9000, ["flow.example"])
    for host in ("192.168.0.7:9000", "[fe80::1]:9000", "flow.example:9000", "localhost:9000"):
        guard.check("GET", headers(host))
    guard.check("GET", headers(f"{socket.gethostname()}:9000"))
    for host in ("evil.example:9000", "192.168.0.7:9001", "192.168.0.7"):
        with pytest.raises(Refusal) as refusal:
            guard.check("GET", headers(host))
        assert refusal.value.status == 421
    assert Guard("0.0.0.0", 9000).token != guard.token

"""Who may talk to the server: hosts, origins, the token, and the headers that protect the page."""

from __future__ import annotations

import ipaddress
import secrets
import socket
from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

from hamflow.viewer.refusals import Refusal

_SAFE = ("GET", "HEAD", "OPTIONS")
_LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")

CONTENT_SECURITY_POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' blob: data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    ]
)
HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""Sent with every answer: nothing is loaded from elsewhere, nobody else may embed the page."""


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach a host."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


class Guard:
    """Refuses requests that do not come from the page itself.

    A page of another site can make the browser send requests here: by a form or a script (its
    `Origin` gives it away), or by a name of its own that suddenly stands for this machine (its
    `Host` gives it away). From other machines, only those who know the token may come.

    Parameters
    ----------
    host : str
        What the server is bound to.
    port : int
        Where it listens.
    names : iterable of str
        More names by which browsers may call it.
    """

    def __init__(self, host: str, port: int, names: Iterable[str] = ()) -> None:
        self._port = port
        # Browsers send cookies to all ports: each server needs names of its own.
        self.token_cookie, self.session_cookie = f"hamflow_token_{port}", f"hamflow_session_{port}"
        self.token = None if is_loopback(host) else secrets.token_urlsafe(24)
        self._names = {name.lower() for name in (*_LOOPBACK_NAMES, host, *names)}
        if self.token is not None:
            self._names |= {socket.gethostname().lower(), socket.getfqdn().lower()}

    def check(self, method: str, headers: Mapping[str, str]) -> None:
        """Raise a Refusal if a request does not come from the page itself."""
        host = headers.get("host", "").lower()
        if not self._known(host):
            raise Refusal(
                421,
                "The request calls this server by a name that is not its own; open the address "
                "that hamflow serve has printed.",
            )
        origin = headers.get("origin")
        if origin is not None:
            parts = urlsplit(origin)
            if parts.scheme not in ("http", "https") or parts.netloc.lower() != host:
                raise Refusal(403, "Requests from the pages of other sites are refused.")
        elif method not in _SAFE and headers.get("sec-fetch-site", "none") not in (
            "same-origin",
            "none",
        ):
            raise Refusal(403, "Requests from the pages of other sites are refused.")

    def check_token(self, given: str | None) -> None:
        """Raise a Refusal if a token is needed and this is another one."""
        if self.token is None:
            return
        if given is None or not secrets.compare_digest(given.encode(), self.token.encode()):
            raise Refusal(
                401, "The address lacks the token; open the one that hamflow serve has printed."
            )

    def _known(self, host: str) -> bool:
        try:
            parts = urlsplit(f"//{host}")
            name, port = parts.hostname or "", parts.port
        except ValueError:
            return False
        if port is not None and port != self._port:
            return False
        if port is None and self._port not in (80, 443):
            return False
        if name in self._names or f"[{name}]" in self._names:
            return True
        # No other site's name can be an address.
        return self.token is not None and _is_address(name)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True

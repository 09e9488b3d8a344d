"""Serving the page: the address, the browser, and the end."""

from __future__ import annotations

import errno
import signal
import socket
import tempfile
import threading
import webbrowser
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hamflow.errors import InputError
from hamflow.viewer.front import Front
from hamflow.viewer.guard import Guard
from hamflow.viewer.limits import Limits
from hamflow.viewer.registry import Registry

PORT = 8420
"""Where the page is, unless something else is there already."""
_EXTRA = "hamflow serve needs more packages: pip install 'hamflow[viewer]'."
_LONGEST_HEADERS = 1 << 16


def serve(
    paths: Sequence[Path],
    *,
    truth: Path | None = None,
    preset: str = "balanced",
    host: str = "127.0.0.1",
    port: int | None = None,
    names: Sequence[str] = (),
    browser: bool = True,
    limits: Limits | None = None,
    told: Callable[[str], object] = print,
) -> None:
    """Serve the page until it is interrupted.

    Parameters
    ----------
    paths : sequence of Path
        Images, folders, videos and results that all browsers see.
    truth : Path, optional
        The true flow of the first of them.
    preset : str
        The preset that the page proposes.
    host : str
        The address to listen at. From addresses other than this machine's own, the page asks for
        a token, which is part of the address that is told.
    port : int, optional
        Where to listen; by default `PORT`, or any free one if that is taken.
    names : sequence of str
        More names by which browsers may call this machine.
    browser : bool
        Open the page in the user's browser.
    limits : Limits, optional
        How much the page takes, keeps and does.
    told : callable
        Told the address of the page.
    """
    uvicorn = _uvicorn()
    if port is not None and not 0 <= port <= 65535:
        raise InputError(f"--port must be from 0 to 65535, not {port}.")
    with _listening(host, port) as listener, _registry(paths, truth, preset, limits) as registry:
        found: int = listener.getsockname()[1]
        guard = Guard(host, found, names)
        address = _address(host, found, guard.token)
        told(f"Hamflow is at {address} (Ctrl-C ends it).")
        if browser:
            threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
        # The user's interruption is the normal end, and so is that the terminal is closed.
        with suppress(KeyboardInterrupt), _hangup_terminates():
            uvicorn.Server(settings(Front(guard, registry))).run(sockets=[listener])


@contextmanager
def _hangup_terminates() -> Iterator[None]:
    """Let the end of the terminal be as SIGTERM, unless it is ignored, as by nohup."""
    number = getattr(signal, "SIGHUP", None)
    main = threading.current_thread() is threading.main_thread()
    if number is None or not main or signal.getsignal(number) is not signal.SIG_DFL:
        yield
        return
    signal.signal(number, lambda *_: signal.raise_signal(signal.SIGTERM))
    try:
        yield
    finally:
        signal.signal(number, signal.SIG_DFL)


def settings(front: Front) -> Any:
    """Return how uvicorn has to serve the page."""
    return _uvicorn().Config(
        front,
        http="h11",
        loop="asyncio",
        ws="none",
        log_level="error",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=1,
        h11_max_incomplete_event_size=_LONGEST_HEADERS,
    )


def _uvicorn() -> Any:
    # Looked for, not imported: they take long, and the page is there before it needs them.
    if find_spec("fastapi") is None or find_spec("python_multipart") is None:
        raise InputError(_EXTRA)
    try:
        return import_module("uvicorn")
    except ImportError:
        raise InputError(_EXTRA) from None


@contextmanager
def _listening(host: str, port: int | None) -> Iterator[socket.socket]:
    """Listen at an address while the block runs."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol named, asyncio sends small answers at once (TCP_NODELAY).
    with socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, PORT if port is None else port))
        except OSError as error:
            if port is not None or error.errno != errno.EADDRINUSE:
                raise InputError(_why_not(host, port, error)) from error
            listener.bind((host, 0))
        listener.listen()  # from now on, who comes too early waits
        yield listener


def _why_not(host: str, port: int | None, error: OSError) -> str:
    if isinstance(error, socket.gaierror):
        return f"There is no address {host!r}; give one of this machine's with --host."
    if isinstance(error, PermissionError):
        return f"--port {port} is reserved by the system; choose one above 1023."
    if error.errno == errno.EADDRINUSE:
        return f"--port {port} is taken; choose another, or 0 for any that is free."
    return f"{host} cannot be listened at ({error.strerror}); give another address with --host."


@contextmanager
def _registry(
    paths: Sequence[Path], truth: Path | None, preset: str, limits: Limits | None
) -> Iterator[Registry]:
    """Keep everything while the block runs, and remove it in the end."""
    registry = Registry(paths, truth=truth, preset=preset, limits=limits)
    before = tempfile.tempdir
    # Whatever a library puts aside, such as large uploads, is then removed in the end, too.
    tempfile.tempdir = str(registry.workspace.path)
    try:
        yield registry
    finally:
        tempfile.tempdir = before
        registry.close()


def _address(host: str, port: int, token: str | None) -> str:
    # All addresses of this machine, if the user asks for them: name one that others reach.
    if host in ("0.0.0.0", "::"):  # noqa: S104
        host = socket.gethostname()
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{port}/" + ("" if token is None else f"?token={token}")

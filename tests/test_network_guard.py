"""Nothing in the package opens the network by itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from _videos import moving, write_folder

GUARD = """
import socket, sys

class Forbidden(Exception):
    pass

def refuse(*arguments, **_):
    print("network:", arguments, file=sys.stderr)
    raise Forbidden(arguments)

for name in ("connect", "connect_ex", "bind", "sendto", "sendmsg"):
    setattr(socket.socket, name, refuse)
for name in ("create_connection", "getaddrinfo", "gethostbyname", "create_server"):
    setattr(socket, name, refuse)

def audit(event, arguments):
    if event in ("socket.connect", "socket.bind", "socket.sendto", "socket.getaddrinfo"):
        refuse(event, *arguments[1:])

sys.addaudithook(audit)
"""
LIBRARY = """
import numpy as np
import hamflow
from hamflow.datasets import demo_scene
scene = demo_scene(48, 64)
result = hamflow.estimate(scene.image0, scene.image1, preset="fast")
result.save("r.npz"), result.save("r.flo"), hamflow.FlowResult.load("r.npz")
hamflow.write_image("a.png", result.to_color()), hamflow.read_image("a.png")
hamflow.load_model("default"), hamflow.load_model("pairs")
for item in hamflow.video("frames", preset="realtime"):
    item.flow
for name in dir(hamflow):
    getattr(hamflow, name)
"""
COMMANDS = [
    "--version",
    "doctor",
    "video frames -o flows --viz pictures --preset realtime",
    "viz flows/im1.flo -o f.png",
    "convert flows/im1.flo f.pfm",
    "track frames -o t.csv --preset realtime",
    "synth -o set -n 1 --width 48 --height 32 --max-displacement 4 --workers 1",
    "evaluate sintel set --pass clean -o e --html e.html --preset realtime",
    "export fast -o n.onnx",
]


def guarded(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", GUARD + code],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_the_guard_works(tmp_path: Path) -> None:
    for call in (
        "socket.create_connection(('127.0.0.1', 9))",
        "socket.socket().connect(('127.0.0.1', 9))",
        "__import__('urllib.request').request.urlopen('http://127.0.0.1:9/')",
    ):
        run = guarded(call, tmp_path)
        assert run.returncode != 0
        assert "network:" in run.stderr


def test_library_and_commands(tmp_path: Path) -> None:
    write_folder(tmp_path / "frames", moving(3, 48, 64))
    for package in ("av", "jinja2", "onnx"):
        pytest.importorskip(package)
    commands = f"""
from hamflow.cli.main import main
for line in {COMMANDS!r}:
    assert main(line.split()) == 0, line
"""
    run = guarded(LIBRARY + commands, tmp_path)
    assert run.returncode == 0, run.stderr
    assert "network:" not in run.stderr

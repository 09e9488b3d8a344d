"""Files for the servers of the benchmarks, read back with other code than Hamflow's."""

from __future__ import annotations

import errno
import json
import os
import shutil
import struct
import subprocess
import sys
import weakref
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from _trees import message_of, save_flow, save_image, scene
from hamflow.cli.main import main
from hamflow.errors import InputError
from hamflow.evaluation import (
    Estimate,
    Method,
    MethodConfig,
    submit,
    verify_submission,
)
from hamflow.io import write_flow
from hamflow.io._lock import locked

SCENES = {"alley_1": 3, "bamboo_2": 2}
FLO = ("alley_1/frame_0001.flo", "alley_1/frame_0002.flo", "bamboo_2/frame_0001.flo")
PNG = ("000000_10.png", "000003_10.png")
RECORD = "hamflow-submission.json"
CONFIG = MethodConfig("wta-qq", model="pairs", window=16)


@pytest.fixture(scope="module")
def sintel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("sintel")
    for name, length in SCENES.items():
        for k in range(1, length + 1):
            for pass_, brighter in (("clean", 0), ("final", 9)):
                path = root / "test" / pass_ / name / f"frame_{k:04}.png"
                save_image(path, scene(k).image0 // 2 + np.uint8(brighter))
    # A training split with truth, which nobody shall look at.
    save_image(root / "training/clean/cave_4/frame_0001.png", scene(0).image0)
    save_image(root / "training/clean/cave_4/frame_0002.png", scene(0).image1)
    save_flow(root / "training/flow/cave_4/frame_0001.flo", scene(0).flow)
    return root


@pytest.fixture(scope="module")
def kitti(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """For both years; the second pair is smaller, as in the real one."""
    root = tmp_path_factory.mktemp("kitti")
    for number, rows in ((0, 40), (3, 37)):
        for folder in ("image_2", "colored_0"):
            below = root / "testing" / folder
            save_image(below / f"{number:06}_10.png", scene(number).image0[:rows])
            save_image(below / f"{number:06}_11.png", scene(number).image1[:rows])
    return root


@pytest.fixture
def method() -> Method:
    return Method(CONFIG)


class Stub:
    """A method that answers what it is told to, and counts how often."""

    def __init__(self, answer: Callable[[Any], Any], name: str = "stub") -> None:
        self.answer, self.label, self.calls = answer, name, 0
        self.settings = {"method": name, "scale": 1}

    def __call__(self, image0: Any, image1: Any) -> Estimate:
        self.calls += 1
        return Estimate(self.answer(np.zeros((*image0.shape[:2], 2), np.float32)))


def stub(answer: Callable[[Any], Any] = lambda flow: flow + np.float32(1.5), *rest: str) -> Any:
    return Stub(answer, *rest)


def raw_flo(path: Path) -> NDArray[np.float32]:
    data = path.read_bytes()
    tag, width, height = struct.unpack("<fii", data[:12])
    assert tag == 202021.25
    assert len(data) == 12 + 8 * width * height
    numbers = struct.unpack(f"<{2 * width * height}f", data[12:])
    return np.array(numbers, np.float32).reshape(height, width, 2)


def raw_png(data: bytes) -> NDArray[np.uint16]:
    """Decode 16-bit RGB without interlacing, as the PNG specification says."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, packed, header = 8, b"", b""
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at : at + 8])
        body = data[at + 8 : at + 8 + length]
        checksum = struct.unpack(">I", data[at + 8 + length : at + 12 + length])[0]
        assert checksum == zlib.crc32(kind + body)
        header, packed = (body if kind == b"IHDR" else header), packed + body * (kind == b"IDAT")
        at += 12 + length
    width, height, depth, colors, _, _, interlace = struct.unpack(">IIBBBBB", header)
    assert (depth, colors, interlace) == (16, 2, 0)
    lines = np.frombuffer(zlib.decompress(packed), np.uint8).reshape(height, 1 + 6 * width)
    pixels = np.zeros((height + 1, 6 * width + 6), np.int64)  # with a border of zeros
    for row, (kind, *line) in enumerate(lines.tolist(), start=1):
        for column, value in enumerate(line, start=6):
            left, up = int(pixels[row, column - 6]), int(pixels[row - 1, column])
            corner = int(pixels[row - 1, column - 6])
            near = min((left, up, corner), key=lambda value: abs(left + up - corner - value))
            add = (0, left, up, (left + up) // 2, near)[kind]
            pixels[row, column] = (value + add) % 256
    samples = pixels[1:, 6:].astype(np.uint8).tobytes()
    return np.frombuffer(samples, ">u2").reshape(height, width, 3).astype(np.uint16)


def files_in(folder: Path) -> list[str]:
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())


# --- what the servers want ------------------------------------------------------------------------


def test_sintel(sintel: Path, tmp_path: Path, method: Method) -> None:
    told: list[tuple[str, int, int]] = []
    found = submit(
        "sintel", sintel, tmp_path / "out", method, progress=lambda *now: told.append(now)
    )
    expected = [f"{pass_}/{name}" for pass_ in ("clean", "final") for name in FLO]
    assert files_in(tmp_path / "out") == [*expected, RECORD]
    assert told == [
        *((name, number, 6) for number, name in enumerate(expected)),
        ("verification", 6, 6),
    ]
    assert (found.benchmark, found.folders) == ("sintel", ("clean", "final"))
    assert (found.computed, found.known, found.files, found.official) == (6, 0, 6, 1104)
    assert (found.invalid, found.invalid_files, found.archive) == (0, 0, None)
    done = json.loads((tmp_path / "out" / RECORD).read_text())["files"]
    assert found.seconds == pytest.approx(np.mean([entry["seconds"] for entry in done.values()]))
    for pass_, brighter in (("clean", 0), ("final", 9)):
        for name, first in zip(FLO, (1, 2, 1), strict=True):
            images = [scene(k).image0 // 2 + np.uint8(brighter) for k in (first, first + 1)]
            flow = raw_flo(tmp_path / "out" / pass_ / name)
            assert flow.shape == (40, 56, 2)
            assert np.isfinite(flow).all()
            assert np.array_equal(flow, method(*images).flow)


@pytest.mark.parametrize(
    ("name", "inside", "official"),
    [("kitti2012", "", 195), ("kitti2015", "flow/", 200), ("kitti", "flow/", 200)],
)
def test_kitti(
    kitti: Path, tmp_path: Path, method: Method, *, name: str, inside: str, official: int
) -> None:
    found = submit(name, kitti, tmp_path, method)
    assert files_in(tmp_path) == ["flow.zip", *(f"flow/{file}" for file in PNG), RECORD]
    assert (found.files, found.official) == (2, official)
    assert found.archive == tmp_path / "flow.zip"
    with zipfile.ZipFile(tmp_path / "flow.zip") as archive:
        assert archive.namelist() == [inside + file for file in PNG]
        packed = [archive.read(inside + file) for file in PNG]
    for file, content, number, rows in zip(PNG, packed, (0, 3), (40, 37), strict=True):
        assert (tmp_path / "flow" / file).read_bytes() == content
        samples = raw_png(content).astype(np.int64)
        assert samples.shape == (rows, 56, 3)
        assert (samples[:, :, 2] == 1).all()
        flow = method(scene(number).image0[:rows], scene(number).image1[:rows]).flow
        assert np.array_equal((samples[:, :, :2] - 2**15) / 64, flow)


def test_png_as_opencv_has_it(kitti: Path, tmp_path: Path) -> None:
    cv2 = pytest.importorskip("cv2")
    submit("kitti", kitti, tmp_path, stub(lambda flow: flow + np.float32([-3.25, 511.5])))
    pixels = cv2.imread(str(tmp_path / "flow" / PNG[0]), cv2.IMREAD_UNCHANGED)
    assert pixels.dtype == np.uint16
    assert (pixels[..., ::-1] == (2**15 - 3.25 * 64, 2**15 + 511.5 * 64, 1)).all()


def test_flow_outside_the_range(kitti: Path, tmp_path: Path) -> None:
    def answer(flow: NDArray[np.float32]) -> NDArray[np.float32]:
        flow[0, :5, 0] = (-512.5, -512, 511.98, 512, 5000)
        flow[3, 7] = (0, -700)
        return flow if len(flow) == 37 else np.abs(flow)

    found = submit("kitti2015", kitti, tmp_path, stub(answer))
    second = raw_png((tmp_path / "flow" / PNG[1]).read_bytes())
    invalid = {(0, 0), (0, 3), (0, 4), (3, 7)}
    assert {(int(y), int(x)) for y, x in np.argwhere(second[:, :, 2] == 0)} == invalid
    assert all((second[place] == 0).all() for place in invalid)
    assert second[0, 1].tolist() == [0, 2**15, 1]
    assert second[0, 2, 0] == 65535
    first = raw_png((tmp_path / "flow" / PNG[0]).read_bytes())
    assert (first[:, :, 2] == 0).sum() == 5
    assert (found.invalid, found.invalid_files) == (9, 2)
    assert not verify_submission("kitti", kitti, tmp_path).faults
    # Marking more of them is not what was recorded.
    flow = np.full((37, 56, 2), np.nan, np.float32)
    write_flow(tmp_path / "flow" / PNG[1], flow)
    faults = verify_submission("kitti", kitti, tmp_path).faults
    assert faults == f"1 damaged (flow/{PNG[1]}: has no flow at 2072 pixels, not 4)"


def test_scale(sintel: Path, tmp_path: Path) -> None:
    coarse = Method(MethodConfig("wta-qq", model="pairs", window=16, scale=3))
    submit("sintel", sintel, tmp_path, coarse, passes=("clean",))
    flow = raw_flo(tmp_path / "clean" / FLO[0])
    assert flow.shape == (40, 56, 2)
    assert (flow % 3 == 0).all()


# --- going on ------------------------------------------------------------------------------------


def test_resume_after_an_interrupt(sintel: Path, tmp_path: Path) -> None:
    def answer(flow: NDArray[np.float32]) -> NDArray[np.float32]:
        if broken.calls == 4:
            raise KeyboardInterrupt
        return flow

    broken = stub(answer)
    with pytest.raises(KeyboardInterrupt):
        submit("sintel", sintel, tmp_path, broken)
    assert files_in(tmp_path) == [*(f"clean/{name}" for name in FLO), RECORD]
    message = message_of(lambda: submit("sintel", sintel, tmp_path, stub()), tmp_path)
    assert "holds a submission already; resume it" in message
    times = [(tmp_path / "clean" / name).stat().st_mtime_ns for name in FLO]
    whole = stub()
    found = submit("sintel", sintel, tmp_path, whole, resume=True)
    assert (found.computed, found.known, whole.calls) == (3, 3, 3)
    assert times == [(tmp_path / "clean" / name).stat().st_mtime_ns for name in FLO]
    assert (raw_flo(tmp_path / "final" / FLO[2]) == 1.5).all()
    assert not verify_submission("sintel", sintel, tmp_path).faults
    again = stub()
    assert submit("sintel", sintel, tmp_path, again, resume=True).known == 6
    assert again.calls == 0


def test_interrupt_before_the_first_pair(kitti: Path, tmp_path: Path) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        submit("kitti", kitti, tmp_path / "out", stub(), progress=stop)
    assert submit("kitti", kitti, tmp_path / "out", stub(), resume=True).computed == 2


def test_interrupt_between_a_file_and_its_record(
    kitti: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("hamflow.evaluation.submission.Done", interrupt)
        submit("kitti", kitti, tmp_path, stub())
    assert files_in(tmp_path) == [f"flow/{PNG[0]}", RECORD]
    # What is not recorded has no time, and is computed again.
    assert submit("kitti", kitti, tmp_path, stub(), resume=True).computed == 2


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def test_one_pass_after_the_other(sintel: Path, tmp_path: Path) -> None:
    one = submit("sintel", sintel, tmp_path, stub(), passes=["final"])
    assert (one.files, one.official, one.folders) == (3, 552, ("final",))
    assert not (tmp_path / "clean").exists()
    other = submit("sintel", sintel, tmp_path, stub(), passes=["clean", "clean"], resume=True)
    assert (other.computed, other.known) == (3, 0)
    assert submit("sintel", sintel, tmp_path, stub(), resume=True).known == 6


def test_resume_repairs(sintel: Path, tmp_path: Path) -> None:
    submit("sintel", sintel, tmp_path, stub(), passes=["clean"])
    paths = [tmp_path / "clean" / name for name in FLO]
    paths[0].write_bytes(paths[0].read_bytes()[:-1])
    write_flow(paths[1], np.zeros((40, 55, 2), np.float32))
    paths[2].unlink()
    found = verify_submission("sintel", sintel, tmp_path, passes=["clean"])
    assert (found.good, found.missing, found.surplus) == (0, (f"clean/{FLO[2]}",), ())
    assert f"clean/{FLO[0]}: is truncated: 56 × 40 pixels take 17932 bytes" in found.damaged[0]
    assert found.damaged[1] == f"clean/{FLO[1]}: has 55 × 40 pixels, not 56 × 40"
    fixed = submit("sintel", sintel, tmp_path, stub(), passes=["clean"], resume=True)
    assert (fixed.computed, fixed.known) == (3, 0)
    assert all((raw_flo(path) == 1.5).all() for path in paths)


def test_other_settings(sintel: Path, kitti: Path, tmp_path: Path, method: Method) -> None:
    submit("sintel", sintel, tmp_path, method, passes=["clean"])
    before = {name: (tmp_path / name).read_bytes() for name in files_in(tmp_path)}

    def message(other: Any, name: str = "sintel", root: Path = sintel) -> str:
        return message_of(lambda: submit(name, root, tmp_path, other, resume=True), tmp_path)

    assert message(stub()).endswith(
        ": holds a submission with other settings (method was wta-qq, not stub); use the same, or "
        "choose another folder."
    )
    wider = Method(MethodConfig("wta-qq", model="default", window=24))
    said = message(wider)
    assert "(model was pairs version 1, not default float sha256:" in said
    assert "window was [-8, 16, -8, 16], not [-12, 24, -12, 24])" in said
    assert "(benchmark was sintel, not kitti2015)" in message(method, "kitti", kitti)
    assert before == {name: (tmp_path / name).read_bytes() for name in files_in(tmp_path)}


def sintel_tree(root: Path, shift: int = 0, columns: int = 56) -> Path:
    """One scene of two frames in both passes."""
    for k in (1, 2):
        for pass_ in ("clean", "final"):
            path = root / f"test/{pass_}/alley_1/frame_{k:04}.png"
            save_image(path, scene(k + shift).image0[:, :columns])
    return root


def test_other_frames(tmp_path: Path) -> None:
    first = sintel_tree(tmp_path / "first")
    other = sintel_tree(tmp_path / "other", shift=3)
    small = sintel_tree(tmp_path / "small", columns=48)
    out = tmp_path / "out"
    submit("sintel", first, out, stub())
    before = {name: (out / name).read_bytes() for name in files_in(out)}

    def message(root: Path) -> str:
        return message_of(lambda: submit("sintel", root, out, stub(), resume=True), out)

    for root in (other, small):
        assert f"{FLO[0]} was computed from other frames than those in {root}" in message(root)
    assert before == {name: (out / name).read_bytes() for name in files_in(out)}
    found = verify_submission("sintel", small, out)
    assert (found.good, found.official) == (0, 1104)
    assert found.damaged[1] == f"final/{FLO[0]}: has 56 × 40 pixels, not 48 × 40"
    found = verify_submission("sintel", other, out)
    assert found.damaged[1] == f"final/{FLO[0]}: was computed from other frames"
    # The same files in another place are the same data.
    shutil.move(first, tmp_path / "moved")
    assert submit("sintel", tmp_path / "moved", out, stub(), resume=True).known == 2


def test_file_that_was_swapped(sintel: Path, tmp_path: Path) -> None:
    submit("sintel", sintel, tmp_path, stub(), passes=["clean"])
    path = tmp_path / "clean" / FLO[1]
    write_flow(path, np.zeros((40, 56, 2), np.float32))
    found = verify_submission("sintel", sintel, tmp_path, passes=["clean"])
    assert found.damaged == (f"clean/{FLO[1]}: was changed after it was written",)
    again = submit("sintel", sintel, tmp_path, stub(), passes=["clean"], resume=True)
    assert (again.computed, again.known) == (1, 2)
    assert (raw_flo(path) == 1.5).all()


def test_frames_do_not_stay_in_memory(kitti: Path, tmp_path: Path) -> None:
    """A pair keeps what it has read, so all frames of a benchmark would add up."""
    alive: list[Any] = []

    class Frugal(Stub):
        def __call__(self, image0: Any, image1: Any) -> Estimate:
            assert not any(frame() is not None for frame in alive)
            alive.extend(weakref.ref(image) for image in (image0, image1))
            return super().__call__(image0, image1)

    frugal: Any = Frugal(lambda flow: flow)
    submit("kitti", kitti, tmp_path, frugal)
    assert len(alive) == 4


def test_record_without_files_binds_nobody(kitti: Path, tmp_path: Path) -> None:
    coarse = Method(MethodConfig("wta-qq", model="pairs", window=16, scale=100))
    with pytest.raises(
        InputError, match=r"^000000_10: A frame of 56 × 40 pixels cannot be reduced 100 times"
    ):
        submit("kitti", kitti, tmp_path, coarse)
    assert submit("kitti", kitti, tmp_path, stub()).computed == 2
    with pytest.raises(InputError, match=r"^000000_10: "):
        submit("kitti", kitti, tmp_path / "other", coarse)
    assert submit("kitti", kitti, tmp_path / "other", stub(), resume=True).computed == 2


# --- one at a time --------------------------------------------------------------------------------


@pytest.mark.skipif(os.name != "posix", reason="no such locks")
def test_two_at_a_time(kitti: Path, tmp_path: Path) -> None:
    messages: list[str] = []

    def meanwhile(name: str, *_: int) -> None:
        if name == f"flow/{PNG[1]}":
            second = stub()
            messages.append(
                message_of(lambda: submit("kitti", kitti, tmp_path, second, resume=True), tmp_path)
            )
            assert second.calls == 0

    assert submit("kitti", kitti, tmp_path, stub(), progress=meanwhile).computed == 2
    assert [message.partition(": ")[2] for message in messages] == [
        "another submission is at work there; wait for its end, or choose another place."
    ]
    assert submit("kitti", kitti, tmp_path, stub(), resume=True).known == 2
    assert not list(tmp_path.rglob(".*"))


@pytest.mark.skipif(os.name != "posix", reason="no such locks")
@pytest.mark.parametrize("name", ["", "log.jsonl", "x" * 255])
def test_lock_ends_with_its_process(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys, time\nfrom hamflow.io._lock import locked\n"
            "with locked(sys.argv[1], 'fit'):\n print(flush=True)\n time.sleep(60)",
            str(path),
        ],
        stdout=subprocess.PIPE,
    )
    assert holder.stdout is not None
    with holder, holder.stdout:
        holder.stdout.readline()
        assert "another fit is at work" in message_of(lambda: hold(path), path)
        with locked(tmp_path / "other.jsonl", "fit"):
            pass
        holder.kill()
    assert len(list(tmp_path.iterdir())) == 1
    hold(path)
    assert not list(tmp_path.iterdir())


def hold(path: Path) -> None:
    with locked(path, "fit"):
        pass


@pytest.mark.skipif(os.name != "posix", reason="no such locks")
def test_lock_that_was_removed_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between opening and locking, the run that held it ends and removes the file."""
    fcntl = pytest.importorskip("fcntl")
    flock, removed = fcntl.flock, []

    def late(number: int, how: int) -> None:
        if not removed:
            removed.append((tmp_path / ".hamflow.lock").unlink())
        flock(number, how)

    monkeypatch.setattr(fcntl, "flock", late)
    with locked(tmp_path, "fit"):
        assert (tmp_path / ".hamflow.lock").exists()
        message_of(lambda: hold(tmp_path), tmp_path)


@pytest.mark.skipif(os.name != "posix", reason="no such locks")
def test_disk_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", refuse)
    with locked(tmp_path, "fit"):
        hold(tmp_path)
    monkeypatch.setattr("hamflow.io._lock.fcntl", None)
    with locked(tmp_path, "fit"):
        assert not list(tmp_path.iterdir())


def test_lock_in_no_folder(tmp_path: Path) -> None:
    path = tmp_path / "none/log.jsonl"
    assert "cannot be locked against other runs" in message_of(lambda: hold(path), path)


# --- faults ---------------------------------------------------------------------------------------


def test_verification_names_what_is_wrong(kitti: Path, tmp_path: Path) -> None:
    submit("kitti", kitti, tmp_path, stub())
    good = verify_submission("kitti", kitti, tmp_path)
    assert (good.good, good.faults) == (2, "")
    path = tmp_path / "flow" / PNG[0]
    original = path.read_bytes()

    def faults() -> str:
        return verify_submission("kitti", kitti, tmp_path).faults

    path.write_bytes(original[: len(original) // 2])
    assert faults().startswith(f"1 damaged (flow/{PNG[0]}: ")
    save_image(path, scene(0).image0)  # a picture instead of a flow
    assert "is not a 16-bit RGB PNG file" in faults()
    path.write_bytes((tmp_path / "flow" / PNG[1]).read_bytes())
    assert "has 56 × 37 pixels, not 56 × 40" in faults()
    path.rename(tmp_path / "flow" / "000000.png")
    assert faults() == f"1 missing (flow/{PNG[0]}), 1 surplus (flow/000000.png)"
    (tmp_path / "flow" / "000000.png").unlink()
    path.write_bytes(original)
    for strange in ("notes.txt", "flow/old/000001_10.png", "flow/Thumbs.db", "flow/a"):
        (tmp_path / strange).parent.mkdir(exist_ok=True)
        (tmp_path / strange).touch()
    (tmp_path / "flow/.DS_Store").touch()
    assert faults() == "4 surplus (flow/Thumbs.db, flow/a, flow/old/000001_10.png, ...)"


def test_not_dense(sintel: Path, tmp_path: Path) -> None:
    submit("sintel", sintel, tmp_path, stub(), passes=["clean"])
    path = tmp_path / "clean" / FLO[1]
    for bad in (np.nan, np.inf, 2e9):
        raw = bytearray(path.read_bytes())
        raw[12 + 8 * 77 : 12 + 8 * 77 + 4] = struct.pack("<f", bad)
        path.write_bytes(raw)
        found = verify_submission("sintel", sintel, tmp_path, passes=["clean"])
        assert found.damaged == (f"clean/{FLO[1]}: has no flow at 1 pixels, not 0",)


def test_no_archive_of_what_is_wrong(kitti: Path, tmp_path: Path) -> None:
    submit("kitti", kitti, tmp_path, stub())
    (tmp_path / "flow/000009_10.png").touch()
    message = message_of(lambda: submit("kitti", kitti, tmp_path, stub(), resume=True), tmp_path)
    assert "is not ready for upload, with 1 surplus (flow/000009_10.png); remove" in message
    assert not (tmp_path / "flow.zip").exists()
    (tmp_path / "flow/000009_10.png").unlink()
    assert submit("kitti", kitti, tmp_path, stub(), resume=True).archive is not None


def test_archive_is_verified(kitti: Path, tmp_path: Path) -> None:
    submit("kitti", kitti, tmp_path, stub())
    path = tmp_path / "flow.zip"
    original = path.read_bytes()

    def faults() -> str:
        return verify_submission("kitti", kitti, tmp_path).faults

    path.write_bytes(original[:-30])
    assert faults() == "1 damaged (flow.zip: cannot be read (File is not a zip file))"
    path.unlink()
    assert faults() == "1 missing (flow.zip)"
    for names, words in (
        (PNG[:1], "holds other files than these"),
        (PNG, f"another flow/{PNG[0]}"),
    ):
        with zipfile.ZipFile(path, "w") as archive:
            for name in names:
                archive.writestr(f"flow/{name}", b"another")
        assert words in faults()
    path.write_bytes(original)
    assert not faults()


def test_folder_in_the_place_of_the_archive(sintel: Path, kitti: Path, tmp_path: Path) -> None:
    submit("kitti", kitti, tmp_path / "kitti", stub())
    path = tmp_path / "kitti/flow.zip"
    path.unlink()
    path.mkdir()
    message = message_of(
        lambda: submit("kitti", kitti, tmp_path / "kitti", stub(), resume=True), path
    )
    assert "is a folder, but the archive for the upload goes there; move it away." in message
    assert (
        "flow.zip: cannot be read" in verify_submission("kitti", kitti, tmp_path / "kitti").faults
    )
    path.rmdir()
    assert submit("kitti", kitti, tmp_path / "kitti", stub(), resume=True).known == 2
    # Sintel has no archive: one that is there is the user's own.
    submit("sintel", sintel, tmp_path / "sintel", stub())
    (tmp_path / "sintel/flow.zip").touch()
    message = message_of(
        lambda: submit("sintel", sintel, tmp_path / "sintel", stub(), resume=True),
        tmp_path / "sintel",
    )
    assert "1 surplus (flow.zip)" in message
    assert (tmp_path / "sintel/flow.zip").exists()


def test_only_a_training_split(sintel: Path, kitti: Path, tmp_path: Path) -> None:
    shutil.copytree(sintel / "training", tmp_path / "data/training")
    out = tmp_path / "out"
    message = message_of(
        lambda: submit("sintel", tmp_path / "data", out, stub()), tmp_path / "data/test"
    )
    assert "does not exist; expected is MPI-Sintel's tree" in message
    message_of(lambda: submit("kitti", sintel, out, stub()), sintel / "testing")
    assert not out.exists()
    # Files of training pairs are both strange and too few.
    submit("sintel", sintel, out, stub())
    shutil.move(out / "final/alley_1", out / "final/cave_4")
    found = verify_submission("sintel", sintel, out)
    assert found.missing == tuple(f"final/{name}" for name in FLO[:2])
    assert [name.split("/")[1] for name in found.surplus] == ["cave_4", "cave_4"]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda flow: flow * np.float32(np.nan), "(undefined flow)"),
        (lambda flow: flow + np.float32(np.inf), "(undefined flow)"),
        (lambda flow: flow[9999, 9999], "out of bounds"),
    ],
)
def test_method_that_fails(kitti: Path, tmp_path: Path, answer: Any, words: str) -> None:
    with pytest.raises(InputError, match=r"^stub failed on the pair 000000_10") as caught:
        submit("kitti", kitti, tmp_path, stub(answer))
    assert words in str(caught.value)
    assert str(caught.value).endswith("so choose another method.")
    assert files_in(tmp_path) == [RECORD]


def test_wrong_options(sintel: Path, kitti: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no benchmark 'spring' to submit to; known are sintel"):
        submit("spring", sintel, tmp_path, stub())
    with pytest.raises(InputError, match=r"^kitti2015 has no passes"):
        submit("kitti", kitti, tmp_path, stub(), passes=["clean"])
    with pytest.raises(InputError, match=r"^passes must be clean or final, not 'albedo'\.$"):
        submit("sintel", sintel, tmp_path, stub(), passes=["albedo"])
    with pytest.raises(InputError, match=r"^passes must be clean, final, or both\.$"):
        submit("sintel", sintel, tmp_path, stub(), passes=[])
    assert files_in(tmp_path) == []


def test_folder_of_something_else(kitti: Path, tmp_path: Path) -> None:
    (tmp_path / ".hidden").touch()
    (tmp_path / "thesis.tex").touch()
    message = message_of(lambda: submit("kitti", kitti, tmp_path, stub(), resume=True), tmp_path)
    assert "choose an empty folder" in message
    file = tmp_path / "thesis.tex"
    assert "choose another" in message_of(lambda: submit("kitti", kitti, file, stub()), file)
    below = file / "out"
    assert "choose another" in message_of(lambda: submit("kitti", kitti, below, stub()), below)
    for text in ("", "[]", '{"maker": "hamflow video"}', '{"maker": "hamflow submit"}', "{"):
        (tmp_path / RECORD).write_text(text)
        message = message_of(
            lambda: submit("kitti", kitti, tmp_path, stub(), resume=True), tmp_path / RECORD
        )
        assert "is not from 'hamflow submit', or damaged" in message
    (tmp_path / RECORD).unlink()
    message_of(lambda: verify_submission("kitti", kitti, tmp_path), tmp_path / RECORD)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write anywhere")
def test_folder_that_may_not_be_written(kitti: Path, tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        counted = stub()
        message_of(lambda: submit("kitti", kitti, tmp_path, counted), tmp_path / RECORD)
        message_of(lambda: submit("kitti", kitti, tmp_path / "a", counted), tmp_path / "a")
        assert counted.calls == 0
    finally:
        tmp_path.chmod(0o700)


def test_full_disk(kitti: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sync, synced = os.fsync, 0

    def full(number: int) -> None:
        nonlocal synced
        synced += 1
        if synced == 4:  # the record, the first file, the record, the second file
            raise OSError(errno.ENOSPC, "No space left on device")
        sync(number)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        message = message_of(
            lambda: submit("kitti", kitti, tmp_path, stub()), tmp_path / "flow" / PNG[1]
        )
    assert "the disk is full" in message
    assert files_in(tmp_path) == [f"flow/{PNG[0]}", RECORD]
    assert submit("kitti", kitti, tmp_path, stub(), resume=True).known == 1


# --- the command ----------------------------------------------------------------------------------

QUICK = ("--method", "opencv-dis")


def run(*args: object) -> int:
    return main(["submit", *(str(arg) for arg in args)])


@pytest.fixture
def dis(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command with a method that takes no time."""
    monkeypatch.setattr("hamflow.cli.submit.Method", lambda config: stub(lambda f: f, config.label))


@pytest.mark.usefixtures("dis")
def test_command(sintel: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert run("sintel", sintel, "-o", out, "--passes", "clean", *QUICK) == 0
    said = capsys.readouterr().out
    assert f"3 files computed; all 3 are verified in {out}." in said
    assert "--resume without --passes completes them" in said
    assert run("sintel", sintel, "-o", out, "--resume", *QUICK) == 0
    said = capsys.readouterr().out
    assert f"3 files computed, 3 there already; all 6 are verified in {out}." in said
    assert "Mean time of a pair: 0.00 s." in said
    assert "sintel has 1104 test pairs, but this data set has 6" in said
    assert f"bundler {out / 'clean'} {out / 'final'} NAME.lzma" in said
    assert run("sintel", sintel, "-o", out, "--resume", "--preset", "fast") == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == (
        f"hamflow: {out}: holds a submission with other settings (method was opencv-dis, not "
        "fast); use the same, or choose another folder.\n"
    )


def test_command_for_kitti(
    kitti: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    many = stub(lambda flow: flow + np.float32(600) * (np.arange(56)[:, None] == 1))
    monkeypatch.setattr("hamflow.cli.submit.Method", lambda config: many)
    assert run("kitti", kitti, "-o", tmp_path / "out", *QUICK) == 0
    said = capsys.readouterr().out
    assert "77 pixels in 2 files would move by more than 512 pixels and are marked" in said
    assert f"Upload {tmp_path / 'out/flow.zip'}." in said


def test_command_interrupted(
    kitti: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def answer(flow: NDArray[np.float32]) -> NDArray[np.float32]:
        if len(flow) == 37:
            raise KeyboardInterrupt
        return flow

    monkeypatch.setattr("hamflow.cli.submit.Method", lambda config: stub(answer))
    assert run("kitti", kitti, "-o", tmp_path, *QUICK) == 130
    assert f"is kept in {tmp_path}, and --resume continues" in capsys.readouterr().out
    assert files_in(tmp_path) == [f"flow/{PNG[0]}", RECORD]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((*QUICK, "--preset", "fast"), "--preset and --method exclude each other"),
        (("--preset", ""), "There is no preset ''"),
        (("--method", ""), "There is no method ''"),
        (("--preset", "opencv-dis"), "There is no preset 'opencv-dis'"),
        (("--method", "fast"), "There is no method 'fast'"),
        (("--verify", "--resume", "--scale", "2"), "leave --scale and --resume away"),
        (("--verify", "--method", ""), "--verify only reads; leave --method away"),
    ],
)
def test_command_with_wrong_options(
    kitti: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    *,
    options: tuple[str, ...],
    words: str,
) -> None:
    assert run("kitti", kitti, "-o", tmp_path / "out", *options) == 1
    assert words in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("dis")
def test_command_verifies(sintel: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("sintel", sintel, "-o", tmp_path, *QUICK, "--passes", "clean") == 0
    capsys.readouterr()
    before = {name: (tmp_path / name).stat().st_mtime_ns for name in files_in(tmp_path)}
    assert run("sintel", sintel, "-o", tmp_path, "--verify", "--passes", "clean") == 0
    said = capsys.readouterr().out
    assert f"3 files verified in {tmp_path}; nothing is wrong." in said
    assert "sintel has 552 test pairs, but this data set has 3" in said
    assert before == {name: (tmp_path / name).stat().st_mtime_ns for name in files_in(tmp_path)}
    assert run("sintel", sintel, "-o", tmp_path, "--verify") == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert f"hamflow: {tmp_path}: is not ready for upload, with 3 missing (final/" in captured.err
    (tmp_path / "clean" / FLO[0]).write_bytes(b"PIEH")
    assert run("sintel", sintel, "-o", tmp_path, "--verify", "--passes", "clean") == 1
    assert f"1 damaged (clean/{FLO[0]}: " in capsys.readouterr().err
    assert run("sintel", sintel, "-o", tmp_path / "none", "--verify") == 1
    assert f"none/{RECORD}: cannot be read" in capsys.readouterr().err


def test_whole_route(kitti: Path, tmp_path: Path) -> None:
    """The preset that users will take, with the model that is inside it."""
    code = run("kitti2015", kitti, "-o", tmp_path, "--preset", "fast", "--model", "pairs")
    assert code == 0
    samples = raw_png((tmp_path / "flow" / PNG[0]).read_bytes()).astype(np.float64)
    error = np.abs((samples[:, :, :2] - 2**15) / 64 - scene(0).flow)[~scene(0).occluded]
    assert np.median(error) < 0.5

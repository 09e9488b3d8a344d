"""A submission that is interrupted, continued, and changed in between."""

from __future__ import annotations

import shutil
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from _submissions import FLO, LOG, PNG, Stub, files_in, raw_flo, stub
from _trees import message_of, save_image, scene
from hamflow.errors import InputError
from hamflow.evaluation import Estimate, Method, MethodConfig, submit, verify_submission
from hamflow.io import write_flow


def test_resume_after_an_interrupt(sintel: Path, tmp_path: Path) -> None:
    def answer(flow: NDArray[np.float32]) -> NDArray[np.float32]:
        if broken.calls == 4:
            raise KeyboardInterrupt
        return flow

    broken = stub(answer)
    with pytest.raises(KeyboardInterrupt):
        submit("sintel", sintel, tmp_path, broken)
    assert files_in(tmp_path) == [*(f"clean/{name}" for name in FLO), LOG]
    times = [(tmp_path / "clean" / name).stat().st_mtime_ns for name in FLO]
    whole = stub()
    found = submit("sintel", sintel, tmp_path, whole)
    assert (found.computed, found.known, whole.calls) == (3, 3, 3)
    assert times == [(tmp_path / "clean" / name).stat().st_mtime_ns for name in FLO]
    assert (raw_flo(tmp_path / "final" / FLO[2]) == 1.5).all()
    assert not verify_submission("sintel", sintel, tmp_path).faults
    again = stub()
    assert submit("sintel", sintel, tmp_path, again).known == 6
    assert again.calls == 0


def test_interrupt_before_the_first_pair(kitti: Path, tmp_path: Path) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        submit("kitti", kitti, tmp_path / "out", stub(), progress=stop)
    assert submit("kitti", kitti, tmp_path / "out", stub()).computed == 2


def test_interrupt_between_a_file_and_its_record(
    kitti: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("hamflow.evaluation.submission.file_record", interrupt)
        submit("kitti", kitti, tmp_path, stub())
    assert files_in(tmp_path) == [f"flow/{PNG[0]}", LOG]
    # What is not recorded may be anything, and is computed again.
    assert submit("kitti", kitti, tmp_path, stub()).computed == 2


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def test_one_pass_after_the_other(sintel: Path, tmp_path: Path) -> None:
    one = submit("sintel", sintel, tmp_path, stub(), passes=["final"])
    assert (one.files, one.official, one.folders) == (3, 552, ("final",))
    assert not (tmp_path / "clean").exists()
    other = submit("sintel", sintel, tmp_path, stub(), passes=["clean", "clean"])
    assert (other.computed, other.known) == (3, 0)
    assert submit("sintel", sintel, tmp_path, stub()).known == 6


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
    fixed = submit("sintel", sintel, tmp_path, stub(), passes=["clean"])
    assert (fixed.computed, fixed.known) == (3, 0)
    assert all((raw_flo(path) == 1.5).all() for path in paths)


def test_other_settings(sintel: Path, kitti: Path, tmp_path: Path, method: Method) -> None:
    submit("sintel", sintel, tmp_path, method, passes=["clean"])
    before = {name: (tmp_path / name).read_bytes() for name in files_in(tmp_path)}

    def message(other: Any, name: str = "sintel", root: Path = sintel) -> str:
        return message_of(lambda: submit(name, root, tmp_path, other), tmp_path / LOG)

    assert message(stub()).endswith(
        ": holds results of other settings (method was wta-qq, not stub); use the same settings, "
        "choose another place, or start again with --overwrite."
    )
    wider = Method(MethodConfig("wta-qq", model="default", window=24))
    said = message(wider)
    assert "(model was pairs version 1, not default float sha256:" in said
    assert "window was [-8, 16, -8, 16], not [-12, 24, -12, 24])" in said
    assert "(benchmark was sintel, not kitti2015)" in message(method, "kitti", kitti)
    assert before == {name: (tmp_path / name).read_bytes() for name in files_in(tmp_path)}


def test_overwrite(sintel: Path, tmp_path: Path, method: Method) -> None:
    submit("sintel", sintel, tmp_path, method, passes=["clean"])
    (tmp_path / "clean/mine.txt").touch()
    found = submit("sintel", sintel, tmp_path, stub(), passes=["final"], overwrite=True)
    assert (found.computed, found.known) == (3, 0)
    # What the first run wrote is gone, and nothing else.
    assert files_in(tmp_path / "clean") == ["mine.txt"]


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

    found = verify_submission("sintel", small, out)
    assert (found.good, found.official) == (0, 1104)
    assert found.damaged[1] == f"final/{FLO[0]}: has 56 × 40 pixels, not 48 × 40"
    found = verify_submission("sintel", other, out)
    assert found.damaged[1] == f"final/{FLO[0]}: was computed from other frames"
    # The same files in another place are the same data.
    shutil.move(first, tmp_path / "moved")
    assert submit("sintel", tmp_path / "moved", out, stub()).known == 2
    assert before == {name: (out / name).read_bytes() for name in files_in(out)}
    # What is of other frames is computed again.
    path = tmp_path / "moved/test/clean/alley_1/frame_0002.png"
    path.write_bytes((other / "test/clean/alley_1/frame_0002.png").read_bytes())
    found = submit("sintel", tmp_path / "moved", out, stub())
    assert (found.computed, found.known) == (1, 1)
    found = submit("sintel", small, out, stub())
    assert (found.computed, found.known) == (2, 0)
    assert raw_flo(out / "final" / FLO[0]).shape == (40, 48, 2)


def test_file_that_was_swapped(sintel: Path, tmp_path: Path) -> None:
    submit("sintel", sintel, tmp_path, stub(), passes=["clean"])
    path = tmp_path / "clean" / FLO[1]
    write_flow(path, np.zeros((40, 56, 2), np.float32))
    found = verify_submission("sintel", sintel, tmp_path, passes=["clean"])
    assert found.damaged == (f"clean/{FLO[1]}: was changed after it was written",)
    again = submit("sintel", sintel, tmp_path, stub(), passes=["clean"])
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
    assert submit("kitti", kitti, tmp_path / "other", stub()).computed == 2

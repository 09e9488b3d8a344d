"""Files for the servers of the benchmarks, read back with other code than Hamflow's."""

from __future__ import annotations

import json
import shutil
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from _submissions import FLO, LOG, PNG, files_in, raw_flo, raw_png, stub
from _trees import message_of, save_image, scene
from hamflow.errors import InputError
from hamflow.evaluation import Method, MethodConfig, submit, verify_submission
from hamflow.io import write_flow

# --- what the servers want ------------------------------------------------------------------------


def test_sintel(sintel: Path, tmp_path: Path, method: Method) -> None:
    told: list[tuple[str, int, int]] = []
    found = submit(
        "sintel", sintel, tmp_path / "out", method, progress=lambda *now: told.append(now)
    )
    expected = [f"{pass_}/{name}" for pass_ in ("clean", "final") for name in FLO]
    assert files_in(tmp_path / "out") == [*expected, LOG]
    assert told == [
        *((name, number, 6) for number, name in enumerate(expected)),
        ("verification", 6, 6),
    ]
    assert (found.benchmark, found.folders) == ("sintel", ("clean", "final"))
    assert (found.computed, found.known, found.files, found.official) == (6, 0, 6, 1104)
    assert (found.invalid, found.invalid_files, found.archive) == (0, 0, None)
    _, *lines = (tmp_path / "out" / LOG).read_text().splitlines()
    assert found.seconds == pytest.approx(np.mean([json.loads(line)["seconds"] for line in lines]))
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
    assert files_in(tmp_path) == ["flow.zip", *(f"flow/{file}" for file in PNG), LOG]
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
    write_flow(tmp_path / "flow" / PNG[1], flow, format="kitti")
    faults = verify_submission("kitti", kitti, tmp_path).faults
    assert faults == f"1 damaged (flow/{PNG[1]}: has no flow at 2072 pixels, not 4)"


def test_scale(sintel: Path, tmp_path: Path) -> None:
    coarse = Method(MethodConfig("wta-qq", model="pairs", window=16, scale=3))
    submit("sintel", sintel, tmp_path, coarse, passes=("clean",))
    flow = raw_flo(tmp_path / "clean" / FLO[0])
    assert flow.shape == (40, 56, 2)
    assert (flow % 3 == 0).all()


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
    message = message_of(lambda: submit("kitti", kitti, tmp_path, stub()), tmp_path)
    assert "is not ready for upload: 1 surplus (flow/000009_10.png); remove" in message
    assert not (tmp_path / "flow.zip").exists()
    (tmp_path / "flow/000009_10.png").unlink()
    assert submit("kitti", kitti, tmp_path, stub()).archive is not None


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
        (PNG[:1], "contains other files"),
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
    message = message_of(lambda: submit("kitti", kitti, tmp_path / "kitti", stub()), path)
    assert "is a folder, but the archive for the upload needs this name; move it away." in message
    assert (
        "flow.zip: cannot be read" in verify_submission("kitti", kitti, tmp_path / "kitti").faults
    )
    path.rmdir()
    assert submit("kitti", kitti, tmp_path / "kitti", stub()).known == 2
    # Sintel has no archive: one that is there is the user's own.
    submit("sintel", sintel, tmp_path / "sintel", stub())
    (tmp_path / "sintel/flow.zip").touch()
    message = message_of(
        lambda: submit("sintel", sintel, tmp_path / "sintel", stub()),
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
    assert files_in(tmp_path) == []


def test_wrong_options(sintel: Path, kitti: Path, tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"no benchmark 'spring' to submit to; choose one of sintel"
    ):
        submit("spring", sintel, tmp_path, stub())
    with pytest.raises(InputError, match=r"^kitti2015 has no passes"):
        submit("kitti", kitti, tmp_path, stub(), passes=["clean"])
    with pytest.raises(InputError, match=r"^passes must be clean or final, not 'albedo'\.$"):
        submit("sintel", sintel, tmp_path, stub(), passes=["albedo"])
    with pytest.raises(InputError, match=r"^passes must be one or more of clean, final\.$"):
        submit("sintel", sintel, tmp_path, stub(), passes=[])
    assert files_in(tmp_path) == []


def test_folder_of_something_else(kitti: Path, tmp_path: Path) -> None:
    (tmp_path / ".hidden").touch()
    (tmp_path / "thesis.tex").touch()
    message = message_of(lambda: submit("kitti", kitti, tmp_path, stub()), tmp_path)
    assert "choose a new or empty folder" in message
    file = tmp_path / "thesis.tex"
    assert "choose another" in message_of(lambda: submit("kitti", kitti, file, stub()), file)
    below = file / "out"
    assert "choose another" in message_of(lambda: submit("kitti", kitti, below, stub()), below)
    for text in ("", "[]", '{"work": "video", "settings": {}}', '{"work": "submission"}\n', "{"):
        (tmp_path / LOG).write_text(text)
        for overwrite in (False, True):
            message = message_of(
                lambda: submit("kitti", kitti, tmp_path, stub(), overwrite=overwrite),  # noqa: B023
                tmp_path / LOG,
            )
            assert "is not the log of an earlier submission; choose another place." in message
        assert (tmp_path / LOG).read_text() == text
    (tmp_path / LOG).unlink()
    message_of(lambda: verify_submission("kitti", kitti, tmp_path), tmp_path / LOG)

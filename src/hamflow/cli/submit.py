"""``hamflow submit``: the files that the servers of the benchmarks want."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import tyro
from rich.console import Console

from hamflow.cli._console import pair_progress, say, says_how_to_continue
from hamflow.cli._options import chosen_method
from hamflow.errors import FileError, InputError
from hamflow.evaluation.methods import Method, MethodConfig
from hamflow.evaluation.submission import Submission, verify_submission
from hamflow.evaluation.submission import submit as compute


def submit(
    benchmark: tyro.conf.Positional[Literal["sintel", "kitti2012", "kitti2015", "kitti"]],
    root: tyro.conf.Positional[Path],
    output: Annotated[Path, tyro.conf.arg(aliases=["-o"])],
    *,
    passes: tuple[Literal["clean", "final"], ...] = (),
    preset: str | None = None,
    method: str | None = None,
    model: str | None = None,
    scale: int = 1,
    overwrite: bool = False,
    verify: bool = False,
) -> None:
    """Compute the flow of a benchmark's test pairs, ready for the upload to its server.

    For Sintel, the folder gets clean/SCENE/frame_0001.flo and so on, and the same in final/; the
    bundler that comes with MPI-Sintel packs them. For KITTI, it gets flow/000000_10.png and so on
    in KITTI's 16 bits, and flow.zip for the upload. Pixels that move by more than 512 pixels, which
    these files cannot hold, are marked as invalid, and KITTI's server fills them from their row.

    At the end every file is read back and checked, and the mean time of a pair is told, which the
    servers ask for. --verify does only that check, at any later time. The log run.jsonl tells how
    the files were made. Files of frames that were changed since then are computed again.

    The same command again continues an interrupted run; a folder with other settings or other files
    is refused; --overwrite begins anew.

    Parameters
    ----------
    benchmark
        sintel, kitti2012 or kitti2015; kitti is short for kitti2015.
    root
        Folder of the data set in its own layout: with test/ (Sintel) or testing/ (KITTI) in it.
    output
        Folder for the files, new or empty.
    passes
        Of Sintel: clean, final; by default both, as its server wants.
    preset
        fast, balanced (the default), paper, or a TOML file that changes one of them.
    method
        Instead of a preset: wta-ff, wta-fq, wta-qq (local model), crf-f, crf-q (joint model), or
        one of OpenCV's (extra 'peers') such as opencv-dis.
    model
        Another descriptor: the name of a shipped model, or a .safetensors file.
    scale
        Reduce the frames by this whole factor first; the files have the full size all the same.
    overwrite
        Begin anew: replace the files of an earlier run.
    verify
        Compute and write nothing; read back what is in the folder (and in flow.zip), and check it
        against the data set. The exit code is 1 if anything is missing, too much or damaged.
    """
    if verify:
        needless = {"--preset": preset, "--method": method, "--model": model}
        given = [name for name, value in needless.items() if value is not None]
        given += ["--scale"] * (scale != 1) + ["--overwrite"] * overwrite
        if given:
            raise InputError(f"--verify only reads; leave out {' and '.join(given)}.")
        _verify(benchmark, root, output, passes)
        return
    chosen = Method(MethodConfig(chosen_method(preset, method), model=model, scale=scale))
    console = Console(markup=False)
    with says_how_to_continue(output, overwrite), pair_progress(console) as progress:
        found = compute(
            benchmark,
            root,
            output,
            chosen,
            passes=passes or None,
            overwrite=overwrite,
            progress=progress,
        )
    for sentence in _sentences(found, output):
        say(sentence)


def _sentences(found: Submission, output: Path) -> list[str]:
    there = f", {found.known} there already" if found.known else ""
    said = [
        f"{_count(found.computed, 'file')} computed{there}; all {found.files} are verified in "
        f"{output}.",
        f"Mean time of a pair: {found.seconds:.2f} s.",
    ]
    if found.invalid:
        said.append(
            f"{_count(found.invalid, 'pixel')} in {_count(found.invalid_files, 'file')} would move "
            "by more than 512 pixels and are marked as invalid."
        )
    said += _attention(found.benchmark, found.files, found.official)
    if found.archive is not None:
        said.append(f"Upload {found.archive}.")
    elif len(found.folders) < 2:
        said.append("The server wants both passes; run this without --passes to add the other one.")
    else:
        said.append(
            "Pack the folder with the bundler that comes with MPI-Sintel, and upload the result: "
            f"bundler {output / 'clean'} {output / 'final'} NAME.lzma"
        )
    return said


def _attention(benchmark: str, files: int, official: int) -> list[str]:
    if files == official:
        return []
    return [
        f"Attention: {benchmark} has {official} test pairs, but this data set has {files}; the "
        "server wants all of them."
    ]


def _verify(benchmark: str, root: Path, output: Path, passes: tuple[str, ...]) -> None:
    found = verify_submission(benchmark, root, output, passes=passes or None)
    if found.faults:
        raise FileError(
            f"{output}: is not ready for upload, with {found.faults}; remove what does not belong "
            "there, and run the command without --verify."
        )
    say(f"{_count(found.good, 'file')} verified in {output}; nothing is wrong.")
    for sentence in _attention(benchmark, found.good, found.official):
        say(sentence)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"

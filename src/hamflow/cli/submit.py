"""``hamflow submit``: the files that a benchmark server takes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import tyro
from rich.console import Console

from hamflow.cli._console import count, progress_bar, say, says_how_to_continue
from hamflow.cli._methods import MaxMemory, MethodName, Model, PresetOrMethod, chosen_method
from hamflow.cli._options import Number, OutputFolder, option
from hamflow.errors import FileError, InputError
from hamflow.evaluation._benchmarks import BENCHMARKS
from hamflow.evaluation.methods import Method, MethodConfig
from hamflow.evaluation.submission import Submission, verify_submission
from hamflow.evaluation.submission import submit as compute

_BENCHMARK = option("BENCHMARK", f"One of {', '.join(BENCHMARKS)}; kitti means kitti2015.")


def submit(
    benchmark: Annotated[tyro.conf.Positional[str], _BENCHMARK],
    root: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="ROOT")],
    output: OutputFolder,
    *,
    preset: PresetOrMethod = None,
    method: MethodName = None,
    model: Model = None,
    scale: Number = 1,
    max_memory: MaxMemory = None,
    passes: Annotated[tuple[Literal["clean", "final"], ...], option("PASS ...")] = (),
    verify: bool = False,
    overwrite: bool = False,
) -> None:
    """Compute the flow of all test pairs of a benchmark, ready for the upload to its server.

    For example:

        hamflow submit kitti2015 KITTI/2015 -o submission

    For Sintel, the folder gets clean/SCENE/frame_0001.flo and so on, and the same in final/; the
    bundler that comes with MPI-Sintel packs them. For KITTI, it gets flow/000000_10.png and so on
    in KITTI's 16-bit format, and flow.zip for the upload. This format cannot store vectors beyond
    512 pixels: they are marked as invalid, and KITTI's server fills them in.

    At the end every file is read again and checked, and the mean time per pair is printed, which
    the servers ask for. The log run.jsonl in the folder describes how the files were made.

    The same command continues an interrupted run; a folder with other settings or other files is
    refused; --overwrite starts again. Files whose frames have changed are computed again.

    Parameters
    ----------
    root
        Folder of the data set as it is published, with the folder test (Sintel) or testing (KITTI).
    output
        Folder for the files, new or empty.
    passes
        For Sintel: clean, final, or by default both, which its server requires.
    scale
        Reduce the frames by this whole factor first. The files have the full size nevertheless.
    overwrite
        Start again: replace the files of an earlier run.
    verify
        Only check the files in the folder, and flow.zip. The exit code is 1 if any is missing,
        damaged, or not part of the submission.
    """
    if verify:
        needless = {
            "--preset": preset,
            "--method": method,
            "--model": model,
            "--max-memory": max_memory,
        }
        given = [name for name, value in needless.items() if value is not None]
        given += ["--scale"] * (scale != 1) + ["--overwrite"] * overwrite
        if given:
            raise InputError(f"--verify only checks files; leave out {' and '.join(given)}.")
        _verify(benchmark, root, output, passes)
        return
    chosen = Method(
        MethodConfig(chosen_method(preset, method), model=model, scale=scale, max_memory=max_memory)
    )
    with says_how_to_continue(output, overwrite), progress_bar(Console()) as progress:
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
    before = f", {found.known} computed before" if found.known else ""
    said = [
        f"{count(found.computed, 'file')} computed{before}; all {found.files} are verified in "
        f"{output}.",
        f"Mean time per pair: {found.seconds:.2f} s.",
    ]
    if found.invalid:
        said.append(
            f"{count(found.invalid, 'pixel')} in {count(found.invalid_files, 'file')} would move "
            "by more than 512 pixels and are marked as invalid."
        )
    said += _warning(found.benchmark, found.files, found.official)
    if found.archive is not None:
        said.append(f"Upload {found.archive}.")
    elif len(found.folders) < 2:
        said.append(
            "The server requires both passes; run this without --passes to add the other one."
        )
    else:
        said.append(
            "Pack the folder with the bundler that comes with MPI-Sintel, and upload the result: "
            f"bundler {output / 'clean'} {output / 'final'} NAME.lzma"
        )
    return said


def _warning(benchmark: str, files: int, official: int) -> list[str]:
    if files == official:
        return []
    return [
        f"Warning: {benchmark} has {official} test pairs, but this data set has {files}; the "
        "server requires all of them."
    ]


def _verify(benchmark: str, root: Path, output: Path, passes: tuple[str, ...]) -> None:
    found = verify_submission(benchmark, root, output, passes=passes or None)
    if found.faults:
        raise FileError(
            f"{output}: is not ready for upload: {found.faults}; remove files that do not belong "
            "there, and run the command without --verify."
        )
    say(f"{count(found.good, 'file')} verified in {output}; there is no error.")
    for sentence in _warning(benchmark, found.good, found.official):
        say(sentence)

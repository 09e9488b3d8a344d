"""``hamflow view``: one file to look into results, for a browser."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import tyro
from numpy.typing import NDArray
from rich.console import Console

from hamflow.cli._console import count, progress_bar, say
from hamflow.cli._methods import PRESET_NAMES, ViewMemory, Window
from hamflow.cli._options import (
    OptionalFile,
    OutputFile,
    Overwrite,
    check_distinct,
    claimed,
    option,
    parse_auto_window,
)
from hamflow.cli._results import read_result
from hamflow.errors import InputError
from hamflow.estimator import Estimator
from hamflow.io import read_flow, read_image, split_flow_name
from hamflow.io._atomic import check_writable
from hamflow.pipeline.explain import Explanation
from hamflow.viewer.standalone import LIMIT, Shown, ShownResult, write_page

_INPUTS = tyro.conf.arg(
    metavar="INPUT ...",
    help="Images, in their order, and results (.npz) or other flow files of them, if there are.",
)
_PRESETS = option(
    "PRESET ...", f"How to estimate: one or several of {PRESET_NAMES}, or TOML files."
)


def view(
    inputs: Annotated[tyro.conf.Positional[tuple[Path, ...]], _INPUTS],
    output: OutputFile,
    *,
    preset: Annotated[tuple[str, ...], _PRESETS] = ("balanced",),
    window: Window = "auto",
    max_memory: ViewMemory = None,
    truth: OptionalFile = None,
    limit: Annotated[int, option("MB")] = LIMIT >> 20,
    overwrite: Overwrite = False,
) -> None:
    """Write a page to look into results: flow, confidence, and why each pixel has its match.

    For example:

        hamflow view frame1.png frame2.png -o page.html
        hamflow view frame1.png frame2.png a.npz b.flo -o page.html

    The page is one file that needs no server and no network. If all inputs are images, the flow of
    each image to the next is estimated, by each preset; only then does the page know the costs that
    explain a match. Otherwise the flow files are shown: several of one pair of images, or one for
    each image but the last. 16-bit PNG files of flow must end in .kitti.png.

    Parameters
    ----------
    output
        Where to write the page (.html).
    truth
        The true flow of the pair, in any flow format, to see the errors.
    limit
        Megabytes that the page has at most. What explains pixels is left out first, then backward
        flows; the page says what it lacks.
    """
    flows = [path for path in inputs if split_flow_name(path)[1] not in ("", ".png")]
    images = [path for path in inputs if path not in flows]
    _check(inputs, images, flows, truth)
    if output.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"--output must end in .html, but is {output}.")
    check_writable(output)
    read = {f"INPUT {number}": path for number, path in enumerate(inputs, 1)}
    check_distinct({**read, "--truth": truth}, {"--output": output})
    with claimed([output], overwrite):
        frames = [read_image(path) for path in images]
        true = None if truth is None else read_flow(truth)
        if flows:
            results = _read(flows, len(images), true)
        else:
            estimators = [
                (name, Estimator(name, window=parse_auto_window(window), max_memory=max_memory))
                for name in dict.fromkeys(preset)
            ]
            results = list(_estimated(frames, estimators, true))
        name = " → ".join(
            path.name for path in (images[:1] + images[-1:] if images[1:] else images or flows[:1])
        )
        notes = write_page(output, [Shown(name, frames, results)], limit=limit << 20)
    size = f"{output.stat().st_size / 2**20:.1f} MB"
    say(f"Wrote {output}: {count(len(results), 'result')}, {size}; open it in a browser.")
    for note in notes:
        say(note)


def _check(
    inputs: Sequence[Path], images: Sequence[Path], flows: Sequence[Path], truth: Path | None
) -> None:
    if not inputs:
        raise InputError("Name images, or flow files, to view.")
    if not flows and len(images) < 2:
        raise InputError(f"{images[0]}: name the second image, too, or a flow file.")
    if flows and len(images) > 2 and len(flows) != len(images) - 1:
        raise InputError(
            f"{len(images)} images need {len(images) - 1} flow files, one for each image but the "
            f"last, but {len(flows)} are named."
        )
    if truth is not None and len(images) > 2:
        raise InputError("--truth is the flow of one pair; name two images with it.")


def _read(flows: Sequence[Path], images: int, truth: NDArray[Any] | None) -> list[ShownResult]:
    """Read flow files: of one pair, or of one pair each."""
    if images > 2:
        return [ShownResult("saved", read_result(path), index) for index, path in enumerate(flows)]
    names = [path.name for path in flows]
    labels = names if len({*names}) == len(names) else [str(path) for path in flows]
    return [
        ShownResult(label, read_result(path), truth=truth)
        for label, path in zip(labels, flows, strict=True)
    ]


def _estimated(
    frames: Sequence[NDArray[Any]],
    estimators: Sequence[tuple[str, Estimator]],
    truth: NDArray[Any] | None,
) -> Iterator[ShownResult]:
    total = len(estimators) * (len(frames) - 1)
    done = 0
    with progress_bar(Console(stderr=True), counted=False) as show:
        for preset, estimator in estimators:
            label = Path(preset).stem if preset.endswith(".toml") else preset
            for index in range(len(frames) - 1):

                def told(stage: str, share: float, before: int = done) -> None:
                    show(stage, before + share, total)

                pair = frames[index], frames[index + 1]
                explanation: Explanation | None = None
                if estimator.max_memory is None:
                    result, explanation = estimator.explained(*pair, progress=told)
                else:
                    result = estimator.estimate(*pair, progress=told)
                yield ShownResult(label, result, index, truth, explanation)
                done += 1

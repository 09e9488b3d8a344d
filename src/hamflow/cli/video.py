"""``hamflow video``: the flow from each frame of a video to the next."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from hamflow.cli._console import continuing, count, progress_bar, say
from hamflow.cli._methods import USUAL_SEARCH, Preset, Search
from hamflow.cli._video_frames import FrameOptions
from hamflow.cli._video_outputs import MoreOutputs, Outputs, PictureOptions, Sink
from hamflow.cli._video_store import Store
from hamflow.errors import FileError, InputError
from hamflow.estimator import Estimator
from hamflow.io import read_image
from hamflow.io.video import VIDEO_SUFFIXES, Frames, StreamWriter, VideoWriter
from hamflow.sequence import VideoItem
from hamflow.sequence import video as flow_of_video

_MAX_REPORTED = 10  # broken frames, and cuts, that are named
_OUTPUT = tyro.conf.arg(
    aliases=["-o"],
    metavar="OUTPUT",
    help=f"The folder for the flow files; or a video of the flow ({', '.join(VIDEO_SUFFIXES)}); or "
    "- for a video on the standard output.",
)
_ALL_FRAMES = FrameOptions()
_NOTHING_ELSE = MoreOutputs()
_USUAL_PICTURES = PictureOptions()


@dataclass
class _Broken:
    """Takes frames that cannot be decoded: the first ones are named, or the first is the end."""

    skip: bool
    console: Console
    number: int = 0

    def __call__(self, error: FileError) -> None:
        if not self.skip:
            hint = "--on-broken skip leaves it out"
            raise FileError(f"{str(error).removesuffix('.')}; {hint}.") from error
        self.number += 1
        if self.number <= _MAX_REPORTED:
            self.console.print(f"Skipped: {error}", highlight=False)
        elif self.number == _MAX_REPORTED + 1:
            self.console.print("Skipped: more frames, which are only counted.", highlight=False)


@dataclass
class _Tally:
    """What a run has done so far."""

    broken: _Broken
    done: int = 0
    known: int = 0
    seconds: float = 0.0
    names: list[str] = field(default_factory=list)
    cuts: list[str] = field(default_factory=list)
    frames: int = 0
    # What ended the frames of a camera or a stream before their end.
    ended: BaseException | None = None


def video(
    source: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="IN")],
    output: Annotated[str | None, _OUTPUT] = None,
    *,
    preset: Preset = "balanced",
    overwrite: bool = False,
    more: tyro.conf.OmitArgPrefixes[MoreOutputs] = _NOTHING_ELSE,
    pictures: tyro.conf.OmitArgPrefixes[PictureOptions] = _USUAL_PICTURES,
    frames: tyro.conf.OmitArgPrefixes[FrameOptions] = _ALL_FRAMES,
    search: Search = USUAL_SEARCH,
) -> None:
    """Compute the flow from each frame of a video to the next.

    For example:

        hamflow video in.mp4 -o flows --video colors.mp4 --occlusion masks

        ffmpeg -i in.mp4 -f yuv4mpegpipe - | hamflow video - -o - | ffplay -

    IN is a video file, a folder of images, which are sorted by name, with numbers in numerical
    order, camera:0 for the first camera, or - for frames from the standard input: images one after
    another, YUV4MPEG2, or with --size raw rgb24 frames. All but folders need the extra 'video'.
    OUTPUT is a folder, which gets one flow file per pair, with the name of its first frame; or a
    video, which shows the flow.

    The same command continues an interrupted run; a folder with other settings or other files is
    refused; --overwrite starts again. A continued run computes files again that are missing or
    damaged, or whose frames have changed. The search for a pair normally starts from the pair
    before; the first pair of a continued run searches everywhere, so its flow may differ slightly.
    The log run.jsonl in each folder describes how its files were made. The pictures for an output
    video are kept in OUTPUT.parts until the video is complete. Frames from a camera or the standard
    input cannot be continued: Ctrl-C ends them, and completes what is written.

    Parameters
    ----------
    source
        The video file, the folder of images, camera:N, or - for the standard input.
    overwrite
        Start again: replace existing videos, and the files of an earlier run.
    """
    outputs = Outputs(output, more, pictures)
    estimator = search.estimator(preset)
    outputs.check(source, estimator.config, preset, overwrite)
    opened = frames.open(source)  # last, because a camera or a stream begins with it
    rate = frames.rate(opened)
    again = f"; finished work is kept for {outputs.main}, and {continuing(overwrite)}"
    with Store(outputs, opened, estimator, frames.every, overwrite=overwrite) as store:
        tally = _run(
            estimator,
            opened,
            frames,
            outputs,
            store,
            rate=rate,
            again="" if outputs.piped else again,
        )
        for sink in outputs.sinks:
            if sink.film is not None:
                _encode(sink, sink.film, tally.names, rate)
                store.remove(sink)
    said = store.scale.said() if outputs.shown else ""
    say(_summary(tally, outputs, said, opened, frames.stop), stderr=outputs.piped)
    if isinstance(tally.ended, FileError):
        raise tally.ended


def _run(
    estimator: Estimator,
    frames: Frames,
    choice: FrameOptions,
    outputs: Outputs,
    store: Store,
    *,
    rate: Fraction,
    again: str,
) -> _Tally:
    """Compute all pairs whose files are not complete yet."""
    console = Console(stderr=True, soft_wrap=True, markup=False)
    tally = _Tally(_Broken(choice.on_broken == "skip", console))
    used = choice.count(frames)
    total = None if used is None else max(0, used - 1)
    reader = frames.read(choice.start - 1, choice.stop, choice.every)
    try:
        with ExitStack() as stack:
            stack.enter_context(reader)
            show = stack.enter_context(progress_bar(console))
            stream: StreamWriter | None = None
            began = time.perf_counter()
            for item in flow_of_video(
                reader, estimator, known=store.known, broken=tally.broken, size=store.size
            ):
                if isinstance(item, VideoItem):
                    length = store.add(item)
                    if outputs.piped:
                        stream = stream or stack.enter_context(outputs.stream(rate))
                        stream.add(outputs.picture(item, length))
                    tally.done += 1
                    tally.seconds += time.perf_counter() - began
                    cut = item.cut
                else:
                    tally.known += 1
                    cut = store.skip(item.name)
                tally.names.append(item.name)
                if cut:
                    tally.cuts.append(item.name)
                began = time.perf_counter()
                show(item.name, tally.done, None if total is None else total - tally.known)
                del item  # otherwise it takes memory while the next one is computed
    except (KeyboardInterrupt, FileError) as error:
        if not (frames.live and tally.names):
            if isinstance(error, KeyboardInterrupt):
                said = f"Stopped early after {count(tally.done, 'pair')}{again}."
                say(said, stderr=outputs.piped)
            raise
        tally.ended = error
    tally.frames = reader.index
    if not tally.names:
        raise InputError(
            f"{frames.name} has no two intact frames that follow each other; a flow needs two."
        )
    return tally


def _encode(sink: Sink, film: Path, names: list[str], rate: Fraction) -> None:
    """Make a video of the pictures in a folder."""
    with progress_bar(Console(stderr=True)) as show, VideoWriter(film, rate) as writer:
        for number, name in enumerate(names):
            show(f"encoding {film.name}", number, len(names))
            writer.add(read_image(sink.path(name)))


def _summary(tally: _Tally, outputs: Outputs, scale: str, frames: Frames, stop: int | None) -> str:
    said = [f"{count(tally.done, 'pair')} done"]
    if tally.known:
        said.append(f"{tally.known} done before")
    if tally.broken.number:
        said.append(f"{count(tally.broken.number, 'frame')} skipped")
    if tally.done:
        said.append(f"{tally.seconds / tally.done:.2f} s per pair")
    sentence = f"{', '.join(said)}: {outputs.all}"
    if scale:
        sentence += f"; {scale}"
    if tally.cuts:
        named = ", ".join(tally.cuts[:_MAX_REPORTED])
        more = ", ..." if len(tally.cuts) > _MAX_REPORTED else ""
        sentence += f"; {count(len(tally.cuts), 'cut')} (after {named}{more})"
    if isinstance(tally.ended, KeyboardInterrupt):
        sentence += f"; ended by Ctrl-C, and {frames.name} cannot be continued"
    short = frames.count is not None and tally.frames < frames.count
    if short and stop is None and not Path(frames.name).is_dir():
        # FFmpeg reports no error where a truncated file ends.
        sentence += f"; {frames.name} claims {frames.count} frames, but has {tally.frames}"
    return f"{sentence}."

"""From files to sources: what was given on the command line, and what a browser uploaded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hamflow._types import Flow
from hamflow.errors import FileError, InputError, missing_file
from hamflow.io import READABLE_SUFFIXES, read_flow, split_flow_name
from hamflow.io._frames import IMAGE_SUFFIXES, Folder, natural_key
from hamflow.io.images import announced_size, read_image
from hamflow.io.video import open_frames
from hamflow.viewer.kept_result import load_saved
from hamflow.viewer.limits import Limits
from hamflow.viewer.refusals import Refusal
from hamflow.viewer.source import Source, check_pixels, refused_files, write_frame

_RESULT = ".npz"
_PAIR = ("frame1.png", "frame2.png")  # as in a folder of `hamflow.datasets`
_TRUTHS = ("flow.flo", "flow.kitti.png", "flow.png")
_ZIP_START = b"PK\x03\x04"
_LONGEST_NAME = 100


@dataclass
class Opened:
    """A source, and the results that came with it.

    Attributes
    ----------
    source : Source
        The frames.
    results : dict of int to Path
        Files of saved results, by the number of the first frame.
    decode : callable, or None
        Reads the frames of a video one after the other, which takes a while.
    """

    source: Source
    results: dict[int, Path] = field(default_factory=dict)
    decode: Callable[[], None] | None = None


def open_given(
    paths: Sequence[Path],
    truth: Path | None,
    new_folder: Callable[[], Path],
    limits: Limits,
) -> list[Opened]:
    """Open what was given on the command line; all browsers see it.

    Parameters
    ----------
    paths : sequence of Path
        Images in their order, folders of images or of results, videos, saved results.
    truth : Path, optional
        The true flow of the first pair, or a folder of such files in the order of the pairs.
    new_folder : callable
        Makes a folder for the frames of a video.
    limits : Limits
        How many frames are kept.
    """
    images = [path for path in paths if _is_image(path)]
    opened: list[Opened] = []
    if images:
        opened.append(_of_images(images, [path.stem for path in images]))
    for path in paths:
        if path.is_dir():
            opened += _of_folder(path, opened)
        elif path in images:
            continue
        elif not path.exists():
            raise missing_file(path)
        elif path.suffix.lower() == _RESULT:
            _add_results([path], opened)
        else:
            opened.append(_of_video(path, path.name, new_folder(), limits, limits.store_bytes // 2))
    for found in opened:
        found.source.shared = True
    if truth is not None:
        _add_truth(truth, opened)
    return opened


def open_uploaded(
    files: Sequence[tuple[str, Path]],
    truth: tuple[str, Path] | None,
    folder: Path,
    limits: Limits,
    room: int,
) -> Opened:
    """Open what a browser sent: images in their order, one video, or one saved result.

    Parameters
    ----------
    files : sequence of (str, Path)
        What the browser calls each file, and where it is.
    truth : (str, Path), optional
        The true flow of the first pair.
    folder : Path
        Where the files are, and where the frames of a video are kept; removed with the source.
    limits : Limits
        How large the images may be.
    room : int
        Bytes that the frames of a video may take.
    """
    names = {path: cleaned(name) for name, path in files}
    results = [path for _, path in files if _begins(path, _ZIP_START)]
    others = [path for _, path in files if path not in results]
    if len(results) > 1:
        raise Refusal(422, "Only one saved result can be uploaded at a time; upload one .npz file.")
    with refused_files(names):
        if not others and not results:
            raise Refusal(422, "The upload has no files; choose two images, a video or a result.")
        if len(others) == 1 and not _decodable(others[0]):
            if results:
                raise Refusal(422, "A result can be uploaded alone or with its images.")
            opened = _of_uploaded_video(others[0], names[others[0]], folder, limits, room)
        elif others:
            for path in others:
                check_pixels(path, names[path], limits.pixels)
            opened = _of_images(others, [names[path] for path in others])
            _check_images(opened.source)
        else:
            opened = Opened(Source("result", names[results[0]]))
        if results:
            _check_result(results[0], opened)
    opened.source.folder = folder
    if truth is not None:
        with refused_files({truth[1]: cleaned(truth[0])}):
            _check_flow("truth", read_flow(truth[1]), opened.source)
        opened.source.truths[0] = truth[1]
    return opened


def cleaned(name: str) -> str:
    """Return the name of an uploaded file: no folders, nothing that cannot be printed, not long."""
    last = name.replace("\\", "/").rsplit("/", 1)[-1]
    shown = "".join(letter for letter in last if letter.isprintable()).strip()
    return shown[-_LONGEST_NAME:] or "unnamed"


def truth_suffix(name: str) -> str:
    """Return the suffix of a flow file that is uploaded, which decides its format."""
    suffix = split_flow_name(cleaned(name))[1]
    if not suffix:
        raise Refusal(
            415,
            f"{cleaned(name)}: is no flow file by its name; the truth must end in one of "
            f"{', '.join(READABLE_SUFFIXES)}.",
        )
    return suffix


def _is_image(path: Path) -> bool:
    return path.suffix.lower() in IMAGE_SUFFIXES and not path.is_dir()


def _begins(path: Path, start: bytes) -> bool:
    with path.open("rb") as file:
        return file.read(len(start)) == start


def _decodable(path: Path) -> bool:
    try:
        announced_size(path)
    except FileError:
        return False
    return True


def _of_images(paths: Sequence[Path], names: Sequence[str]) -> Opened:
    if len(paths) < 2:
        raise InputError(f"{names[0]}: is one image, but a flow needs two; give the next one, too.")
    height, width = read_image(paths[0]).shape[:2]
    name = f"{names[0]}, {names[1]}" if len(paths) == 2 else f"{names[0]} … {names[-1]}"
    return Opened(
        Source(
            "pair" if len(paths) == 2 else "sequence",
            name,
            frames=list(paths),
            names=list(names),
            size=(width, height),
        )
    )


def _of_folder(folder: Path, before: list[Opened]) -> list[Opened]:
    """Open a folder of images or of results; results belong to the frames given before."""
    try:
        listed = sorted(folder.iterdir(), key=lambda path: natural_key(path.name))
    except OSError as error:
        raise FileError(f"{folder}: cannot be listed ({error.strerror}); check it.") from error
    results = [path for path in listed if path.suffix.lower() == _RESULT]
    if all((folder / name).is_file() for name in _PAIR):
        frames = [folder / name for name in _PAIR]
        opened = _of_images(frames, [path.stem for path in frames])
        opened.source.name = folder.name
        truth = next((folder / name for name in _TRUTHS if (folder / name).is_file()), None)
        if truth is not None:
            opened.source.truths[0] = truth
        return [opened]
    if results and not any(_is_image(path) for path in listed):
        _add_results(results, before)
        return []
    frames = [Path(path) for path in Folder(folder).paths()]
    opened = _of_images(frames, [path.stem for path in frames])
    opened.source.name = folder.resolve().name
    _add_results(results, [opened])
    return [opened]


def _of_uploaded_video(path: Path, name: str, folder: Path, limits: Limits, room: int) -> Opened:
    try:
        opened = _of_video(path, name, folder, limits, room)
    except FileError as error:
        if "is not a video" not in str(error):
            raise
        raise Refusal(
            415, f"{name}: is no image, video or saved result that Hamflow reads, or is damaged."
        ) from error
    assert opened.decode is not None
    opened.decode()
    return opened


def _of_video(path: Path, name: str, folder: Path, limits: Limits, room: int) -> Opened:
    frames = open_frames(path)
    source = Source("sequence", name, folder=folder, loading=True)

    def decode() -> None:
        times: list[float | None] = []
        left = room
        try:
            for frame in frames:
                if len(source.frames) == limits.frames:
                    source.note = f"Only the first {limits.frames} frames are shown."
                    break
                left -= frame.image.nbytes
                if left < 0:
                    source.note = f"Only the first {len(source.frames)} frames fit on the disk."
                    break
                height, width = frame.image.shape[:2]
                check_pixels(path, name, limits.pixels, (width, height))
                if source.size not in ((0, 0), (width, height)):
                    source.note = f"Frame {frame.position} has another size; the video ends there."
                    break
                source.size = (width, height)
                times.append(frame.time)
                source.names.append(frame.name)
                source.frames.append(write_frame(folder, frame.position, frame.image))
        except (FileError, Refusal) as error:
            if not source.shared and len(source.frames) < 2:
                raise
            source.note = str(error).replace(str(path), name)
        finally:
            if all(time is not None for time in times):
                source.times = [time for time in times if time is not None]
            source.loading = False
        if len(source.frames) < 2 and not source.shared:
            raise Refusal(415, f"{name}: has fewer than two frames; a flow needs two.")

    return Opened(source, decode=decode)


def _add_results(paths: Sequence[Path], opened: list[Opened]) -> None:
    """Add saved results to the frames that they are of, or as sources of their own."""
    for path in paths:
        for found in opened:
            names = found.source.names
            if path.stem in names[:-1] or (len(paths) == 1 and len(names) == 2):
                found.results[names.index(path.stem) if path.stem in names[:-1] else 0] = path
                break
        else:
            opened.append(Opened(Source("result", path.name), {0: path}))


def _add_truth(truth: Path, opened: list[Opened]) -> None:
    """Add the true flow to the first frames that were given."""
    first = next((found.source for found in opened if found.source.kind != "result"), None)
    if first is None:
        raise InputError("--truth needs images that it is the flow of; give two, too.")
    files = [truth]
    if truth.is_dir():
        listed = (path for path in truth.iterdir() if split_flow_name(path)[1])
        files = sorted(listed, key=lambda path: natural_key(path.name))
    if not files or not truth.exists():
        raise missing_file(truth, "give a flow file, or a folder of them.")
    for index, path in enumerate(files):
        first.truths[index] = path
    if not first.loading:
        _check_flow("truth", read_flow(files[0]), first)


def _check_images(source: Source) -> None:
    """Decode all images of an upload: all must be images of one size."""
    for path, name in zip(source.frames, source.names, strict=True):
        height, width = read_image(path).shape[:2]
        if (width, height) != source.size:
            raise Refusal(
                422,
                f"{name}: has {width}×{height} pixels, but the first image has "
                f"{source.size[0]}×{source.size[1]}; give all images one size.",
            )


def _check_flow(what: str, flow: Flow, source: Source) -> None:
    height, width = flow.shape[:2]
    if (width, height) != source.size:
        raise Refusal(
            422,
            f"The {what} has {width}×{height} vectors, but the images have "
            f"{source.size[0]}×{source.size[1]} pixels; give the flow of these images.",
        )


def _check_result(path: Path, opened: Opened) -> None:
    flow = load_saved(path).flow
    if opened.source.kind == "result":
        opened.source.size = (flow.shape[1], flow.shape[0])
    _check_flow("result", flow, opened.source)
    opened.results[0] = path

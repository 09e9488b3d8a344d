"""What the tests of videos share."""

from __future__ import annotations

from pathlib import Path

import av
import numpy as np
from numpy.typing import NDArray

import hamflow
from hamflow.io.video import FrameReader

Image = NDArray[np.uint8]


def moving(count: int, height: int = 48, width: int = 64, step: int = 2) -> list[Image]:
    """Frames of a texture that moves to the right."""
    small = np.random.default_rng(0).integers(40, 216, (height // 4 + 1, width // 4 + 1, 3))
    texture = np.kron(small, np.ones((4, 4, 1))).astype(np.uint8)[:height, :width]
    return [np.ascontiguousarray(np.roll(texture, step * k, axis=1)) for k in range(count)]


def write_folder(folder: Path, frames: list[Image], name: str = "im{}.png") -> Path:
    folder.mkdir(parents=True)
    for number, frame in enumerate(frames, 1):
        hamflow.write_image(folder / name.format(number), frame)
    return folder


def write_video(
    path: Path, frames: list[Image], codec: str = "mpeg4", pixels: str = "yuv420p"
) -> Path:
    """Write by PyAV alone, so that the reader is not tested by the writer."""
    with av.open(str(path), "w") as container:
        options = {"qmin": "2", "qmax": "2"} if codec == "mpeg4" else {"crf": "5"}
        stream = container.add_stream(codec, rate=30, options=options)
        stream.height, stream.width = frames[0].shape[:2]
        stream.pix_fmt = pixels
        for frame in frames:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
        container.mux(stream.encode(None))
    return path


def damage_packet(path: Path, number: int) -> None:
    """Make a packet of a video undecodable, without a trace in the container."""
    with av.open(str(path)) as container:
        packets = [p for p in container.demux(video=0) if p.size]
        place, size = packets[number].pos, packets[number].size
    content = bytearray(path.read_bytes())
    content[place : place + size] = b"\xff" * size
    path.write_bytes(content)


def all_of(reader: FrameReader) -> list[str]:
    """Return the names of all frames, or what is wrong with them."""
    found = []
    while True:
        try:
            found.append(next(reader).name)
        except StopIteration:
            return found
        except hamflow.FileError as error:
            found.append(str(error))

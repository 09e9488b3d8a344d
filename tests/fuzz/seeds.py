"""Small good files of every format, from which a fuzzer starts. They are made, not stored."""

from __future__ import annotations

import io
import json
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import hamflow
from _evaluations import errors_of, evaluation, write_log
from _networks import COARSE, SMALL, random_weights
from hamflow import FlowResult, Window
from hamflow.descriptors.weights import save_weights
from hamflow.io._png16 import write_png16

RNG = np.random.default_rng(0)
FLOW = np.round(RNG.normal(0, 3, (5, 6, 2)), 1).astype(np.float32)
PICTURE = RNG.integers(0, 256, (7, 9, 3), np.uint8)


def flow_files(suffix: str) -> Iterator[bytes]:
    unknown = FLOW.copy()
    unknown[1, 2] = np.nan
    for flow in (FLOW, unknown, FLOW[:1, :1]):
        yield _written(f"a{suffix}", lambda path, flow=flow: hamflow.write_flow(path, flow))


def flo5_files() -> Iterator[bytes]:
    import h5py  # noqa: PLC0415  (only these need it)

    for libver in (None, ("v108", "v108"), "latest"):
        for options in (
            {},
            {"compression": "gzip", "chunks": (3, 4, 2)},
            {"compression": "gzip", "shuffle": True, "fletcher32": True, "chunks": (5, 6, 1)},
        ):
            buffer = io.BytesIO()
            with h5py.File(buffer, "w", libver=libver) as file:
                file.create_dataset("flow", data=FLOW, **options)
            yield buffer.getvalue()


def numpy_files() -> Iterator[bytes]:
    yield from flow_files(".npy")
    for array in (FLOW.astype(">f8"), np.asfortranarray(FLOW).astype("f2")):
        buffer = io.BytesIO()
        np.save(buffer, array)
        yield buffer.getvalue()


def result_files() -> Iterator[bytes]:
    shape = FLOW.shape[:2]
    result = FlowResult(
        flow=FLOW,
        backward=-FLOW,
        occlusion=np.zeros(shape, np.bool_),
        confidence=np.ones(shape, np.float32),
        energy=2.0,
        bound=1.0,
        gap=1.0,
        window=Window(-4, 8, -4, 8),
        scale=1,
        history=(),
        timings={"matching": 0.1},
    )
    yield _written("a.npz", result.save)


def image_files() -> Iterator[bytes]:
    picture = Image.fromarray(PICTURE)
    exif = Image.Exif()
    exif[0x0112] = 6
    for kind, options in (
        ("PNG", {}),
        ("PNG", {"exif": exif}),
        ("JPEG", {"exif": exif}),
        ("JPEG", {"progressive": True}),
        ("BMP", {}),
        ("PPM", {}),
        ("TIFF", {}),
        ("TIFF", {"compression": "tiff_lzw"}),
        ("WEBP", {"lossless": True}),
        ("WEBP", {}),
    ):
        buffer = io.BytesIO()
        picture.save(buffer, kind, **options)
        yield buffer.getvalue()
    for mode in ("1", "L", "LA", "P", "RGBA", "I;16"):
        buffer = io.BytesIO()
        small = picture.convert("L") if mode == "I;16" else picture
        small.convert(mode).save(buffer, "PNG")
        yield buffer.getvalue()
    yield from png16_files()


def tiff_flow_files() -> Iterator[bytes]:
    for options in ({"tile": (16, 16)}, {"compression": "zlib"}, {"bigtiff": True}):
        yield _tiff(FLOW, planarconfig="contig", photometric="minisblack", **options)


def part_files() -> Iterator[bytes]:
    for options in (
        {"tile": (16, 16)},
        {"tile": (16, 16), "compression": "zlib", "predictor": True},
        {"rowsperstrip": 2, "byteorder": ">"},
    ):
        yield _tiff(PICTURE, photometric="rgb", **options)
    yield _tiff(PICTURE[..., 0].astype(np.uint16) * 257, compression="zlib")


def array_files() -> Iterator[bytes]:
    for array in (PICTURE, PICTURE[..., 0].astype(">u2") * 257, PICTURE / np.float32(255)):
        buffer = io.BytesIO()
        np.save(buffer, array)
        yield buffer.getvalue()


def _tiff(array: Any, **options: Any) -> bytes:
    import tifffile  # noqa: PLC0415  (an extra)

    buffer = io.BytesIO()
    tifffile.imwrite(buffer, array, **options)
    return buffer.getvalue()


def png16_files() -> Iterator[bytes]:
    buffer = io.BytesIO()
    write_png16(buffer, PICTURE.astype(np.uint16) * 257)
    yield buffer.getvalue()


def video_files() -> Iterator[bytes]:
    import av  # noqa: PLC0415  (an extra)

    for suffix, codec in ((".avi", "mpeg4"), (".mp4", "mpeg4"), (".mkv", "ffv1"), (".gif", "gif")):

        def write(path: Path, codec: str = codec) -> None:
            with av.open(path, "w") as container:
                stream = container.add_stream(codec, rate=10)
                stream.width, stream.height = 16, 16
                stream.pix_fmt = "rgb8" if codec == "gif" else "yuv420p"
                for value in (0, 90, 200):
                    frame = av.VideoFrame.from_ndarray(np.full((16, 16, 3), value, np.uint8))
                    container.mux(stream.encode(frame))
                container.mux(stream.encode(None))

        yield _written(f"a{suffix}", write)


def stream_files() -> Iterator[bytes]:
    yield b"YUV4MPEG2 W4 H2 F25:1 Ip C420jpeg\n" + (b"FRAME\n" + bytes(range(12))) * 3
    pictures = list(image_files())
    yield pictures[0] * 2
    yield next(data for data in pictures if data.startswith(b"P6")) * 2


def settings_files() -> Iterator[bytes]:
    yield b'preset = "fast"\nlevels = 3\n[matcher]\ntau2 = 80.0\n[completion]\nmethod = "none"\n'
    yield b'model = "pairs"\nscale = 2\n[refinement]\nmethod = "variational"\nwarps = 2\n'
    yield b"outer = 3\ninner = 4\ntau1 = 1.5\nrounding = 'argmin'\n"
    yield b"steps = 10\nwindow = 16\n[data]\ncrop = [64, 64]\n[network]\nlayers = 3\nchannels = 8\n"


def network_files() -> Iterator[bytes]:
    # Of a few channels; the coarse ones, too, have kilobytes.
    for architecture in (SMALL["paper"], SMALL["context"], COARSE):
        weights = random_weights(architecture)
        yield _written(
            "a.safetensors",
            lambda path, one=architecture, of=weights: save_weights(path, one, of),
        )


def table_files() -> Iterator[bytes]:
    yield b'name,image0,image1\na,1.png,2.png\nb,"2,.png",3.png\n'
    yield b"\xef\xbb\xbfimage0,image1\r\n1.png,2.png\r\n"


def parquet_files() -> Iterator[bytes]:
    import pyarrow as pa  # noqa: PLC0415  (an extra)
    import pyarrow.parquet as pq  # noqa: PLC0415

    columns = {"image0": ["1.png", "2.png"], "image1": ["2.png", None], "name": ["a", "b"]}
    for compression in ("NONE", "GZIP"):
        buffer = io.BytesIO()
        pq.write_table(pa.table(columns), buffer, compression=compression)
        yield buffer.getvalue()


def points_files() -> Iterator[bytes]:
    yield b"x,y\n1,2\n3.5,4e0\n"
    yield b"\xef\xbb\xbfid, x, y\r\n0, 1.5, 2\r\n"


def curve_files() -> Iterator[bytes]:
    from hamflow.learning.log import COLUMNS  # noqa: PLC0415  (needs torch)

    yield ",".join(COLUMNS).encode() + b"\n" + b",".join([b"1"] * len(COLUMNS)) + b"\n"


def checkpoint_files() -> Iterator[bytes]:
    import torch  # noqa: PLC0415  (an extra)

    from hamflow.learning.checkpoint import save_checkpoint  # noqa: PLC0415
    from hamflow.learning.config import TrainConfig  # noqa: PLC0415
    from hamflow.learning.network import build_network  # noqa: PLC0415
    from hamflow.learning.state import TrainingState  # noqa: PLC0415

    network = build_network(SMALL["paper"])
    optimizer = torch.optim.Adam(network.parameters())
    state = TrainingState(step=3, seconds=1.5)
    yield _written(
        "a.safetensors",
        lambda path: save_checkpoint(path, TrainConfig(), state, network, optimizer),
    )


def evaluation_files() -> Iterator[bytes]:
    for errors in (errors_of("a", 1.0, 2.0, None), errors_of("b", 0.5)):
        found = evaluation("method", errors, dataset="sintel")
        yield _written("a.jsonl", lambda path, found=found: write_log(path, found))


def log_files() -> Iterator[bytes]:
    lines: list[dict[str, Any]] = [
        {"work": "evaluation", "settings": {"method": "hamflow", "preset": {"levels": 2}}},
        {"key": "a", "source": "0" * 64, "files": {"a.flo": {"bytes": 3, "modified": 5}}},
        {"key": "b"},
    ]
    yield b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def _written(name: str, write: Callable[[Path], object]) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        write(path)
        return path.read_bytes()

"""A network at work: onnxruntime's sessions, which forked processes cannot inherit."""

from __future__ import annotations

import os
import weakref
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hamflow._runtime import get_num_threads
from hamflow.descriptors.graph import IMAGE, PHI
from hamflow.errors import FileError


class Runner:
    """Computes one ONNX graph by onnxruntime, whose session is opened at the first image.

    Several threads may use it at once.

    Parameters
    ----------
    name : str
        What error messages call the network.
    data : bytes
        The graph, as the content of an ONNX file.
    threads : int or None
        How many threads to use; None for as many as `get_num_threads` says each time.
    """

    def __init__(self, name: str, data: bytes, threads: int | None) -> None:
        self.name = name
        self._data = data
        self._threads = threads
        self._session: tuple[int, Any] = (0, None)  # replaced as one, whatever other threads do
        _RUNNERS.add(self)

    def run(self, x: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the descriptors, 1×H×W×m, of an image, 1×3×H×W."""
        threads = self._threads or get_num_threads()
        opened, session = self._session
        if session is None or opened != threads:
            session = _open_session(self.name, self._data, threads)
            self._session = (threads, session)
        try:
            phi: NDArray[np.float32] = session.run([PHI], {IMAGE: x})[0]
        except Exception as error:  # onnxruntime has no base class for its own
            if "alloc" not in str(error):
                raise
            raise MemoryError(f"for a tile of {x.shape[3]}×{x.shape[2]} pixels") from error
        return phi

    def release(self) -> None:
        """Close the session, with the memory that it keeps for the next image."""
        self._session = (0, None)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_session": (0, None)}  # sessions cannot be pickled

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        _RUNNERS.add(self)


_RUNNERS: weakref.WeakSet[Runner] = weakref.WeakSet()
_INHERITED: list[Any] = []


def _after_fork() -> None:
    # A forked process has none of its parent's threads. A session cannot be used without them, and
    # must not even be ended, which would wait for them for ever.
    for runner in _RUNNERS:
        _INHERITED.append(runner._session)
        runner.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _open_session(name: str, data: bytes, threads: int) -> Any:
    import onnxruntime  # noqa: PLC0415  (heavy)

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # errors
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    # Planning for one size of tile saves no time here and doubles the memory for two sizes. The
    # arena stays: without it, a third of the time goes into getting fresh pages.
    options.enable_mem_pattern = False
    # Between two layers nothing is gained by idle threads that take cores from other programs.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        reason = str(error).splitlines()[0]
        raise FileError(
            f"{name}: cannot be run by onnxruntime {onnxruntime.__version__} ({reason}); install "
            "another version of onnxruntime."
        ) from error

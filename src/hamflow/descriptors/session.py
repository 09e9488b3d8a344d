"""Sessions of onnxruntime, which forked processes cannot inherit."""

from __future__ import annotations

import os
import weakref
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hamflow._runtime import get_num_threads
from hamflow.descriptors.graph import IMAGE, PHI
from hamflow.errors import FileError, InputError


class Runner:
    """Runs one ONNX file, given as its content, by a session that is opened at the first image.

    Several threads may use it at once. If `threads` is None, `get_num_threads` decides each time.
    `result` names what is computed.
    """

    def __init__(self, name: str, data: bytes, threads: int | None, result: str = PHI) -> None:
        self.name = name
        self._result = result
        self._data = data
        self._threads = threads
        # Threads and session; one object, because another thread may replace it.
        self._session: tuple[int, Any] = (0, None)
        _RUNNERS.add(self)

    def run(self, x: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the result, which is 1×H×W×m for descriptors, of an image, 1×3×H×W."""
        threads = self._threads or get_num_threads()
        opened, session = self._session
        if session is None or opened != threads:
            session = _open_session(self.name, self._data, threads)
            self._session = (threads, session)
        try:
            phi: NDArray[np.float32] = session.run([self._result], {IMAGE: x})[0]
        except Exception as error:  # onnxruntime has no base class for its own
            if "alloc" not in str(error):
                raise
            raise MemoryError(f"for a tile of {x.shape[3]}×{x.shape[2]} pixels") from error
        return phi

    def release(self) -> None:
        """Close the session and free its memory."""
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
    # must not even be closed, because that would wait for them forever.
    for runner in _RUNNERS:
        _INHERITED.append(runner._session)
        runner.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _open_session(name: str, data: bytes, threads: int) -> Any:
    try:
        import onnxruntime  # noqa: PLC0415  (heavy)
    except ImportError as error:
        raise InputError(
            f"{name}: a network in floating point needs onnxruntime; install it with: "
            "pip install 'hamflow[float]'."
        ) from error

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # errors
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    # Memory patterns save no time here and double the memory for two sizes of tiles. The arena
    # stays: without it, a third of the time goes into allocation.
    options.enable_mem_pattern = False
    # Idle threads that spin between two layers gain nothing and take cores from other programs.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        reason = str(error).splitlines()[0]
        raise FileError(
            f"{name}: cannot be run by onnxruntime {onnxruntime.__version__} ({reason}); install "
            "another version of onnxruntime."
        ) from error

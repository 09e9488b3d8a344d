"""The compiled kernels; use them through hamflow.matching."""

from typing import Annotated, overload

import numpy
from numpy.typing import NDArray


def levels() -> list[str]:
    """Instruction-set levels that this machine can run, worst first."""

def level() -> str:
    """The level in use."""

def force_level(name: str | None) -> bool:
    """Use this level (None: the best); False if it cannot be."""

def set_num_threads(n: int) -> None: ...

def get_num_threads() -> int: ...

def min_projection(bits0: Annotated[NDArray[numpy.uint64], dict(shape=(None, None), order='C', device='cpu', writable=False)], bits1: Annotated[NDArray[numpy.uint64], dict(shape=(None, None), order='C', device='cpu', writable=False)], window: tuple[int, int, int, int], outside: int, cu: Annotated[NDArray[numpy.uint8], dict(shape=(None, None, None), order='C', device='cpu')], cv: Annotated[NDArray[numpy.uint8], dict(shape=(None, None, None), order='C', device='cpu')], v_hat: Annotated[NDArray[numpy.int16], dict(shape=(None, None, None), order='C', device='cpu')] | None, u_hat: Annotated[NDArray[numpy.int16], dict(shape=(None, None, None), order='C', device='cpu')] | None) -> None: ...

def message16(bits0: Annotated[NDArray[numpy.uint64], dict(shape=(None, None), order='C', device='cpu', writable=False)], bits1: Annotated[NDArray[numpy.uint64], dict(shape=(None, None), order='C', device='cpu', writable=False)], window: tuple[int, int, int, int], to: str, cost: tuple[int, int, int], lam: Annotated[NDArray[numpy.int16], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.int16], dict(shape=(None, None, None), order='C', device='cpu')]) -> None: ...

def message32(bits0: Annotated[NDArray[numpy.uint64], dict(shape=(None, None), order='C', device='cpu', writable=False)], bits1: Annotated[NDArray[numpy.uint64], dict(shape=(None, None), order='C', device='cpu', writable=False)], window: tuple[int, int, int, int], to: str, cost: tuple[float, float, float], lam: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu')]) -> None: ...

def float_min_projection(phi0: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], phi1: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], window: tuple[int, int, int, int], outside: float, cu: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu')], cv: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu')], v_hat: Annotated[NDArray[numpy.int16], dict(shape=(None, None, None), order='C', device='cpu')] | None, u_hat: Annotated[NDArray[numpy.int16], dict(shape=(None, None, None), order='C', device='cpu')] | None) -> None: ...

def float_message(phi0: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], phi1: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], window: tuple[int, int, int, int], to: str, outside: float, lam: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu')]) -> None: ...

def gather(phi0: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], phi1: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], window: tuple[int, int, int, int], outside: float, v_hat: Annotated[NDArray[numpy.int16], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], u_hat: Annotated[NDArray[numpy.int16], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], cu: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu')], cv: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu')]) -> None: ...

def scatter(phi0: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], phi1: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], window: tuple[int, int, int, int], v_hat: Annotated[NDArray[numpy.int16], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], u_hat: Annotated[NDArray[numpy.int16], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], grad_cu: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], grad_cv: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], grad_phi0: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu')], grad_phi1: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu')]) -> None: ...

@overload
def chain_pass(lam: Annotated[NDArray[numpy.int16], dict(shape=(None, None, None), order='C', device='cpu')], hold: Annotated[NDArray[numpy.int16], dict(shape=(None, None, None), order='C', device='cpu')], s: Annotated[NDArray[numpy.int16], dict(shape=(None, None, None), order='C', device='cpu')] | None, edges: Annotated[NDArray[numpy.int16], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], shares: Annotated[NDArray[numpy.uint16], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, vertical: bool, reverse: bool, reach: int) -> int: ...

@overload
def chain_pass(lam: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu')], hold: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu')], s: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu')] | None, edges: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], shares: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, vertical: bool, reverse: bool, reach: int) -> float: ...

@overload
def relabel(bits0: Annotated[NDArray[numpy.uint64], dict(shape=(None, None), order='C', device='cpu', writable=False)], bits1: Annotated[NDArray[numpy.uint64], dict(shape=(None, None), order='C', device='cpu', writable=False)], window: tuple[int, int, int, int], cost: tuple[int, int, int], right: Annotated[NDArray[numpy.int16], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], down: Annotated[NDArray[numpy.int16], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], reach: int, blocks: str, v: Annotated[NDArray[numpy.int16], dict(shape=(None, None), order='C', device='cpu', writable=False)], u: Annotated[NDArray[numpy.int16], dict(shape=(None, None), order='C', device='cpu')]) -> None: ...

@overload
def relabel(bits0: Annotated[NDArray[numpy.uint64], dict(shape=(None, None), order='C', device='cpu', writable=False)], bits1: Annotated[NDArray[numpy.uint64], dict(shape=(None, None), order='C', device='cpu', writable=False)], window: tuple[int, int, int, int], cost: tuple[float, float, float], right: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], down: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], reach: int, blocks: str, v: Annotated[NDArray[numpy.int16], dict(shape=(None, None), order='C', device='cpu', writable=False)], u: Annotated[NDArray[numpy.int16], dict(shape=(None, None), order='C', device='cpu')]) -> None: ...

def relabel_phi(phi0: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], phi1: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], window: tuple[int, int, int, int], cost: tuple[float, float], right: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], down: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], reach: int, blocks: str, v: Annotated[NDArray[numpy.int16], dict(shape=(None, None), order='C', device='cpu', writable=False)], u: Annotated[NDArray[numpy.int16], dict(shape=(None, None), order='C', device='cpu')]) -> None: ...

def fuse(right: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], down: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], rho: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], blocks: str, u: Annotated[NDArray[numpy.int16], dict(shape=(None, None), order='C', device='cpu')], v: Annotated[NDArray[numpy.int16], dict(shape=(None, None), order='C', device='cpu')], data: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], other_u: Annotated[NDArray[numpy.int16], dict(shape=(None, None), order='C', device='cpu', writable=False)], other_v: Annotated[NDArray[numpy.int16], dict(shape=(None, None), order='C', device='cpu', writable=False)], other_data: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> None: ...

def drop_small(mask: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu')], least: int) -> None: ...

def interpolate(right: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], down: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], pixel: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], place: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], match: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], trust: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], how: tuple[int, float, float, int], flow: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu')], distance: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')]) -> None: ...

def variational(f0: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], f1: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], first_group: int, strength: tuple[float, float], weight: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], right: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], down: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], terms: tuple[float, float, float], schedule: tuple[int, int, int, float], flow: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu')]) -> None: ...

def png_unfilter(lines: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu', writable=False)], depth: int, pixels: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu')]) -> bool: ...

def label_distances(bits0: Annotated[NDArray[numpy.uint64], dict(shape=(None, None), order='C', device='cpu', writable=False)], bits1: Annotated[NDArray[numpy.uint64], dict(shape=(None, None), order='C', device='cpu', writable=False)], window: tuple[int, int, int, int], u: Annotated[NDArray[numpy.int16], dict(shape=(None, None), order='C', device='cpu', writable=False)], v: Annotated[NDArray[numpy.int16], dict(shape=(None, None), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.int16], dict(shape=(None, None), order='C', device='cpu')]) -> None: ...

def label_costs(phi0: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], phi1: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], window: tuple[int, int, int, int], u: Annotated[NDArray[numpy.int16], dict(shape=(None, None), order='C', device='cpu', writable=False)], v: Annotated[NDArray[numpy.int16], dict(shape=(None, None), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')]) -> None: ...

@overload
def best_labels(costs: Annotated[NDArray[numpy.uint8], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], first: int, labels: Annotated[NDArray[numpy.int16], dict(shape=(None, None), order='C', device='cpu')]) -> None: ...

@overload
def best_labels(costs: Annotated[NDArray[numpy.int16], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], first: int, labels: Annotated[NDArray[numpy.int16], dict(shape=(None, None), order='C', device='cpu')]) -> None: ...

@overload
def best_labels(costs: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], first: int, labels: Annotated[NDArray[numpy.int16], dict(shape=(None, None), order='C', device='cpu')]) -> None: ...

def rescan_bits(bits0: Annotated[NDArray[numpy.uint64], dict(shape=(None, None), order='C', device='cpu', writable=False)], bits1: Annotated[NDArray[numpy.uint64], dict(shape=(None, None), order='C', device='cpu', writable=False)], window: tuple[int, int, int, int], outside: int, v_labels: Annotated[NDArray[numpy.int16], dict(shape=(None, None), order='C', device='cpu', writable=False)], flow: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu')]) -> None: ...

def rescan_phi(phi0: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], phi1: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], window: tuple[int, int, int, int], outside: float, v_labels: Annotated[NDArray[numpy.int16], dict(shape=(None, None), order='C', device='cpu', writable=False)], flow: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu')]) -> None: ...

def all_within(array: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], limit: float) -> bool:
    """Whether no element is NaN or larger than the limit in absolute value."""

def peak(mix: str, rounds: int) -> float:
    """
    Runs a register-resident micro-kernel on all threads; returns the work it stands for.
    """

def copy_bytes(from_: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], to: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu')], rounds: int) -> None:
    """
    Plain copy by all threads, each its own share again and again: for the benchmarks.
    """

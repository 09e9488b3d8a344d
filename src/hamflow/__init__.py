"""Hamflow: dense, large-displacement optical flow with binary descriptors on a plain CPU."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hamflow import (  # or mypy takes _native for an Any
        _native,  # noqa: F401
        crf,
        datasets,
        evaluation,
        io,
        matching,
        refinement,
    )
    from hamflow._runtime import (
        get_isa,
        get_num_threads,
        isa_levels,
        set_isa,
        set_num_threads,
    )
    from hamflow.config import EstimatorConfig
    from hamflow.descriptors import load_model, pair_bits
    from hamflow.errors import FileError, HamflowError, InputError
    from hamflow.estimator import Estimator, estimate
    from hamflow.flow import endpoint_error, flow_to_color, warp
    from hamflow.io import read_flow, read_image, write_flow, write_image
    from hamflow.result import FlowResult
    from hamflow.window import Window

__version__ = "0.1.0"

# Where each public name lives. They are imported on first use, so that `import hamflow` is quick
# and costs nothing that is not needed.
_HOMES = {
    "Estimator": "hamflow.estimator",
    "EstimatorConfig": "hamflow.config",
    "FileError": "hamflow.errors",
    "FlowResult": "hamflow.result",
    "HamflowError": "hamflow.errors",
    "InputError": "hamflow.errors",
    "Window": "hamflow.window",
    "crf": "hamflow.crf",
    "datasets": "hamflow.datasets",
    "endpoint_error": "hamflow.flow",
    "estimate": "hamflow.estimator",
    "evaluation": "hamflow.evaluation",
    "flow_to_color": "hamflow.flow",
    "get_isa": "hamflow._runtime",
    "get_num_threads": "hamflow._runtime",
    "io": "hamflow.io",
    "isa_levels": "hamflow._runtime",
    "load_model": "hamflow.descriptors",
    "matching": "hamflow.matching",
    "pair_bits": "hamflow.descriptors",
    "read_flow": "hamflow.io",
    "read_image": "hamflow.io",
    "refinement": "hamflow.refinement",
    "set_isa": "hamflow._runtime",
    "set_num_threads": "hamflow._runtime",
    "warp": "hamflow.flow",
    "write_flow": "hamflow.io",
    "write_image": "hamflow.io",
}

__all__ = [
    "Estimator",
    "EstimatorConfig",
    "FileError",
    "FlowResult",
    "HamflowError",
    "InputError",
    "Window",
    "__version__",
    "crf",
    "datasets",
    "endpoint_error",
    "estimate",
    "evaluation",
    "flow_to_color",
    "get_isa",
    "get_num_threads",
    "io",
    "isa_levels",
    "load_model",
    "matching",
    "pair_bits",
    "read_flow",
    "read_image",
    "refinement",
    "set_isa",
    "set_num_threads",
    "warp",
    "write_flow",
    "write_image",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'hamflow' has no attribute {name!r}")
    module = importlib.import_module(home)
    value = module if home == f"hamflow.{name}" else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)

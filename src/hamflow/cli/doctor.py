"""``hamflow doctor``: what is installed, and what this machine can do."""

from __future__ import annotations

import importlib.util
import platform
from pathlib import Path

from rich.console import Console
from rich.table import Table

import hamflow
from hamflow import _native
from hamflow._runtime import get_isa, get_num_threads, isa_levels

# The extras of pyproject.toml, with the modules that each installs.
EXTRAS = {
    "docs": ("furo", "ipykernel", "myst_nb", "numpydoc", "sphinx", "sphinx_gallery"),
    "evaluate": ("scipy",),
    "flo5": ("h5py",),
    "float": ("onnxruntime",),
    "fuzz": ("atheris",),
    "lint": ("fastapi", "mypy", "nanobind", "ruff"),
    "peers": ("faiss", "cv2"),
    "plot": ("matplotlib",),
    "quantize": ("onnx", "onnxruntime"),
    "ray": ("ray", "pandas", "pyarrow"),
    "report": ("jinja2",),
    "scale": ("fsspec", "pyarrow"),
    "test": (
        *("av", "cv2", "fastapi", "flow_vis", "fsspec", "h5py", "httpx", "hypothesis", "jinja2"),
        *("matplotlib", "onnx", "onnxruntime", "playwright", "pyarrow", "pytest"),
        *("python_multipart", "ray", "schemathesis", "scipy", "tifffile", "tqdm", "uvicorn"),
        "xdist",
    ),
    "tiff": ("tifffile",),
    "train": ("matplotlib", "tensorboard", "torch"),
    "video": ("av",),
    "viewer": ("fastapi", "python_multipart", "uvicorn"),
}


def model_files() -> list[Path]:
    """Return the files of the descriptors that come with Hamflow."""
    folder = Path(hamflow.__file__).parent / "descriptors" / "models"
    return sorted(folder.glob("*.safetensors"))


def doctor() -> None:
    """Print the version, instruction-set levels, threads, model files and extras.

    Please add this to a question or a bug report.
    """
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    table.add_row("hamflow", hamflow.__version__)
    table.add_row("python", f"{platform.python_version()} on {platform.system()}")
    table.add_row("machine", f"{platform.machine()}, {_processor()}")
    table.add_row("levels found", ", ".join(isa_levels()))
    table.add_row("level chosen", f"{get_isa()} (force another with HAMFLOW_ISA)")
    table.add_row("networks", _native.convolution())
    table.add_row("threads", f"{get_num_threads()} (set with HAMFLOW_NUM_THREADS)")
    models = [f"{p.name} ({p.stat().st_size / 1e6:.1f} MB)" for p in model_files()]
    table.add_row("model files", ", ".join(models) or "none")
    for extra, modules in EXTRAS.items():
        table.add_row(f"extra '{extra}'", _describe_extra(extra, modules))
    Console(markup=False).print(table)


def _describe_extra(extra: str, modules: tuple[str, ...]) -> str:
    missing = [m for m in modules if importlib.util.find_spec(m) is None]
    if not missing:
        return "present"
    return f"not present ({', '.join(missing)}): pip install 'hamflow[{extra}]'"


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            names = [line.split(":", 1)[1].strip() for line in lines if "model name" in line]
        return names[0]
    except (OSError, IndexError):
        return platform.processor() or "unknown processor"

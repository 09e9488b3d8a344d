"""Hamflow: dense, large-displacement optical flow with binary descriptors on a plain CPU.

The public names are listed in ``__init__.pyi`` and nowhere else. They are imported on first use, so
that ``import hamflow`` is quick and costs nothing that is not needed.
"""

import lazy_loader

__version__ = "0.2.0"

__getattr__, _, __all__ = lazy_loader.attach_stub(__name__, __file__)
__all__ += ["__version__"]


def __dir__() -> list[str]:
    return sorted(__all__)

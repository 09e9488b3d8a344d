"""The min-projection (eq. 4) as differentiable layers: the models FF, FQ and QQ (section 3.1).

Each takes the descriptors of two images and returns ``c^u`` and ``c^v``. The 4D cost is never
stored, neither in the forward nor in the backward pass: only the inner minimizers are kept, which
are H×W×(du + dv) labels.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hamflow import matching
from hamflow.errors import InputError
from hamflow.learning.config import Scheme
from hamflow.window import Window, WindowLike


def project(
    phi0: Tensor,
    phi1: Tensor,
    window: WindowLike,
    model: Scheme = "fq",
    *,
    outside: float = 0.0,
    inner: NDArray[np.float32] | None = None,
) -> tuple[Tensor, Tensor]:
    """Return ``c^u`` (H×W×du) and ``c^v`` (H×W×dv) of two descriptor fields.

    Parameters
    ----------
    phi0, phi1 : (H, W, m) float32 tensors on the CPU
        Descriptors; m = 64 unless the model is FF.
    window : Window or int or tuple
        Displacements to search.
    model : "ff", "fq" or "qq"
        FF: floats in both minimizations (eq. 4). FQ: the inner argmin from the bits, the outer
        value from the floats; its gradient is exact wherever the inner argmin is unique, as that of
        FF is. QQ: bits in both; its gradient is the straight-through estimate, which ignores the
        sign function.
    outside : float
        Cost of a displacement to a place outside of the image, which has no gradient.
    inner : (H, W, 2) array of float32, optional
        Flow that replaces the inner minimizers wherever it is finite: c^u(u) = c(u, v*) and
        c^v(v) = c(u*, v). At the beginning of training, the bits and the inner minimizers that
        they choose carry no information; training can start with the true flow instead. Not for
        FF.
    """
    if model not in ("ff", "fq", "qq"):
        raise InputError(f"model must be ff, fq or qq, not {model!r}.")
    if model == "ff" and inner is not None:
        raise InputError("The model ff does not use inner; leave it out, or use the model fq.")
    result: tuple[Tensor, Tensor] = _Projection.apply(  # type: ignore[no-untyped-call]
        phi0, phi1, Window.of(window), model, outside, inner
    )
    return result


class _Projection(torch.autograd.Function):
    @staticmethod
    def forward(  # noqa: PLR0917
        ctx: Any,
        phi0: Tensor,
        phi1: Tensor,
        window: Window,
        model: Scheme,
        outside: float,
        inner: NDArray[np.float32] | None,
    ) -> tuple[Tensor, Tensor]:
        first, second = (phi.detach().contiguous().numpy() for phi in (phi0, phi1))
        if model == "qq":
            first, second = (
                np.where(phi > 0, np.float32(1), np.float32(-1)) for phi in (first, second)
            )
        if model == "ff":
            projected = matching.float_min_projection(
                first, second, window, outside=outside, argmins=True
            )
        else:
            projected = matching.hybrid_min_projection(
                first, second, window, outside=outside, inner=inner
            )
        ctx.projected = projected
        return torch.from_numpy(projected.cu), torch.from_numpy(projected.cv)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        grad_cu, grad_cv = (grad.contiguous().numpy() for grad in grads)
        grad_phi0, grad_phi1 = ctx.projected.backward(grad_cu, grad_cv)
        return torch.from_numpy(grad_phi0), torch.from_numpy(grad_phi1), None, None, None, None

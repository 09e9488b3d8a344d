"""The siamese descriptor networks (section 3.2 of the paper, and one that sees more)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from numpy.typing import NDArray
from torch import Tensor, nn

from hamflow.descriptors.architecture import Architecture

_SLOPE = 0.1  # of the leaky ReLU
_FLOOR = 0.0004  # variance below which contrast is noise: 0.02 of the range

Visitor = Callable[[nn.Conv2d, Tensor], None]


def build_network(architecture: Architecture) -> DescriptorNetwork:
    """Return the network of an architecture, with weights that wait for `initialise`."""
    kinds = {"paper": PaperNetwork, "context": ContextNetwork}
    return kinds[architecture.kind](architecture)


class DescriptorNetwork(nn.Module):
    """What both kinds share: N×3×H×W images in 0..1 become N×H×W×m descriptors in -1..1."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.architecture = architecture
        self._visit: Visitor | None = None

    def initialise(self, images: Tensor) -> None:
        """Give every layer's outputs mean 0 and variance 1 on some images.

        With the usual initialisation most bits start as constants, the more so the deeper the
        network is; the inner argmin of FQ is then meaningless, and learning never starts.

        Parameters
        ----------
        images : (N, 3, H, W) tensor
            A few typical images.
        """
        for layer in self.modules():
            if isinstance(layer, nn.Conv2d):
                nn.init.kaiming_normal_(layer.weight, nonlinearity="linear")
                nn.init.zeros_(layer.bias)  # type: ignore[arg-type]
        first = next(layer for layer in self.modules() if isinstance(layer, nn.Conv2d))
        self._visit = _standardise
        with torch.no_grad():
            # What is the same everywhere says nothing of where a pixel went.
            first.weight -= first.weight.mean((2, 3), keepdim=True)
            self(images)
        self._visit = None

    def weights(self) -> dict[str, NDArray[np.float32]]:
        """Return copies of all weights by the names that `Architecture.parameters` gives them."""
        state = self.state_dict()
        return {name: state[name].numpy().copy() for name in self.architecture.parameters()}

    def load(self, weights: Mapping[str, NDArray[np.float32]]) -> None:
        """Take weights as `weights` returned them."""
        self.load_state_dict({name: torch.from_numpy(value) for name, value in weights.items()})

    def _normalised(self, images: Tensor) -> Tensor:
        radius = self.architecture.contrast
        if not radius:
            return (images - 0.5) * 4

        def box(x: Tensor) -> Tensor:
            return F.avg_pool2d(_padded(x, radius), 2 * radius + 1, 1)

        centred = images - box(images)
        variance = box(centred**2).mean(1, keepdim=True)
        return centred / torch.sqrt(variance + _FLOOR)

    def _convolve(self, layer: nn.Module, x: Tensor) -> Tensor:
        if self._visit is not None:
            assert isinstance(layer, nn.Conv2d)
            self._visit(layer, x)
        result: Tensor = layer(x)
        return result


class PaperNetwork(DescriptorNetwork):
    """The paper's: 3×3, then 2×2 layers, tanh after each, at full resolution throughout."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__(architecture)
        shapes = architecture.convolutions().values()
        self.layers = nn.ModuleList(nn.Conv2d(into, out, size) for out, into, size in shapes)

    def forward(self, images: Tensor) -> Tensor:
        """Return the descriptors, N×H×W×m."""
        height, width = images.shape[2:]
        padding = (self.architecture.layers + 1) // 2
        x = _padded(self._normalised(images), padding)
        x = torch.tanh(self._convolve(self.layers[0], x))
        if self._visit is not None:
            for layer in self.layers[1:]:
                x = torch.tanh(self._convolve(layer, x))
            return x.permute(0, 2, 3, 1)
        # One long row of pixels from here on: a neighbour is always the same number of pixels
        # further on, and each tap of a layer is a product of two matrices. What wraps around the
        # ends of the rows is cut off at the end.
        count, channels, rows, stride = x.shape
        x = x.permute(0, 2, 3, 1).reshape(-1, channels)
        for layer in self.layers[1:]:
            x = _Layer2x2.apply(x, layer.weight, layer.bias, stride)  # type: ignore[no-untyped-call]
        return x.view(count, rows, stride, -1)[:, :height, :width]


class _Layer2x2(torch.autograd.Function):
    """A 2×2 layer with its tanh, on pixels in one row; 1.4 times as fast as the library's."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, stride: int) -> Tensor:
        valid = max(len(x) - stride - 1, 0)
        y = x.new_zeros(len(x), len(weight))
        inner = y[:valid]
        inner += bias
        for tap, shift in _taps(stride):
            inner.addmm_(x[shift : shift + valid], weight[:, :, *tap].t())
        y.tanh_()
        ctx.save_for_backward(x, y, weight)
        ctx.stride = stride
        return y

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        x, y, weight = ctx.saved_tensors
        valid = max(len(x) - ctx.stride - 1, 0)
        from_above, y = grads[0][:valid], y[:valid]
        grad = from_above * y
        torch.addcmul(from_above, grad, y, value=-1, out=grad)  # in place: memory is what it costs
        grad_x, grad_weight = torch.zeros_like(x), torch.empty_like(weight)
        for tap, shift in _taps(ctx.stride):
            grad_x[shift : shift + valid].addmm_(grad, weight[:, :, *tap])
            grad_weight[:, :, *tap] = grad.t() @ x[shift : shift + valid]
        return grad_x, grad_weight, grad.sum(0), None


def _taps(stride: int) -> list[tuple[tuple[int, int], int]]:
    return [((row, column), row * stride + column) for row in range(2) for column in range(2)]


class ContextNetwork(DescriptorNetwork):
    """An hourglass: wide surroundings at coarse resolutions, details at fine ones."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__(architecture)
        layers = {
            name: nn.Conv2d(into, out, size)
            for name, (out, into, size) in architecture.convolutions().items()
        }
        levels = range(len(architecture.widths))
        self.down = nn.ModuleList(
            nn.ModuleList((layers[f"down.{level}.0"], layers[f"down.{level}.1"]))
            for level in levels
        )
        self.bottom = layers["bottom"]
        self.lift = nn.ModuleList(layers[f"lift.{level}"] for level in levels[:-1])
        self.merge = nn.ModuleDict({str(level): layers[f"merge.{level}"] for level in levels[1:-1]})
        self.out = layers["out"]

    def forward(self, images: Tensor) -> Tensor:
        """Return the descriptors, N×H×W×m."""
        height, width = images.shape[2:]
        step = self.architecture.alignment
        x = self._normalised(F.pad(images, (0, -width % step, 0, -height % step), mode="replicate"))
        seen: list[Tensor] = []
        for level, pair in enumerate(self.down):
            if level:
                x = F.avg_pool2d(x, 2)
            for layer in pair:  # type: ignore[attr-defined]
                x = self._layer(layer, x)
            seen.append(x)
        x = self._layer(self.bottom, x)
        for level in reversed(range(len(self.lift))):
            lifted = self._convolve(self.lift[level], x)
            enlarged = F.interpolate(lifted, scale_factor=2, mode="bilinear", align_corners=False)
            x = F.leaky_relu(seen[level] + enlarged, _SLOPE)
            if level:
                x = self._layer(self.merge[str(level)], x)
        x = torch.tanh(self._convolve(self.out, _padded(x, 1)))
        return x.permute(0, 2, 3, 1)[:, :height, :width]

    def _layer(self, layer: nn.Module, x: Tensor) -> Tensor:
        return F.leaky_relu(self._convolve(layer, _padded(x, 1)), _SLOPE)


def _padded(x: Tensor, radius: int) -> Tensor:
    return F.pad(x, (radius,) * 4, mode="replicate")


def _standardise(layer: nn.Conv2d, x: Tensor) -> None:
    """Scale a layer so that on `x` each of its outputs has mean 0 and variance 1."""
    y = F.conv2d(x, layer.weight)
    mean, deviation = y.mean((0, 2, 3)), y.std((0, 2, 3)) + 1e-6
    layer.weight /= deviation[:, None, None, None]
    layer.bias.copy_(-mean / deviation)  # type: ignore[union-attr]

"""The siamese descriptor networks: that of the paper (Figure 1), and one with more context."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pkgutil import resolve_name
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from numpy.typing import NDArray
from torch import Tensor, nn

from hamflow.descriptors.architecture import Architecture

# Initial gains of the far part of the context network: steep enough for small differences.
_STEEP, _PASS, _NOISE = 4.0, 1.5, 0.3

NETWORKS = {
    "paper": "hamflow.learning.network:PaperNetwork",
    "context": "hamflow.learning.network:ContextNetwork",
    "coarse": "hamflow.learning.coarse:CoarseNetwork",
}
"""Where the class of each kind of network is."""

Visitor = Callable[[nn.Conv2d, Tensor], None]


def build_network(architecture: Architecture) -> DescriptorNetwork:
    """Return the network of an architecture; call `initialize` before training it."""
    network: DescriptorNetwork = resolve_name(NETWORKS[architecture.kind])(architecture)
    return network


class DescriptorNetwork(nn.Module):
    """Base of all networks: from N×3×H×W images (0 to 1) to N×H×W×m descriptors (-1 to 1)."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.architecture = architecture
        self._visit: Visitor | None = None

    def initialize(self, images: Tensor) -> None:
        """Initialize so that the outputs of every layer have mean 0 and variance 1 on some images.

        With the usual initialization, most bits of a deep network start as constants; the inner
        argmin of FQ is then meaningless, and the network does not learn.
        """
        for layer in self.modules():
            if isinstance(layer, nn.Conv2d):
                nn.init.kaiming_normal_(layer.weight, nonlinearity="linear")
                nn.init.zeros_(layer.bias)  # type: ignore[arg-type]
        first = next(layer for layer in self.modules() if isinstance(layer, nn.Conv2d))
        self._visit = _standardize
        with torch.no_grad():
            # A constant over the image carries no information about where a pixel moved.
            first.weight -= first.weight.mean((2, 3), keepdim=True)
            self(images)
        self._visit = None

    def weights(self) -> dict[str, NDArray[np.float32]]:
        """Return copies of all weights by the names that `Architecture.parameters` gives them."""
        state = self.state_dict()
        return {name: state[name].numpy().copy() for name in self.architecture.parameters()}

    def load(self, weights: Mapping[str, NDArray[np.float32]]) -> None:
        """Load the weights that `weights` returned."""
        self.load_state_dict({name: torch.from_numpy(value) for name, value in weights.items()})

    def _chain(self, layers: nn.ModuleList, x: Tensor) -> Tensor:
        """Apply a 3×3 layer, then 2×2 layers, to N×3×H×W; return N×H×W×m with margins."""
        x = torch.tanh(self._convolve(layers[0], x))
        if self._visit is not None:
            for layer in layers[1:]:
                x = torch.tanh(self._convolve(layer, x))
            return x.permute(0, 2, 3, 1)
        # From here on the pixels are one long row: a neighbor is always the same number of pixels
        # away, and each tap of a layer is a product of two matrices. Pixels that wrap around the
        # ends of the rows are removed at the end.
        count, channels, rows, stride = x.shape
        x = x.permute(0, 2, 3, 1).reshape(-1, channels)
        for layer in layers[1:]:
            x = _layer2x2(x, layer, stride)
        return x.view(count, rows, stride, -1)

    def _convolve(self, layer: nn.Module, x: Tensor) -> Tensor:
        if self._visit is not None:
            assert isinstance(layer, nn.Conv2d)
            self._visit(layer, x)
        result: Tensor = layer(x)
        return result


class PaperNetwork(DescriptorNetwork):
    """The paper's network (Figure 1): 3×3, then 2×2 layers, tanh after each, no stride."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__(architecture)
        shapes = architecture.convolutions().values()
        self.layers = nn.ModuleList(nn.Conv2d(into, out, size) for out, into, size in shapes)

    def forward(self, images: Tensor) -> Tensor:
        """Return the descriptors, N×H×W×m."""
        height, width = images.shape[2:]
        padding = (self.architecture.layers + 1) // 2
        x = _padded(_normalized(images), padding)
        return self._chain(self.layers, x)[:, :height, :width]


class _Layer2x2(torch.autograd.Function):
    """A 2×2 layer with its tanh, on pixels in one row; 1.4 times as fast as that of torch."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, stride: int) -> Tensor:
        valid = max(len(x) - stride - 1, 0)
        y = x.new_zeros(len(x), len(weight))
        inner = y[:valid]
        inner += bias
        for tap, shift in _taps(stride):
            inner.addmm_(x[shift : shift + valid], weight[(..., *tap)].t())
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
        torch.addcmul(from_above, grad, y, value=-1, out=grad)  # in place, to save memory
        grad_x, grad_weight = torch.zeros_like(x), torch.empty_like(weight)
        for tap, shift in _taps(ctx.stride):
            grad_x[shift : shift + valid].addmm_(grad, weight[(..., *tap)])
            grad_weight[(..., *tap)] = grad.t() @ x[shift : shift + valid]
        return grad_x, grad_weight, grad.sum(0), None


def _layer2x2(x: Tensor, layer: nn.Module, stride: int) -> Tensor:
    weight, bias = (part.to(x.dtype) for part in (layer.weight, layer.bias))
    y: Tensor = _Layer2x2.apply(x, weight, bias, stride)  # type: ignore[no-untyped-call]
    return y


def _taps(stride: int) -> list[tuple[tuple[int, int], int]]:
    return [((row, column), row * stride + column) for row in range(2) for column in range(2)]


class ContextNetwork(DescriptorNetwork):
    """A network with some bits like the paper's, and others that compare distant pixels.

    The second kind is initialized like the hand-crafted descriptor: as signs of the differences of
    two pixels. Training turns them into functions of many pixels.
    """

    def __init__(self, architecture: Architecture) -> None:
        super().__init__(architecture)
        layers = {
            name: nn.Conv2d(into, out, size)
            for name, (out, into, size) in architecture.convolutions().items()
        }
        self.local, self.taps, self.wide = (
            nn.ModuleList(layer for name, layer in layers.items() if name.startswith(part))
            for part in ("local.", "taps.", "wide.")
        )

    def forward(self, images: Tensor) -> Tensor:
        """Return the descriptors, N×H×W×m."""
        height, width = images.shape[2:]
        x = _normalized(images)
        near = self._chain(self.local, _padded(x, (self.architecture.layers + 1) // 2))
        near = near[:, :height, :width]
        far = self._far(x)[:, :height, :width]
        return torch.cat([near, far], dim=3)

    def _far(self, x: Tensor) -> Tensor:
        # One row and one column more, for the 2×2 layer.
        seen = self._samples(_padded_for(x, self.architecture.reach))
        count, rows, stride = seen.shape[:3]
        weight = torch.cat([_as_matrix(layer.weight) for layer in self.taps], dim=1)  # type: ignore[arg-type]
        bias = torch.stack([layer.bias for layer in self.taps]).sum(0)  # type: ignore[misc]
        y = torch.tanh(F.linear(seen.flatten(0, 2), weight, bias))
        y = _layer2x2(y, self.wide[0], stride)
        for layer in self.wide[1:]:
            y = torch.tanh(F.linear(y, layer.weight.flatten(1), layer.bias))  # type: ignore[operator, arg-type]
        return y.view(count, rows, stride, -1)

    def _samples(self, x: Tensor) -> Tensor:
        """Return the inputs of the taps of the first layer: N×H×W×(scales · taps² · 3)."""
        reach, taps = self.architecture.reach, self.architecture.taps
        rows, columns = (size - 2 * reach for size in x.shape[2:])
        blurred = F.pad(F.avg_pool2d(x, 3, 1), (1, 1, 1, 1))
        seen = []
        for scale in self.architecture.scales:
            source = x if scale == 1 else blurred
            offsets = [reach + scale * (tap - taps // 2) for tap in range(taps)]
            seen += [
                source[:, :, top : top + rows, left : left + columns]
                for top in offsets
                for left in offsets
            ]
        return torch.cat(seen, dim=1).permute(0, 2, 3, 1)

    def initialize(self, images: Tensor) -> None:
        """Start the near part as the paper's network and the far part as pairs of pixels."""
        super().initialize(images)
        generator = torch.Generator().manual_seed(torch.initial_seed())
        channels, taps = self.architecture.wide, self.architecture.taps
        with torch.no_grad():
            for number, layer in enumerate(self.taps):
                _nearly(layer, 0.0, 0.01, generator)
                for unit in range(number, channels, len(self.taps)):
                    pair = torch.randperm(taps**2, generator=generator)[:2]
                    color = unit // len(self.taps) % 3
                    places = layer.weight[unit, color].view(-1)  # type: ignore[index]
                    places[pair] = torch.tensor([1.0, -1.0])
            for layer in self.wide:
                _nearly(layer, _PASS, _NOISE, generator)
            seen = self._samples(_padded_for(_normalized(images), self.architecture.reach))
            weight = torch.cat([_as_matrix(layer.weight) for layer in self.taps], dim=1)  # type: ignore[arg-type]
            deviation = F.linear(seen, weight).flatten(0, 2).std(0) + 1e-6
            for layer in self.taps:
                assert isinstance(layer, nn.Conv2d)
                layer.weight *= (_STEEP / deviation)[:, None, None, None]


def _nearly(layer: nn.Module, gain: float, noise: float, generator: torch.Generator) -> None:
    """Initialize a layer as `gain` times the identity, with some noise."""
    assert isinstance(layer, nn.Conv2d)
    out, into, size, _ = layer.weight.shape
    deviation = noise / (into * size**2) ** 0.5 if gain else noise
    layer.weight.copy_(torch.randn(layer.weight.shape, generator=generator) * deviation)
    if gain:
        units = torch.arange(out)
        layer.weight[units, units] += gain / size**2
    nn.init.zeros_(layer.bias)  # type: ignore[arg-type]


def _as_matrix(weight: Tensor) -> Tensor:
    """Return the weights of a layer in the order of its samples: taps, then colors."""
    return weight.permute(0, 2, 3, 1).flatten(1)


def _padded_for(x: Tensor, reach: int) -> Tensor:
    return F.pad(x, (reach, reach + 1, reach, reach + 1), mode="replicate")


def _normalized(images: Tensor) -> Tensor:
    return (images - 0.5) * 4


def _padded(x: Tensor, radius: int) -> Tensor:
    return F.pad(x, (radius,) * 4, mode="replicate")


def _standardize(layer: nn.Conv2d, x: Tensor) -> None:
    """Scale a layer so that on `x` each of its outputs has mean 0 and variance 1."""
    y = F.conv2d(x, layer.weight)
    mean, deviation = y.mean((0, 2, 3)), y.std((0, 2, 3)) + 1e-6
    layer.weight /= deviation[:, None, None, None]
    layer.bias.copy_(-mean / deviation)  # type: ignore[union-attr]

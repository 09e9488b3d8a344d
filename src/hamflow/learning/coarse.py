"""The coarse network: one descriptor for each cell of 4×4 pixels, and its loss over all cells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from numpy.typing import NDArray
from torch import Tensor, nn

from hamflow.descriptors.architecture import CELL, Architecture
from hamflow.descriptors.graph import LOCAL_RADIUS
from hamflow.learning.config import Scheme
from hamflow.learning.network import DescriptorNetwork

Pair = tuple[NDArray[np.float32], NDArray[np.bool_]]
"""The true flow of the first image, and which of its pixels are occluded in the second."""

_HIDDEN_WEIGHT = 0.3  # of an occluded cell in the loss
_LATTICE = 3  # every third cell in each direction is trained: neighbors say nearly the same
_COARSER_WEIGHT = 1.4  # of the loss of cells of twice the size


class CoarseNetwork(DescriptorNetwork):
    """A residual network with batch normalization, which becomes part of the exported weights.

    `gain` (a logarithm) turns the mean product of two descriptors into a logit, and `hidden` is the
    logit of "occluded"; both are learned and are not exported.
    """

    def __init__(self, architecture: Architecture) -> None:
        super().__init__(architecture)
        self.layers = nn.ModuleDict()
        for name, (out, into, size) in architecture.convolutions().items():
            stride = 2 if name in ("half", "quarter", "eighth") else 1
            dilation = 1
            if name.startswith("blocks.") and name.endswith(".first"):
                dilation = architecture.dilations[int(name.split(".")[1])]
            padding = (size - 1) // 2 * dilation
            convolution = nn.Conv2d(into, out, size, stride, padding, dilation)
            plain = name in ("far", "head")
            self.layers[_key(name)] = _Layer(convolution, None if plain else nn.BatchNorm2d(out))
        self.gain = nn.Parameter(torch.full((2,), 2.5))  # of cells, and of those of twice the size
        self.hidden = nn.Parameter(torch.zeros(2))

    def forward(self, images: Tensor) -> Tensor:
        """Return the descriptors, N×⌈H/4⌉×⌈W/4⌉×m; the last cells may reach beyond the image."""
        height, width = images.shape[2:]
        whole = 2 * CELL  # it halves the image once more than its cells do
        images = F.pad(images, (0, -width % whole, 0, -height % whole), mode="replicate")
        x = F.relu(self._layer("half", contrasts(images)))
        near = self._block("near", F.relu(self._layer("quarter", x)))
        far = F.relu(self._layer("eighth", near))
        for block in range(len(self.architecture.dilations)):
            far = self._block(f"blocks.{block}", far)
        far = F.interpolate(self._layer("far", far), scale_factor=2, mode="bilinear")
        both = F.relu(far + self._layer("near.last", near))
        phi = torch.tanh(self._layer("head", both)).permute(0, 2, 3, 1)
        return phi[:, : -(-height // CELL), : -(-width // CELL)]

    def initialize(self, images: Tensor) -> None:
        """Start every residual block as the identity; batch normalization does the rest."""
        for name, layer in self.layers.items():
            assert isinstance(layer, _Layer)
            nn.init.kaiming_normal_(layer.convolution.weight)
            if layer.norm is not None and name.endswith("second"):
                nn.init.zeros_(layer.norm.weight)

    def weights(self) -> dict[str, NDArray[np.float32]]:
        """Return the weights and biases of all convolutions, with the normalization in them."""
        found = {}
        for name in self.architecture.convolutions():
            layer = self.layers[_key(name)]
            assert isinstance(layer, _Layer)
            found[f"{name}.weight"], found[f"{name}.bias"] = layer.folded()
        return found

    def load(self, weights: Mapping[str, NDArray[np.float32]]) -> None:
        """Load what `weights` returned; the normalization is then fixed, as part of the weights."""
        self.drop_normalization()
        for name in self.architecture.convolutions():
            layer = self.layers[_key(name)]
            assert isinstance(layer, _Layer)
            with torch.no_grad():
                layer.convolution.weight.copy_(torch.from_numpy(weights[f"{name}.weight"]))
                assert layer.convolution.bias is not None
                layer.convolution.bias.copy_(torch.from_numpy(weights[f"{name}.bias"]))

    def drop_normalization(self) -> None:
        """Remove the normalization and its parameters, for weights that have it in them."""
        for layer in self.layers.values():
            assert isinstance(layer, _Layer)
            layer.norm = None

    def _layer(self, name: str, x: Tensor) -> Tensor:
        result: Tensor = self.layers[_key(name)](x)
        return result

    def _block(self, name: str, x: Tensor) -> Tensor:
        inner = F.relu(self._layer(f"{name}.first", x))
        return F.relu(x + self._layer(f"{name}.second", inner))


class _Layer(nn.Module):
    """A convolution, and its batch normalization if it has one."""

    def __init__(self, convolution: nn.Conv2d, norm: nn.BatchNorm2d | None) -> None:
        super().__init__()
        self.convolution = convolution
        self.norm = norm

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.convolution(x)
        return y if self.norm is None else self.norm(y)

    def folded(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return the weight and the bias of the convolution that computes the same."""
        norm, weight, bias = self.norm, self.convolution.weight, self.convolution.bias
        assert bias is not None
        if norm is not None:
            assert norm.running_mean is not None
            assert norm.running_var is not None
            gain = norm.weight / torch.sqrt(norm.running_var + norm.eps)
            bias = norm.bias + (bias - norm.running_mean) * gain
            weight = weight * gain[:, None, None, None]
        return weight.detach().numpy().copy(), bias.detach().numpy().copy()


def _key(name: str) -> str:
    return "layer_" + name.replace(".", "_")  # names of modules have no dots, and "half" is taken


@torch.no_grad()
def contrasts(images: Tensor) -> Tensor:
    """Return 4 channels: the colors relative to the whole image, and gray to what is around."""
    centered = images - images.mean((1, 2, 3), keepdim=True)
    colors = centered / ((centered**2).mean((1, 2, 3), keepdim=True).sqrt() + 0.02)
    gray = images.mean(1, keepdim=True)
    wide = F.pad(gray, (LOCAL_RADIUS,) * 4, mode="replicate")
    mean, square = _box(wide), _box(wide * wide)
    deviation = torch.sqrt((square - mean * mean).clamp_min(0) + 1e-4)
    local = ((gray - mean) / deviation).clamp(-4, 4) * 0.7
    return torch.cat([colors, local], dim=1)


def _box(x: Tensor) -> Tensor:
    side = 2 * LOCAL_RADIUS + 1
    return F.avg_pool2d(F.avg_pool2d(x, (side, 1), 1), (1, side), 1)


@dataclass(frozen=True)
class CellTruth:
    """Where the centers of the cells of the first image are in the second one.

    Attributes
    ----------
    cell : (N,) int64 tensor
        The nearest cell, row by row.
    around, shares : (N, 4) tensors
        The four cells around the true place, and their bilinear shares.
    visible : (N,) bool tensor
        Whether it is inside the second image, and not occluded there.
    known : (N,) bool tensor
        Whether the flow is known; it is not where the center is beyond the image.
    columns : int
        How many cells a row has.
    """

    cell: Tensor
    around: Tensor
    shares: Tensor
    visible: Tensor
    known: Tensor
    columns: int

    @classmethod
    def of(
        cls, flow: NDArray[np.float32], occluded: NDArray[np.bool_], side: int = CELL
    ) -> CellTruth:
        """Sample the flow (H, W, 2) at the centers of cells of side × side pixels."""
        height, width = flow.shape[:2]
        rows, columns = -(-height // side), -(-width // side)
        beyond = ((0, -height % side), (0, -width % side))
        flow = np.pad(flow, (*beyond, (0, 0)), constant_values=np.nan)
        occluded = np.pad(occluded, beyond)
        centers = np.ix_(*(side * np.arange(n) + side // 2 for n in (rows, columns)))
        there = torch.from_numpy(flow[centers].astype(np.float32))
        known = torch.isfinite(there).all(2)
        y, x = torch.meshgrid(torch.arange(rows), torch.arange(columns), indexing="ij")
        to_x, to_y = x + there[..., 0].nan_to_num() / side, y + there[..., 1].nan_to_num() / side
        inside = (to_x > -0.5) & (to_x < width / side - 0.5)
        inside &= (to_y > -0.5) & (to_y < height / side - 0.5)
        visible = inside & known & ~torch.from_numpy(occluded[centers])

        def index(at_y: Tensor, at_x: Tensor) -> Tensor:
            number: Tensor = at_y.clamp(0, rows - 1) * columns + at_x.clamp(0, columns - 1)
            return number.long()

        left, top = to_x.floor(), to_y.floor()
        part_x, part_y = to_x - left, to_y - top
        around, shares = [], []
        for dy, share_y in ((0, 1 - part_y), (1, part_y)):
            for dx, share_x in ((0, 1 - part_x), (1, part_x)):
                around.append(index(top + dy, left + dx).flatten())
                shares.append((share_y * share_x).flatten())
        return cls(
            index(to_y.round(), to_x.round()).flatten(),
            torch.stack(around, 1),
            torch.stack(shares, 1),
            visible.flatten(),
            known.flatten(),
            columns,
        )

    def on_lattice(self) -> Tensor:
        """Return the numbers of every third cell in each direction."""
        rows = len(self.cell) // self.columns
        y, x = torch.arange(0, rows, _LATTICE), torch.arange(0, self.columns, _LATTICE)
        return torch.add(y[:, None] * self.columns, x).flatten()


def cell_loss(network: CoarseNetwork, phi: Tensor, pair: Pair, scheme: Scheme) -> Tensor:
    """Return the cross-entropy over all cells of the second image and "occluded".

    Parameters
    ----------
    network : CoarseNetwork
        Its gains and its logits of "occluded" are learned, too.
    phi : (2, h, w, m) tensor
        The descriptors of both images.
    pair : (flow, occluded)
        The truth of the first image: (H, W, 2) float32 and (H, W) bool.
    scheme : "ff", "fq" or "qq"
        Floats on both sides, floats on one and bits on the other, or bits on both, whose gradient
        is passed on to the floats (straight-through).
    """
    flow, occluded = pair
    fine = _entropy(network, 0, phi, CellTruth.of(flow, occluded), scheme)
    # Cells of twice the size, whose descriptor is a mean of up to four: large motion comes sooner.
    pooled = F.avg_pool2d(phi.permute(0, 3, 1, 2), 2, ceil_mode=True).permute(0, 2, 3, 1)
    coarser = CellTruth.of(flow, occluded, 2 * CELL)
    return fine + _COARSER_WEIGHT * _entropy(network, 1, pooled, coarser, scheme)


def _entropy(
    network: CoarseNetwork, level: int, phi: Tensor, truth: CellTruth, scheme: Scheme
) -> Tensor:
    rows = truth.on_lattice() if level == 0 else torch.arange(len(truth.cell))
    first, second = phi.flatten(1, 2).unbind()
    first = first[rows]
    bits = [x + (torch.sign(x) - x).detach() for x in (first, second)]
    sides = {
        "ff": [(first, second)],
        "fq": [(first, bits[1]), (bits[0], second)],
        "qq": [(bits[0], bits[1])],
    }[scheme]
    hidden = network.hidden[level]
    seen, known = truth.visible[rows].float(), truth.known[rows].float()
    total = phi.new_zeros(())
    for a, b in sides:
        logits = a @ b.t() * (network.gain[level].exp() / a.shape[1])
        normalizer = torch.logaddexp(torch.logsumexp(logits, 1), hidden)
        chosen = logits.gather(1, truth.around[rows])
        there = (truth.shares[rows] * (normalizer[:, None] - chosen)).sum(1)
        gone = (known - seen) * _HIDDEN_WEIGHT * (normalizer - hidden)
        total = total + (seen * there + gone).sum() / known.sum().clamp_min(1)
    return total / len(sides)


def cell_errors(phi: Tensor, truth: CellTruth, *, quantized: bool) -> tuple[float, float]:
    """Return the error of winner takes all over all cells, for cells that are visible.

    Returns
    -------
    error, missed : float
        The mean distance from the true cell in pixels, and the share more than one cell off.
    """
    first, second = (torch.sign(phi) if quantized else phi).flatten(1, 2).unbind()
    if not truth.visible.any():
        return float("nan"), float("nan")
    found, cell = (first[truth.visible] @ second.t()).argmax(1), truth.cell[truth.visible]
    off_x = (found % truth.columns - cell % truth.columns).float()
    off_y = (found // truth.columns - cell // truth.columns).float()
    far = torch.maximum(off_x.abs(), off_y.abs()) > 1
    return float(torch.hypot(off_x, off_y).mean() * CELL), float(far.float().mean())

"""The network of hamflow.refinement.choice in torch, for its training."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812  (its usual name)
from numpy.typing import NDArray
from torch import Tensor, nn

FEATURES, FIELDS, UNITS = 23, 3, (16, 24, 48, 48)


class Mixed(nn.Module):
    """A layer over one candidate, and one over the mean and the maximum of all of them."""

    def __init__(self, units: int, more: int = 0) -> None:
        super().__init__()
        self.own = nn.Conv2d(units, units, 1)
        self.shared = nn.Conv2d(2 * units + more, units, 1, bias=False)

    def forward(self, x: Tensor, more: Tensor | None = None) -> Tensor:
        """Return (L, C, H, W), rectified."""
        parts = [x.mean(0, keepdim=True), x.amax(0, keepdim=True)]
        return F.relu(
            self.own(x) + self.shared(torch.cat(parts if more is None else [*parts, more[None]], 1))
        )


class Joined(nn.Module):
    """A layer over the channels of two resolutions, of which the coarse one is enlarged."""

    def __init__(self, coarse: int, units: int) -> None:
        super().__init__()
        self.coarse = nn.Conv2d(coarse, units, 1)
        self.fine = nn.Conv2d(units, units, 1, bias=False)

    def forward(self, coarse: Tensor, fine: Tensor) -> Tensor:
        """Return (L, C, H, W) at the size of the fine one, rectified."""
        enlarged = F.interpolate(self.coarse(coarse), scale_factor=2, mode="nearest")
        return F.relu(enlarged[..., : fine.shape[2], : fine.shape[3]] + self.fine(fine))


class ChoiceNetwork(nn.Module):
    """Scores of all candidates of a scene, (L, H, W): the higher the better."""

    def __init__(self) -> None:
        super().__init__()
        n = UNITS
        for name in ("low", "high", "mean", "spread"):
            self.register_buffer(name, torch.ones(FEATURES))
        self.first = nn.Conv2d(FEATURES, n[0], 1)
        self.mix = nn.ModuleList([Mixed(n[0], FIELDS), *(Mixed(units) for units in n[1:])])
        self.down = nn.ModuleList(nn.Conv2d(n[k], n[k + 1], 3, padding=1) for k in range(3))
        self.deep = nn.Conv2d(n[3], n[3], 3, padding=1)
        self.join = nn.ModuleList(Joined(n[k + 1], n[k]) for k in (2, 1))
        self.up = nn.ModuleList(nn.Conv2d(n[k], n[k], 3, padding=1) for k in (2, 1))
        self.last_mix, self.last = Mixed(n[1]), Joined(n[1], n[0])
        self.score = nn.Conv2d(n[0], 1, 1, bias=False)

    def normalize(self, rows: Tensor) -> None:
        """Take bounds, means and spreads of the features from examples of them, (N, FEATURES)."""
        self.low.copy_(torch.quantile(rows, 0.01, dim=0))
        self.high.copy_(torch.quantile(rows, 0.99, dim=0))
        self.low[-2:], self.high[-2:] = 0, 1  # two flags, which are rare
        bounded = rows.clamp(self.low, self.high)
        self.mean.copy_(bounded.mean(0))
        self.spread.copy_(bounded.std(0) + 0.01)

    def forward(self, features: Tensor, fields: Tensor) -> Tensor:
        """Score the candidates of one scene by their features and those of the pixels."""
        low, high, mean, spread = (
            t[None, :, None, None] for t in (self.low, self.high, self.mean, self.spread)
        )
        x = F.relu(self.first((features.clamp(low, high) - mean) / spread))
        kept = [self.mix[0](x, fields)]
        for layer, mix in zip(self.down, self.mix[1:], strict=True):
            halved = F.avg_pool2d(kept[-1], 2, ceil_mode=True, count_include_pad=False)
            kept.append(mix(F.relu(layer(halved))))
        x = F.relu(self.deep(kept[3]))
        for join, up, fine in zip(self.join, self.up, (kept[2], kept[1]), strict=True):
            x = F.relu(up(join(x, fine)))
        return self.score(self.last(self.last_mix(x), kept[0]))[:, 0]

    def layers(self) -> Iterator[nn.Conv2d]:
        """Yield all layers but the first, in the order of native/choice.cpp."""
        yield from self._mixed(self.mix[0])
        for layer, mix in zip(self.down, self.mix[1:], strict=True):
            yield layer
            yield from self._mixed(mix)
        yield self.deep
        for join, up in zip(self.join, self.up, strict=True):
            yield from (join.coarse, join.fine, up)
        yield from self._mixed(self.last_mix)
        yield from (self.last.coarse, self.last.fine, self.score)

    @staticmethod
    def _mixed(mix: Mixed) -> tuple[nn.Conv2d, nn.Conv2d]:
        return mix.own, mix.shared

    @torch.no_grad()
    def numbers(self) -> NDArray[np.float32]:
        """Return all numbers as native/choice.cpp takes them, normalization included."""
        first = self.first.weight[:, :, 0, 0] / self.spread
        parts = [self.low, self.high, self.first.bias - first @ self.mean, first.T]
        for layer in self.layers():
            if layer.bias is not None:
                parts.append(layer.bias)
            parts.append(layer.weight.permute(1, 2, 3, 0))
        return torch.cat([part.reshape(-1) for part in parts]).numpy().astype(np.float32)

    @torch.no_grad()
    def load(self, numbers: NDArray[np.float32]) -> None:
        """Take all numbers from what `numbers` returned; means and spreads stay as they are."""
        rest = torch.from_numpy(numbers)

        def take(*shape: int) -> Tensor:
            nonlocal rest
            part, rest = rest[: math.prod(shape)], rest[math.prod(shape) :]
            return part.reshape(shape)

        self.low.copy_(take(FEATURES))
        self.high.copy_(take(FEATURES))
        bias, weight = take(UNITS[0]), take(FEATURES, UNITS[0]).T
        self.first.weight.copy_((weight * self.spread)[:, :, None, None])
        self.first.bias.copy_(bias + weight @ self.mean)
        for layer in self.layers():
            if layer.bias is not None:
                layer.bias.copy_(take(len(layer.bias)))
            outputs, inputs, *sides = layer.weight.shape
            layer.weight.copy_(take(inputs, *sides, outputs).permute(3, 0, 1, 2))
        assert not len(rest)

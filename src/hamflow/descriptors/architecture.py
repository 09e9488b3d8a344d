"""The layers of a descriptor network, without its weights (Figure 1 of the paper).

The layers are defined only here: the network that is trained, the graph that is exported and the
check of the shapes in a file all follow from this definition.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from hamflow._check import check_range
from hamflow._tables import build
from hamflow.errors import InputError

Kind = Literal["paper", "context", "coarse"]

CELL = 4
"""Side of a cell of the coarse network, in pixels."""
_LARGEST = 1024  # channels; far above anything sensible, far below what would exhaust memory


@dataclass(frozen=True)
class Architecture:
    """A siamese descriptor network: an image becomes H×W×m numbers from -1 to 1.

    The signs of the numbers are the bits. H and W are those of the image, or of a grid of cells.

    Parameters
    ----------
    kind : "paper", "context" or "coarse"
        ``paper``: the network of the paper (section 3.1, Figure 1). A 3×3 layer, then 2×2 layers,
        tanh after each, no stride; the image is padded once, by replicating its border.
        ``context``: some components from such a network, and others with a larger receptive field:
        a first layer of sparse taps at several distances, then a 2×2 and two 1×1 layers, tanh after
        each.
        ``coarse``: one descriptor for each cell of 4×4 pixels, from a residual network that sees
        hundreds of pixels; for the search of large displacements.
    layers : int
        Layers of the paper's network: it sees (layers + 2)² pixels. Odd.
    channels : int
        Channels of all but the last of these.
    m : int
        Components of a descriptor; 64 of them make the bits of one word.
    local : int
        In the context network: how many components come from a network like the paper's.
    wide : int
        In the context network: channels of the part with the large receptive field.
    scales : tuple of int
        Distances between the taps of that part, in pixels.
    taps : int
        It has taps × taps taps at each scale. Odd.
    widths : tuple of int
        In the coarse network: channels at 1/2, 1/4 and 1/8 of the size.
    dilations : tuple of int
        In the coarse network: distances of the taps in the residual blocks at 1/8 of the size.
    """

    kind: Kind = "paper"
    layers: int = 7
    channels: int = 96
    m: int = 64
    local: int = 24
    wide: int = 128
    scales: tuple[int, ...] = (1, 3, 6, 10)
    taps: int = 5
    widths: tuple[int, ...] = (32, 64, 96)
    dilations: tuple[int, ...] = (1, 2, 4, 8, 2, 1)

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise InputError(f"kind must be {' or '.join(get_args(Kind))}, not {self.kind!r}.")
        check_range(self, "layers", 3, 31, whole=True)
        check_range(self, "taps", 1, 15, whole=True)
        for name in ("layers", "taps"):
            if getattr(self, name) % 2 == 0:
                raise InputError(f"{name} must be odd, but is {getattr(self, name)}.")
        for name in ("channels", "wide", "m"):
            check_range(self, name, 1, _LARGEST, whole=True)
        if not 1 <= len(self.scales) <= 16 or not all(1 <= s <= 64 for s in self.scales):
            raise InputError(f"scales must be 1 to 16 numbers from 1 to 64, not {self.scales}.")
        if len(self.widths) != 3 or not all(1 <= w <= _LARGEST for w in self.widths):
            raise InputError(f"widths must be 3 numbers from 1 to {_LARGEST}, not {self.widths}.")
        if len(self.dilations) > 64 or not all(1 <= d <= 64 for d in self.dilations):
            raise InputError(f"dilations must be numbers from 1 to 64, not {self.dilations}.")
        if self.kind == "context":
            check_range(self, "local", max(1, self.m - self.wide), self.m - 1, whole=True)

    @property
    def cell(self) -> int:
        """Side of the square of pixels that has one descriptor; 1 if each pixel has its own."""
        return CELL if self.kind == "coarse" else 1

    @property
    def margin(self) -> int:
        """The radius of the receptive field in pixels; tiles must overlap by this much.

        A coarse network has none: it compares each color with the mean of the whole image.
        """
        if self.kind == "coarse":
            raise InputError("A coarse network has no margin; describe the whole image at once.")
        near = (self.layers + 1) // 2
        return near if self.kind == "paper" else max(near, self.reach + 1)

    @property
    def reach(self) -> int:
        """The radius of the taps of the context network; from scale 2 on they blur by 1 pixel."""
        return max(scale * (self.taps // 2) + (scale > 1) for scale in self.scales)

    def parameters(self) -> dict[str, tuple[int, ...]]:
        """Return the names and shapes of all weights, in the order of the layers."""
        shapes: dict[str, tuple[int, ...]] = {}
        for name, (out, into, size) in self.convolutions().items():
            shapes[f"{name}.weight"] = (out, into, size, size)
            shapes[f"{name}.bias"] = (out,)
        return shapes

    def convolutions(self) -> dict[str, tuple[int, int, int]]:
        """Return output channels, input channels and size of each convolution, by name."""
        if self.kind == "paper":
            return self._chain("layers", self.m)
        if self.kind == "coarse":
            return self._residual()
        found = self._chain("local", self.local)
        found |= {f"taps.{i}": (self.wide, 3, self.taps) for i in range(len(self.scales))}
        found |= {"wide.0": (self.wide, self.wide, 2), "wide.1": (self.wide, self.wide, 1)}
        found["wide.2"] = (self.m - self.local, self.wide, 1)
        return found

    def cost(self) -> int:
        """Return the multiplications per pixel."""
        pixels = {"half": 4, "blocks": 64, "eighth": 64, "far": 64} if self.kind == "coarse" else {}
        return sum(
            out * into * size**2 // pixels.get(name.split(".")[0], self.cell**2)
            for name, (out, into, size) in self.convolutions().items()
        )

    def metadata(self) -> dict[str, Any]:
        """Return the description of the network for a file, ready for JSON."""
        plain = {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(self).items()}
        if self.kind != "coarse":  # files of the other networks stay as earlier versions wrote them
            del plain["widths"], plain["dilations"]
        return plain

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Architecture:
        """Return the architecture that `metadata` described; missing entries have their default.

        Raises an InputError if an entry is unknown, of another type, or out of range.
        """
        found: Architecture = build(cls, values)
        return found

    def _residual(self) -> dict[str, tuple[int, int, int]]:
        """Return the layers of the coarse network; its inputs are colors and local contrast.

        The sizes of layers that halve the image are even, so that a cell is seen from its center.
        """
        half, quarter, eighth = self.widths
        found = {"half": (half, 4, 6), "quarter": (quarter, half, 4)}
        found |= {f"near.{part}": (quarter, quarter, 3) for part in ("first", "second")}
        found["eighth"] = (eighth, quarter, 4)
        for block in range(len(self.dilations)):
            found |= {f"blocks.{block}.{p}": (eighth, eighth, 3) for p in ("first", "second")}
        found |= {"far": (quarter, eighth, 1), "near.last": (quarter, quarter, 3)}
        return found | {"head": (self.m, quarter, 1)}

    def _chain(self, name: str, out: int) -> dict[str, tuple[int, int, int]]:
        last = self.layers - 1
        found = {f"{name}.0": (self.channels, 3, 3)}
        found |= {f"{name}.{i}": (self.channels, self.channels, 2) for i in range(1, last)}
        return found | {f"{name}.{last}": (out, self.channels, 2)}

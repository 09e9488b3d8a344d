"""What a descriptor network consists of, without any of its weights.

The one place that knows the layers: the network that learns, the graph that is exported and the
check of a file's shapes are all built from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from hamflow.errors import InputError

Kind = Literal["paper", "context"]

_LARGEST = 1024  # channels; far above anything sensible, far below what would exhaust memory


@dataclass(frozen=True)
class Architecture:
    """A siamese descriptor network: image → H×W×m numbers in -1..1, whose signs are the bits.

    Parameters
    ----------
    kind : "paper" or "context"
        ``paper``: the paper's (section 3.2). A 3×3 layer, then 2×2 layers, tanh after each, no
        stride; the image is continued by its outermost pixels, once for the whole network.
        ``context``: an hourglass of few, cheap layers at coarser and coarser resolutions, so that
        a pixel sees more of its surroundings, at a third of the cost of 7 of the paper's layers.
    layers : int
        Layers of the paper's network: it sees (layers + 2)² pixels. Odd.
    channels : int
        Channels of all but the last layer of the paper's network.
    widths : tuple of int
        Channels of the context network at full, half, quarter, … resolution.
    m : int
        Components of a descriptor; 64 of them make the bits of one word.
    contrast : int
        Radius in pixels of the box over which the image is brought to mean 0 and contrast 1
        before the first layer; 0 for none.
    """

    kind: Kind = "paper"
    layers: int = 7
    channels: int = 96
    widths: tuple[int, ...] = (32, 64, 96)
    m: int = 64
    contrast: int = 0

    def __post_init__(self) -> None:
        if self.kind not in ("paper", "context"):
            raise InputError(f"kind must be paper or context, not {self.kind!r}.")
        if not 3 <= self.layers <= 31 or self.layers % 2 == 0:
            raise InputError(f"layers must be odd, from 3 to 31, but is {self.layers}.")
        if not 2 <= len(self.widths) <= 6:
            raise InputError(f"widths must name 2 to 6 resolutions, but has {len(self.widths)}.")
        for name, value in (
            ("channels", self.channels),
            ("m", self.m),
            *(("widths", w) for w in self.widths),
        ):
            if not 1 <= value <= _LARGEST:
                raise InputError(f"{name} must be from 1 to {_LARGEST}, but is {value}.")
        if not 0 <= self.contrast <= 64:
            raise InputError(f"contrast must be from 0 to 64, but is {self.contrast}.")

    @property
    def margin(self) -> int:
        """How far, in pixels, a descriptor looks; tiles must overlap by that much."""
        if self.kind == "paper":
            return (self.layers + 1) // 2 + 2 * self.contrast
        return self._hourglass_margin() + 2 * self.contrast

    @property
    def alignment(self) -> int:
        """Tiles must start at multiples of this; sizes are filled up to them."""
        return 1 if self.kind == "paper" else 2 ** (len(self.widths) - 1)

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
            inner = {
                f"layers.{i}": (self.channels, self.channels, 2) for i in range(1, self.layers - 1)
            }
            last = {f"layers.{self.layers - 1}": (self.m, self.channels, 2)}
            return {"layers.0": (self.channels, 3, 3)} | inner | last
        widths, found = self.widths, {}
        for level, width in enumerate(widths):
            found[f"down.{level}.0"] = (width, widths[level - 1] if level else 3, 3)
            found[f"down.{level}.1"] = (width, width, 3)
        found["bottom"] = (widths[-1], widths[-1], 3)
        for level in reversed(range(len(widths) - 1)):
            found[f"lift.{level}"] = (widths[level], widths[level + 1], 1)
            if level:
                found[f"merge.{level}"] = (widths[level], widths[level], 3)
        found["out"] = (self.m, widths[0], 3)
        return found

    def cost(self) -> float:
        """Return the multiplications per pixel."""
        total = 0.0
        for name, (out, into, size) in self.convolutions().items():
            # The number in a name is the resolution's; a 1×1 layer runs before it is enlarged.
            level = {"bottom": len(self.widths) - 1, "out": 0}.get(name)
            if level is None:
                level = int(name.split(".")[1]) + (size == 1)
            total += out * into * size**2 / (4**level if self.kind == "context" else 1)
        return total

    def metadata(self) -> dict[str, Any]:
        """Return what a file has to say about the network."""
        return asdict(self)

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Architecture:
        """Return the architecture that `metadata` described.

        Raises
        ------
        InputError
            If a value is missing, unknown, of another type, or out of range.
        """
        known = asdict(cls())
        if set(values) != set(known):
            raise InputError("The description of the network has missing or unknown entries.")
        checked: dict[str, Any] = {}
        for name, default in known.items():
            value = values[name]
            if isinstance(default, tuple):
                if not isinstance(value, list | tuple) or not all(type(v) is int for v in value):
                    raise InputError(f"{name} must be a list of whole numbers, not {value!r}.")
                value = tuple(value)
            elif type(value) is not type(default):
                raise InputError(f"{name} must be of type {type(default).__name__}, not {value!r}.")
            checked[name] = value
        return cls(**checked)

    def _hourglass_margin(self) -> int:
        # Per resolution: two layers down, one on the way up or at the end, and one coarse pixel
        # each for averaging and for enlarging bilinearly.
        reach = sum((3 + 2 * (level > 0)) * 2**level for level in range(len(self.widths)))
        return -(-reach // self.alignment) * self.alignment

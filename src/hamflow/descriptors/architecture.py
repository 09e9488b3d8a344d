"""What a descriptor network consists of, without any of its weights.

The one place that knows the layers: the network that learns, the graph that is exported and the
check of a file's shapes are all built from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from hamflow.errors import InputError

Kind = Literal["paper", "context", "mixed"]

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
    local : int
        Components of the mixed network that come from a network like the paper's; the others see
        far.
    wide : int
        Channels of the part of the mixed network that sees far.
    scales : tuple of int
        Distances of the taps of its first layer, in pixels.
    taps : int
        How many taps to the side that layer has at each scale. Odd.
    """

    kind: Kind = "paper"
    layers: int = 7
    channels: int = 96
    widths: tuple[int, ...] = (32, 64, 96)
    m: int = 64
    contrast: int = 0
    local: int = 24
    wide: int = 128
    scales: tuple[int, ...] = (1, 3, 6, 10)
    taps: int = 5

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise InputError(f"kind must be one of {', '.join(get_args(Kind))}, not {self.kind!r}.")
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
        if not 1 <= len(self.scales) <= 16 or not all(1 <= s <= 64 for s in self.scales):
            raise InputError(f"scales must be up to 16 numbers from 1 to 64, not {self.scales}.")
        if not 1 <= self.taps <= 15 or self.taps % 2 == 0:
            raise InputError(f"taps must be odd, from 1 to 15, but is {self.taps}.")
        if self.kind == "mixed" and not 1 <= self.local < self.m <= self.local + self.wide:
            raise InputError(
                f"local must leave from 1 to {self.wide} of {self.m} components, but is "
                f"{self.local}."
            )
        if not 0 <= self.contrast <= 64:
            raise InputError(f"contrast must be from 0 to 64, but is {self.contrast}.")

    @property
    def margin(self) -> int:
        """How far, in pixels, a descriptor looks; tiles must overlap by that much."""
        if self.kind == "paper":
            return (self.layers + 1) // 2 + 2 * self.contrast
        if self.kind == "mixed":
            return max((self.layers + 1) // 2, self.reach + 1)
        return self._hourglass_margin() + 2 * self.contrast

    @property
    def reach(self) -> int:
        """How far the first layer of the mixed network looks; from scale 2 on it blurs by 1."""
        return max(scale * (self.taps // 2) + (scale > 1) for scale in self.scales)

    @property
    def alignment(self) -> int:
        """Tiles must start at multiples of this; sizes are filled up to them."""
        return 2 ** (len(self.widths) - 1) if self.kind == "context" else 1

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
        if self.kind == "mixed":
            return self._mixed()
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
            if self.kind != "context":
                total += out * into * size**2
                continue
            level = {"bottom": len(self.widths) - 1, "out": 0}.get(name)
            if level is None:
                level = int(name.split(".")[1]) + (size == 1)
            total += out * into * size**2 / 4**level
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
            If a value is unknown, of another type, or out of range.
        """
        known = asdict(cls())
        if not set(values) <= set(known):
            raise InputError("The description of the network has unknown entries.")
        checked: dict[str, Any] = {}
        for name, value in values.items():
            default = known[name]
            if isinstance(default, tuple):
                if not isinstance(value, list | tuple) or not all(type(v) is int for v in value):
                    raise InputError(f"{name} must be a list of whole numbers, not {value!r}.")
                checked[name] = tuple(value)
            elif type(value) is type(default):
                checked[name] = value
            else:
                raise InputError(f"{name} must be of type {type(default).__name__}, not {value!r}.")
        return cls(**checked)

    def _mixed(self) -> dict[str, tuple[int, int, int]]:
        near, far = self.channels, self.wide
        found = {"local.0": (near, 3, 3)}
        found |= {f"local.{i}": (near, near, 2) for i in range(1, self.layers - 1)}
        found[f"local.{self.layers - 1}"] = (self.local, near, 2)
        found |= {f"taps.{i}": (far, 3, self.taps) for i in range(len(self.scales))}
        found |= {"wide.0": (far, far, 2), "wide.1": (far, far, 1)}
        found["wide.2"] = (self.m - self.local, far, 1)
        return found

    def _hourglass_margin(self) -> int:
        # Per resolution: two layers down, one on the way up or at the end, and one coarse pixel
        # each for averaging and for enlarging bilinearly.
        reach = sum((3 + 2 * (level > 0)) << level for level in range(len(self.widths)))
        return -(-reach // self.alignment) * self.alignment

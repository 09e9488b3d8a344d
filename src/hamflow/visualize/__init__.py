"""Pictures of a flow: colors, arrows, overlays, a map of its errors, and the keys to them.

Every function returns a uint8 image in RGB. One rule of scale holds for all of them, for the
methods of `hamflow.FlowResult`, and for the commands:

- Full color, and the longest arrow, is `typical_length`: the 95th percentile of the lengths of the
  known vectors, at least 1 pixel. `max_flow` sets it to a fixed number of pixels instead.
- A longer vector is clamped: it has the full color of its direction.
- In a video the scale follows the frames by `RunningScale`, or `common_length` of all frames is
  the scale of each.
"""

from hamflow.visualize.arrows import draw_arrows
from hamflow.visualize.colors import color_wheel, flow_to_color
from hamflow.visualize.errors import error_map
from hamflow.visualize.key import add_arrow_key, add_key, wheel_picture
from hamflow.visualize.scale import RunningScale, common_length, typical_length
from hamflow.visualize.styles import STYLES, Style, overlay, render, side_by_side

__all__ = [
    "STYLES",
    "RunningScale",
    "Style",
    "add_arrow_key",
    "add_key",
    "color_wheel",
    "common_length",
    "draw_arrows",
    "error_map",
    "flow_to_color",
    "overlay",
    "render",
    "side_by_side",
    "typical_length",
    "wheel_picture",
]

# The public names.
from .drawing import TrackPainter as TrackPainter
from .tracks import TrackedFrame as TrackedFrame
from .tracks import Tracks as Tracks
from .tracks import read_points as read_points
from .tracks import track as track
from .tracks import tracked as tracked

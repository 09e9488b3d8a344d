"""What the flow of a video is good for: tracks, frames in between, steady pictures, what moves."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

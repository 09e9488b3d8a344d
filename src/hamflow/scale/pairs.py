"""What a pair of many is: a name, and where its two images are."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ImagePair:
    """Two images, each a file or a frame of a video.

    Parameters
    ----------
    name : str
        The name of its files below the output folder, with ``/`` and without a suffix.
    image0, image1 : str
        Paths or URLs of two images, or twice the same video.
    frame0, frame1 : int, optional
        The numbers of the frames from 0, if it is a video.
    """

    name: str
    image0: str
    image1: str
    frame0: int | None = None
    frame1: int | None = None

    @property
    def first(self) -> tuple[str, int | None]:
        """The file and the frame of the first image."""
        return self.image0, self.frame0

    @property
    def second(self) -> tuple[str, int | None]:
        """The file and the frame of the second image."""
        return self.image1, self.frame1

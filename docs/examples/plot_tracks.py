"""
Follow points through a video
=============================

`hamflow.track` follows points from frame to frame, also while they are hidden. Here the frames are
rendered; a path to a video file works in the same way.
"""

from matplotlib import pyplot as plt

import hamflow
from hamflow.datasets import SyntheticConfig
from hamflow.datasets.synthetic import SyntheticFilm, load_textures
from hamflow.motion import TrackPainter, tracked

config = SyntheticConfig(height=160, width=240, max_displacement=12, max_layers=3, clean=True)
film = SyntheticFilm(config, seed=5, textures=load_textures(), frames=6)

tracks = hamflow.track(film.images, grid=20, preset="fast")
print(f"{tracks.positions.shape[1]} points through {tracks.positions.shape[0]} frames")
print(f"{tracks.visible[-1].mean():.0%} are visible in the last frame")

# %%
# ``tracked`` gives the points frame by frame, for a loop of your own. A disc is a visible point, a
# ring a hidden one.

estimator = hamflow.Estimator("fast")
painter = TrackPainter(trail=None)
for state in tracked(hamflow.video(film.images, "fast"), estimator, grid=20):
    painter.add(state)
plt.figure(figsize=(8, 5.4), layout="constrained")
plt.imshow(painter.draw(state.frame))
plt.axis("off")
plt.show()

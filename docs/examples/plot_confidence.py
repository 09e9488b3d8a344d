"""
Keep the vectors that you can trust
===================================

``confidence`` is 1 / (1 + e), where pixels like this one are wrong by e pixels on average. Leaving
out the least confident pixels should therefore leave out the largest errors first. How well it does
is the sparsification curve: the mean error of what remains.
"""

import numpy as np
from matplotlib import pyplot as plt

import hamflow
from hamflow.datasets import SyntheticConfig
from hamflow.datasets.synthetic import load_textures, render_scene

config = SyntheticConfig(height=256, width=384, max_displacement=60)
scene = render_scene(config, seed=11, textures=load_textures())
result = hamflow.estimate(scene.image0, scene.image1, preset="fast")
error = hamflow.endpoint_error(result.flow, scene.flow)

figure, axes = plt.subplots(1, 2, figsize=(9, 3), layout="constrained")
for axis, title, values in (
    (axes[0], "true error in pixels", error),
    (axes[1], "expected error, 1 / confidence - 1", 1 / result.confidence - 1),
):
    shown = axis.imshow(np.clip(values, 0.05, 20), norm="log", cmap="magma")
    axis.set_title(title)
    axis.axis("off")
figure.colorbar(shown, ax=axes)

# %%
# The curve by confidence lies close to the best one that is possible, which knows the true errors.


def remaining(order):
    """Return the mean error of what remains when the first pixels of the order are left out."""
    ordered = error.ravel()[order][::-1]
    return (np.cumsum(ordered) / np.arange(1, ordered.size + 1))[::-1]


kept = np.linspace(0, 1, error.size)
plt.figure(figsize=(6, 3.5), layout="constrained")
plt.plot(kept, remaining(np.argsort(result.confidence.ravel())), label="by confidence")
plt.plot(kept, remaining(np.argsort(-error.ravel())), "--", label="by the true error")
plt.xlabel("share of the pixels that is left out")
plt.ylabel("mean error of the others in px")
plt.xlim(0, 0.95)
plt.ylim(bottom=0)
plt.legend()
plt.show()

"""
Flow, occlusion and confidence of a pair
========================================

One call gives the flow of two images in both directions, what is hidden, and how sure each vector
is. The scene is rendered, so the true flow is known as well.
"""

from matplotlib import pyplot as plt

import hamflow
from hamflow.datasets import demo_scene

scene = demo_scene()
result = hamflow.estimate(scene.image0, scene.image1)

error = hamflow.endpoint_error(result.flow, scene.flow)
print(f"mean error {error.mean():.2f} px, visible pixels {error[~scene.occluded].mean():.2f} px")

# %%
# Colors say where a pixel moves: the hue is the direction, and full color is the length that the
# title names. Both flows have the same scale.

length = hamflow.visualize.typical_length(scene.flow)
panels = {
    "first image": scene.image0,
    "second image": scene.image1,
    f"flow, full color = {length:.0f} px": result.to_color(max_flow=length),
    "true flow": hamflow.flow_to_color(scene.flow, max_flow=length),
    "occlusion": result.occlusion,
    "confidence": result.confidence,
}
figure, axes = plt.subplots(3, 2, figsize=(9, 8), layout="constrained")
for axis, (title, picture) in zip(axes.flat, panels.items(), strict=True):
    axis.imshow(picture, cmap="gray", vmin=0, vmax=1 if picture.ndim == 2 else None)
    axis.set_title(title)
    axis.axis("off")

# %%
# The second image, warped by the flow, looks like the first one, except in what is occluded.

figure, axes = plt.subplots(1, 2, figsize=(9, 2.8), layout="constrained")
warped = result.warp(scene.image1)
warped[result.occlusion] = 255
for axis, title, picture in zip(
    axes,
    ("first image", "second image, warped; occluded in white"),
    (scene.image0, warped),
    strict=True,
):
    axis.imshow(picture)
    axis.set_title(title)
    axis.axis("off")

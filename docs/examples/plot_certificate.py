"""
The joint model and its certificate
===================================

`hamflow.crf.solve` minimizes the energy of the paper's CRF over u and v. Beside the labels it
returns a lower bound that no labeling can be below. The gap between both says how far from the
optimum the result can be at most.
"""

import numpy as np
from matplotlib import pyplot as plt

from hamflow import crf, matching, pair_bits
from hamflow.datasets import demo_scene

scene = demo_scene(128, 192)
bits0, bits1 = pair_bits(scene.image0), pair_bits(scene.image1)
window = 64

config = crf.CrfConfig(outer=6, inner=4, gap_tolerance=0)
result = crf.solve(bits0=bits0, bits1=bits1, image=scene.image0, window=window, config=config)
print(f"energy {result.energy:.0f}, bound {result.bound:.0f}, gap {result.gap:.2%}")

# %%
# Energy and bound come closer with every outer iteration.

steps = np.arange(1, len(result.history) + 1)
plt.figure(figsize=(6, 3.5), layout="constrained")
plt.plot(steps, [step.energy for step in result.history], "o-", label="energy E")
plt.plot(steps, [step.bound for step in result.history], "s-", label="lower bound Ψ")
plt.xlabel("outer iteration")
plt.legend()

# %%
# Winner takes all decides for every pixel by itself; the joint model makes neighbors agree.

local = matching.min_projection(bits0, bits1, window).wta()
figure, axes = plt.subplots(1, 2, figsize=(9, 3), layout="constrained")
for axis, title, flow in (
    (axes[0], "winner takes all", local),
    (axes[1], "joint model", result.flow),
):
    error = np.hypot(*(flow - scene.flow)[~scene.occluded].T)
    axis.imshow(np.hypot(*np.moveaxis(flow - scene.flow, 2, 0)), vmax=10, cmap="magma")
    axis.set_title(f"{title}: {error.mean():.1f} px where visible")
    axis.axis("off")

"""Scenes in space that Blender renders, with true flow: another kind than Hamflow's own.

    python -m experiments.blender PHOTOGRAPHS FOLDER [--count 1000] [--seed 1]

needs an environment of its own: Python 3.11 with the packages bpy, OpenEXR, numpy and pillow. It
does not import Hamflow. Every scene is drawn at random here: landscapes, streets, rooms, close-ups
and things in the air, with figures that move their limbs, stones, boxes, plants and waving cloth,
with shadows, reflections, depth of field, motion blur, fog, darkness and noise. The photographs are
textures; no other assets are used.

Each pair is a folder, FOLDER/blender/NNNNN, as `FolderDataset` reads it: frame1.png, frame2.png,
flow.flo and occ.png; beside them backward.flo. The flows are exact, also where a point is hidden.
Pairs that are there already are not made again.
"""

"""Measurements behind ``hamflow bench``: speed and memory on this machine, peers in one run."""

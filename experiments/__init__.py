"""Hamflow's own benchmarks and experiments; they are not part of the installed package."""

"""Measurements of speed, memory and errors on this machine, with peers in the same run."""

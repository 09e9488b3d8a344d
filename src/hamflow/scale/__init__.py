"""Many pairs: on all cores of one machine, or on a Ray cluster."""

"""The laboratory: benchmarks, the paper's experiments, and fits; not a part of the package."""

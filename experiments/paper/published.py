"""The numbers of the paper, exactly as printed.

G. Munda, A. Shekhovtsov, P. Knöbelreiter, T. Pock: Scalable Full Flow with Learned Binary
Descriptors. GCPR 2017. Errors are endpoint errors in pixels on Sintel clean, times are seconds.
"""

from __future__ import annotations

from typing import NamedTuple

PAPER = "Munda et al., GCPR 2017"

Errors = tuple[float, float]
"""Endpoint errors over visible (noc) and over all pixels."""


class Timing(NamedTuple):
    """One row of Table 2; None where the paper has no number."""

    features: Errors
    """Feature extraction: shortest and longest time, for 5 to 9 layers."""
    wta: float
    full: float | None


TABLE1: dict[tuple[str, int], dict[str, Errors | None]] = {
    ("FF", 5): {
        "trained": (5.25, 10.38),
        "qq": (10.45, 15.67),
        "crf_f": (1.58, 4.48),
        "crf_q": (1.64, 4.87),
    },
    ("FF", 7): {
        "trained": (4.72, 10.04),
        "qq": (9.43, 14.93),
        "crf_f": (1.53, 4.32),
        "crf_q": (1.61, 4.70),
    },
    ("FF", 9): {"trained": None, "qq": None, "crf_f": None, "crf_q": None},
    ("FQ", 5): {
        "trained": (6.15, 11.36),
        "qq": (11.43, 16.78),
        "crf_f": None,
        "crf_q": (1.63, 4.62),
    },
    ("FQ", 7): {
        "trained": (5.62, 10.98),
        "qq": (10.15, 15.70),
        "crf_f": None,
        "crf_q": (1.65, 4.62),
    },
    ("FQ", 9): {
        "trained": (5.62, 11.13),
        "qq": (9.87, 15.52),
        "crf_f": None,
        "crf_q": (1.64, 4.69),
    },
    ("QQ", 5): {"trained": None, "qq": (9.63, 14.80), "crf_f": None, "crf_q": (1.72, 4.91)},
    ("QQ", 7): {"trained": None, "qq": (9.75, 15.23), "crf_f": None, "crf_q": (1.66, 4.78)},
    ("QQ", 9): {"trained": None, "qq": (9.72, 15.31), "crf_f": None, "crf_q": (1.72, 4.85)},
}
"""Table 1: errors on a validation set at scale 1/2, by training and layers.

``trained`` and ``qq`` are the local model (winner takes all), as trained and on bits; ``crf_f`` and
``crf_q`` are the joint model on floats and on bits. None means not given: the paper did not train
FF with 9 layers because of the time, FQ and QQ are not used with floats in the joint model, and
``trained`` of QQ is the same as its ``qq``.
"""

TIMINGS: dict[str, Timing] = {
    "FF": Timing((0.04, 0.08), 4.25, 24.8),
    "FQ": Timing((0.04, 0.08), 1.82, None),
    "QQ": Timing((0.04, 0.08), 0.07, 3.2),
    "DCFlow (1/3 res.)": Timing((0.02, 0.02), 0.06, 3.4),
    "QQ (1/3 res.)": Timing((0.004, 0.008), 0.007, 0.32),
}
"""Table 2: seconds for D = 128 on images of full resolution."""

TIMINGS_MACHINE = "Intel i7 6700K and Nvidia Titan X"

OURS = "Ours QQ"
"""The name of the paper's own method in Table 3."""

COMPARISON: dict[str, Errors] = {
    "EpicFlow": (1.360, 4.115),
    "FullFlow": (1.296, 3.601),
    "FlowFields": (1.056, 3.748),
    "DCFlow": (1.103, 3.537),
    OURS: (2.470, 8.972),
}
"""Table 3: errors on the Sintel clean test set, measured by the benchmark's server."""

SPEEDUP_IN_THEORY = 32
"""How many times faster bits should be than floats, in theory."""

MEMORY_SIZE = (1024, 436)
"""Width and height in the example of section 3.1."""
MEMORY_D = 256
MEMORY_4D_GB = 108.0
"""Gigabytes of the full 4D cost in that example, as the paper rounds it."""
MEMORY_OURS_GB = 0.8
"""Gigabytes of c^u and c^v in that example."""

CRF_SCHEDULE = (5, 8)
"""Outer and inner iterations."""

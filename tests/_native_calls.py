"""Good arguments of the compiled functions, for tests that call them past the checks of Python."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from _choice_reference import SIZE as CHOICE_SIZE
from hamflow import _native

Array = NDArray[Any]
Arguments = dict[str, Any]

WINDOW = (-1, 3, -1, 2)
H, W = 4, 5


def volume(dtype: Any, labels: int) -> Array:
    return np.zeros((H, W, labels), dtype)


def fields(kind: str) -> Arguments:
    if kind == "bits":
        return {name: np.zeros((H, W), np.uint64) for name in ("bits0", "bits1")}
    return {name: np.zeros((H, W, 6), np.float32) for name in ("phi0", "phi1")}


def zeros(*shape: int, dtype: Any = np.float32) -> Array:
    return np.zeros(shape, dtype)


def matching() -> dict[str, Arguments]:
    f32, i16 = np.float32, np.int16
    bits, phi = fields("bits"), fields("phi")
    window = {"window": WINDOW}
    argmins = {"v_hat": volume(i16, 3), "u_hat": volume(i16, 2)}
    costs = {"cu": volume(f32, 3), "cv": volume(f32, 2)}
    flow = {"v_labels": np.zeros((H, W), i16), "flow": volume(f32, 2)}
    to_u: Arguments = {"to": "u", "lam": volume(f32, 2), "out": volume(f32, 3)}
    to_u16: Arguments = {"to": "u", "lam": volume(i16, 2), "out": volume(i16, 3)}
    labels = {"first": -1, "labels": np.zeros((H, W), i16)}
    return {
        "min_projection": bits
        | window
        | {"outside": 32, "cu": volume(np.uint8, 3), "cv": volume(np.uint8, 2)}
        | argmins,
        "message16": bits | window | to_u16 | {"cost": (2, -64, 0)},
        "message32": bits | window | to_u | {"cost": (2.0, -64.0, 0.0)},
        "float_min_projection": phi | window | {"outside": 0.0} | costs | argmins,
        "float_message": phi | window | to_u | {"outside": 0.0},
        "gather": phi | window | {"outside": 0.0} | argmins | costs,
        "scatter": phi
        | window
        | argmins
        | {"grad_cu": volume(f32, 3), "grad_cv": volume(f32, 2)}
        | {"grad_phi0": volume(f32, 6), "grad_phi1": volume(f32, 6)},
        "best_labels": labels | {"costs": volume(f32, 3)},
        "rescan_bits": bits | window | {"outside": 32} | flow,
        "rescan_phi": phi | window | {"outside": 0.0} | flow,
    }


def completion_and_refinement() -> dict[str, Arguments]:
    steps = {"right": zeros(H, W), "down": zeros(H, W)}
    pixel = {"pixel": zeros(1, dtype=np.int32)}
    pair = {"f0": zeros(H, W, 8), "f1": zeros(H, W, 8)}
    flow = zeros(H, W, 2)
    seeds = {"place": zeros(1, 2), "match": zeros(1, 2)}
    masked = flow, zeros(H, W, dtype=np.uint8)
    ways = {"flow": flow, "backward": zeros(H, W, 2), "hiding": (0.01, 0.5)}
    return {
        "reduce": {"image": zeros(H, W, 3), "factor": 2, "out": zeros(2, 3, 3)},
        "smooth": {"image": zeros(H, W, 3), "weights": zeros(3), "smoothed": zeros(H, W, 3)},
        "contrasts": {"image": zeros(H, W, 3)} | steps,
        "choose_seeds": {"flow": flow, "trusted": masked[1], "cell": H + W}
        | pixel
        | seeds
        | {"trust": zeros(1)},
        "plane_motions": {"planes": np.zeros((1, 9)), "motion": zeros(1, H, W, 2)},
        "there_and_back": ways | {"apart": zeros(H, W), "hidden": masked[1]},
        "assess": {"flow": flow, "backward": zeros(H, W, 2)}
        | {"first": zeros(H, W, 8), "second": zeros(H, W, 8), "cover": zeros(H, W)}
        | {"coarse": zeros(1, 1, 11), "scale": 9, "sizes": (1.0, 1.0), "network": zeros(815)}
        | {"evidence": None, "confidence": zeros(H, W), "occlusion": zeros(H, W)},
        "look_at_targets": {"flow": flow, "texture": zeros(H, W), "trusted": masked[1]}
        | {"first": zeros(H, W, dtype=np.uint64), "second": zeros(H, W, dtype=np.uint64)}
        | {"out": zeros(H, W, 3)},
        "count_arrivals": {"flow": flow, "cover": zeros(H, W)},
        "interpolate": steps
        | pixel
        | seeds
        | {"trust": np.ones(1, np.float32), "how": (1, 0.5, 1.0, 1)}
        | {"flow": flow, "distance": zeros(H, W)},
        "find_planes": seeds
        | {"models": zeros(1, 6), "how": (1, 1, 1.0)}
        | {"planes": np.zeros((1, 9)), "plane": zeros(1, dtype=np.int32)},
        "geodesic_distances": steps
        | {"source": zeros(2, H, W, dtype=np.uint8), "rounds": 1, "distance": zeros(2, H, W)},
        "score_candidates": pixel
        | {"bits": tuple(fields("bits").values()), "motion": zeros(2, H, W, 2)}
        | {"matched": masked, "back": masked, "geodesic": zeros(2, H, W)}
        | {"texture": zeros(H, W), "size": zeros(2), "range": (0.0, 0.0, 1.0, 1.0)}
        | {"network": zeros(64), "features": None, "score": zeros(1, 2)},
        "color_differences": {"motion": zeros(2, H, W, 2), "step": 2}
        | {"first": zeros(H, W, 3), "second": zeros(H, W, 3)}
        | {"out": zeros(2, (H + 1) // 2, (W + 1) // 2)},
        "score_in_context": {"features": zeros(2, 23, H, W), "fields": zeros(3, H, W)}
        | {"network": zeros(CHOICE_SIZE), "score": zeros(2, H, W)},
        "choose_candidates": steps
        | pixel
        | {"unary": zeros(1, 2), "motion": zeros(2, H, W, 2), "how": (1.0, 1)}
        | {"label": zeros(H, W, dtype=np.int32)},
        "variational": pair
        | {"first_group": 3, "strength": (0.1, 1.0), "weight": zeros(H, W)}
        | {"edges": (zeros(H, W), zeros(H, W)), "terms": (1.0, 1.0, 0.1, 0.1)}
        | {"schedule": (1, 1, 1, 1.0), "limit": 1.0, "start": flow, "flow": zeros(H, W, 2)},
        "features": {"image": zeros(H, W, 3), "smoothing": zeros(3), "features": zeros(H, W, 8)},
        "guards": steps
        | {"flow": flow, "weight": zeros(H, W), "boundary": 1.0, "near": 1.0}
        | {"guarded": zeros(H, W)},
        "upsample": {"field": flow, "factor": 2, "out": zeros(2 * H, 2 * W, 2)},
        "choose_motions": pair
        | {"guide": zeros(H, W, 3), "trust": zeros(H, W), "where": (1.0, 1, 1)}
        | {"neighborhood": (1, 1.0, 1.0), "data": (1.0, 1.0), "agreement": (1.0, 1.0, 1.0)}
        | {"margins": (0.1, 0.1), "flow": flow},
    }


def others() -> dict[str, Arguments]:
    bits, window = fields("bits"), {"window": WINDOW}
    edges = {"right": zeros(H, W, 3), "down": zeros(H, W, 3), "reach": 1, "blocks": "rows"}
    u, v = zeros(H, W, dtype=np.int16), zeros(H, W, dtype=np.int16)
    weights = {"right": zeros(H, W), "down": zeros(H, W), "rho": np.zeros(4)}
    texels = {"words": zeros(3, 4, dtype=np.uint64)}
    spots = {"x": zeros(6), "y": zeros(6)}
    mesh = {"points": np.ones((3, 2, 3)), "camera": (1.0, 0.0, 0.0), "near": 0.1}
    lanes = {"lanes": zeros(6, 4, dtype=np.uint16)}
    layers = [
        _native.IntegerLayer(
            np.zeros((32, length), np.int16), np.zeros(32, np.int32), np.zeros(32, "f"), 1, wide
        )
        for length, wide in ((4, True), (32, False))
    ]
    return {
        "chain_pass": {"lam": zeros(H, W, 3), "hold": zeros(H, W, 3), "s": None}
        | {"edges": zeros(H, W, 3), "shares": None, "vertical": False, "reverse": True, "reach": 1},
        "relabel": bits | window | edges | {"cost": (1.0, 0.0, 32.0), "v": v, "u": u},
        "relabel_phi": fields("phi") | window | edges | {"cost": (1.0, 0.0), "v": v, "u": u},
        "label_costs": bits | window | {"u": u, "v": v, "outside": 1.0, "out": np.zeros((H, W))},
        "label_margins": {"slack": zeros(H, W, 3), "labels": u, "out": zeros(H, W)},
        "label_energy": weights | {"u": u, "v": v, "data": np.zeros((H, W))},
        "add_label_costs": {"costs": volume(np.uint8, 3), "labels": u, "total": np.zeros((H, W))},
        "add_scaled": {"volume": zeros(H, W, 3), "values": volume(np.uint8, 3), "factor": 1.5},
        "expected_costs": {"expected": zeros(H, W), "most": zeros(H, W), "slope": 1.0, "free": 1.0}
        | {"first": -1, "out": volume(np.uint8, 3)},
        "fuse": weights
        | {"blocks": "rows", "u": u, "v": v, "data": np.zeros((H, W))}
        | {"other_u": u.copy(), "other_v": v.copy(), "other_data": np.zeros((H, W))},
        "run_chain": {"layers": layers, "input": [(0, 0, False)], "image": zeros(H, W, 3)}
        | {"out": zeros(H, W, 1, dtype=np.uint32), "threads": 1},
        "adopt_opposite": {"opposite": zeros(H, W, 2), "tolerance": 1.0, "flow": zeros(H, W, 2)},
        "carry": {"flow": zeros(H, W, 2), "confidence": zeros(H, W), "along": zeros(H, W, 2)}
        | {"alike": 1.0, "hiding": (0.01, 0.5), "expected": zeros(H, W, 3)},
        "blend": {"measured": zeros(H, W, 2), "confidence": zeros(H, W), "how": (0.3, 0.03, 1.0)}
        | {"expected": zeros(H, W, 3), "changes": zeros(H, W, 3)}
        | {"flow": zeros(H, W, 2), "certain": zeros(H, W)},
        "drop_small": {"mask": zeros(H, W, dtype=np.uint8), "least": 2},
        "look_up": texels | spots | lanes,
        "plane_texels": {"matrix": zeros(3, 3), "places": zeros(1, 4), "nowhere": (0.0, 0.0)}
        | {"solid": False, "at_x": zeros(6), "at_y": zeros(6)}
        | spots,
        "pixels_above": {"image": zeros(H, W), "window": (0, 0, 3, 2), "least": 0.5}
        | {"index": zeros(6, dtype=np.int64)}
        | spots,
        "paint": {"index": zeros(6, dtype=np.int64), "fog": None, "light": zeros(H, W)}
        | {"total": zeros(H, W, 3)}
        | lanes,
        "trace": mesh | spots | {"met": zeros(3, 6)},
        "mesh_lanes": mesh | texels | spots | lanes | {"rays": 3},
        "halve": {"fine": zeros(4, 6, dtype=np.uint64), "coarse": zeros(2, 3, dtype=np.uint64)},
        "png_unfilter": {"lines": zeros(3, 9, dtype=np.uint8), "depth": 4}
        | {"pixels": zeros(3, 8, dtype=np.uint8)},
        "turn": {"array": zeros(H, W, 8, dtype=np.uint8), "out": zeros(W, H, 8, dtype=np.uint8)},
        "clear": {"bytes": zeros(9, dtype=np.uint8)},
        "all_within": {"array": zeros(H, W), "limit": 1.0},
    }


FUNCTIONS = sorted(
    name
    for name in dir(_native)
    if callable(getattr(_native, name))
    and not name.startswith("_")
    and name
    not in {
        *("IntegerLayer", "convolution", "convolutions", "force_convolutions", "force_level"),
        *("add_caller", "get_num_threads", "kept_bytes", "level", "levels", "release_kept"),
        *("room", "run_coarse", "set_num_threads"),
    }
)
"""All compiled functions that take arrays; run_coarse needs a whole network."""


def good_arguments(function: str) -> Arguments:
    """Return good arguments of any of `FUNCTIONS`, all arrays new."""
    return (matching() | completion_and_refinement() | others())[function]

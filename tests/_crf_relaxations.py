"""The LP relaxations of the joint model, solved by HiGHS."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from _crf_problems import Model
from _crf_reference import differences, pairs, product_edge
from _problems import Array


def local_polytope(unaries: list[Array], edges: list[tuple[int, int, Array]]) -> float:
    """The LP relaxation of a pairwise model: marginals of nodes and edges that agree."""
    starts = np.cumsum([0, *(a.size for a in unaries), *(cost.size for _, _, cost in edges)])
    rows: list[Array] = []
    columns: list[Array] = []
    values: list[Array] = []
    right: list[float] = []

    def constrain(plus: Array, minus: Array, total: float) -> None:
        """Σ plus - Σ minus = total."""
        rows.append(np.full(len(plus) + len(minus), len(right)))
        columns.append(np.concatenate([plus, minus]))
        values.append(np.repeat([1.0, -1.0], [len(plus), len(minus)]))
        right.append(total)

    none = np.array([], int)
    for node, costs in enumerate(unaries):
        constrain(starts[node] + np.arange(costs.size), none, 1.0)
    for number, (i, j, cost) in enumerate(edges):
        at = starts[len(unaries) + number] + np.arange(cost.size).reshape(cost.shape)
        for k in range(cost.shape[0]):
            constrain(at[k], np.array([starts[i] + k]), 0.0)
        for k in range(cost.shape[1]):
            constrain(at[:, k], np.array([starts[j] + k]), 0.0)
    matrix = sparse.csr_array(
        (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))),
        shape=(len(right), int(starts[-1])),
    )
    objective = np.concatenate([*(a.ravel() for a in unaries), *(c.ravel() for _, _, c in edges)])
    result = linprog(objective, A_eq=matrix, b_eq=np.array(right), method="highs")
    assert result.status == 0, result.message
    return float(result.fun)


def decomposed_lp(model: Model) -> float:
    """Of the paper's model: nodes u and v for each pixel, and its costs on an edge between them."""
    height, width, du, dv = model.costs.shape
    n = height * width
    unaries = [np.zeros(du)] * n + [np.zeros(dv)] * n
    edges = [(i, n + i, costs) for i, costs in enumerate(model.costs.reshape(n, du, dv))]
    for (y, x), (y2, x2), table in pairs(model):
        i, j = y * width + x, y2 * width + x2
        edges += [(i, j, table[differences(du)]), (n + i, n + j, table[differences(dv)])]
    return local_polytope(unaries, edges)


def product_lp(model: Model) -> float:
    """Of the product model: one node with du · dv labels for each pixel."""
    width = model.shape[1]
    unaries = list(model.costs.reshape(model.shape[0] * width, -1))
    edges = [
        (y * width + x, y2 * width + x2, product_edge(model, table))
        for (y, x), (y2, x2), table in pairs(model)
    ]
    return local_polytope(unaries, edges)

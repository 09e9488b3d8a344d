"""The joint model (eq. 3 of the paper): a CRF over u and v, its dual solver, and the bound."""

from hamflow.crf.config import CrfConfig
from hamflow.crf.model import edge_weights, rho
from hamflow.crf.plot import plot_convergence
from hamflow.crf.solver import CrfPass, CrfResult, CrfStep, solve

__all__ = [
    "CrfConfig",
    "CrfPass",
    "CrfResult",
    "CrfStep",
    "edge_weights",
    "plot_convergence",
    "rho",
    "solve",
]

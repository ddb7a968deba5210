"""What it costs that a computer finds only an approximate minimiser (approximate minima perturbation).

Theorem 1 is about the exact minimiser. Let the solver certify a gradient norm of at most `tolerance`, let r = tolerance
/ ridge bound its distance from the minimiser, and add Gaussian noise of standard deviation s to every weight. With
(eps_a, delta_a) on the exact Gaussian curve at distance r/s, an (eps, delta) mechanism becomes
(eps + 2 eps_a, e^eps_a delta + (1 + e^(eps + eps_a)) delta_a)-DP (docs/proofs/approximate-minimiser.md). So the exact
mechanism is run with the slightly smaller budget of `exact_budget`, and the release is (eps, delta) again.

The certificate is the gradient, recomputed by plain code that shares only the loss's derivative with the solver. The norm that is
compared with the tolerance includes a bound on the rounding errors of this very computation, and how far the real noise may be
from the matrix that float64 holds of it: what is certified is a gradient of the objective with the real noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from gcon.errors import InputError
from gcon.mechanisms.gaussian_curve import gaussian_delta
from gcon.mechanisms.losses import ConvexLoss
from gcon.mechanisms.samplers.objective_noise import EnclosedNoise
from gcon.privacy.budget import Budget

DEFAULT_TOLERANCE = 1e-10
_ROW_BLOCK = 4096  # rows are summed in blocks of this size, then blocks
_UNIT = 2.0**-53


@dataclass(frozen=True, kw_only=True)
class CertificateTerms:
    """The reserve for an approximate minimiser.

    Attributes:
        reserved_epsilon: eps_a, spent twice.
        log_reserved_delta: log delta_a (delta_a itself can be too small for a float).
        noise_over_radius: s / r, how much larger the final noise is than the solver's certified error.
    """

    reserved_epsilon: float
    log_reserved_delta: float
    noise_over_radius: float

    @property
    def reserved_delta(self) -> float:
        """delta_a."""
        return math.exp(self.log_reserved_delta)

    def final_noise(self, tolerance: float, total_ridge: float) -> float:
        """s: the standard deviation of the final noise on every weight."""
        return self.noise_over_radius * tolerance / total_ridge


NO_TERMS = CertificateTerms(reserved_epsilon=0.0, log_reserved_delta=-math.inf, noise_over_radius=0.0)


def certificate_terms(budget: Budget) -> CertificateTerms:
    """Reserve eps_a = min(1e-3, eps/1000), with final noise large enough that delta_a does not matter."""
    if math.isinf(budget.epsilon):
        return NO_TERMS
    reserved = min(1e-3, budget.epsilon / 1000)
    noise_over_radius = 1e4 * (1e-3 / reserved)
    # (1 + e^eps) delta_a must be a small part of delta. It is far below it for every usual budget; a huge epsilon or
    # a minute delta gets more noise instead of an exception.
    allowed = math.log(budget.delta) + math.log(1e-6)
    while log_waste(budget.epsilon, gaussian_delta(reserved, 1 / noise_over_radius, logarithm=True)) > allowed:
        noise_over_radius *= 2
    return CertificateTerms(
        reserved_epsilon=reserved,
        log_reserved_delta=gaussian_delta(reserved, 1 / noise_over_radius, logarithm=True),
        noise_over_radius=noise_over_radius,
    )


def exact_budget(budget: Budget, terms: CertificateTerms) -> Budget:
    """The budget that is left for the exact minimiser."""
    if terms is NO_TERMS:
        return budget
    waste = math.exp(log_waste(budget.epsilon, terms.log_reserved_delta))
    delta = math.exp(-terms.reserved_epsilon) * (budget.delta - waste)
    if delta <= 0:
        raise InputError(
            "delta", rule="must leave room for the solver's certificate", got=budget.delta, fix="Use at least 1e-200."
        )
    return Budget(budget.epsilon - 2 * terms.reserved_epsilon, delta)


def spent_budget(exact: Budget, terms: CertificateTerms) -> Budget:
    """The promise of the whole release, re-derived from the exact mechanism's: the statement's arithmetic."""
    epsilon, reserve = exact.epsilon, terms.reserved_epsilon
    waste = math.exp(log_waste(epsilon + reserve, terms.log_reserved_delta))
    return Budget(epsilon + 2 * reserve, math.exp(reserve) * exact.delta + waste)


def reserve_is_covered(budget: Budget, exact: Budget, terms: CertificateTerms) -> bool:
    """Whether the final noise is as large as the reserve says, and exact mechanism and reserve fit into the budget.

    The last rounding of the sum is allowed for: 1e-12 of the budget.
    """
    if not (exact.epsilon > 0 and exact.delta > 0 and terms.reserved_epsilon > 0 and terms.log_reserved_delta <= 0):
        return False
    if not 0 < terms.noise_over_radius < math.inf:
        return False
    least = gaussian_delta(terms.reserved_epsilon, 1 / terms.noise_over_radius, logarithm=True)
    if not least <= terms.log_reserved_delta:
        return False
    try:
        whole = spent_budget(exact, terms)
    except (InputError, OverflowError):  # a delta of 1 or more
        return False
    return whole.epsilon <= budget.epsilon * (1 + 1e-12) and whole.delta <= budget.delta * (1 + 1e-12)


def log_waste(epsilon: float, log_delta: float) -> float:
    """log((1 + e^eps) delta) without overflow."""
    if log_delta == -math.inf:
        return log_delta
    return epsilon + math.log1p(math.exp(-epsilon)) + log_delta


def certified_gradient_norm(
    weights: Tensor, *, aggregates: Tensor, targets: Tensor, loss: ConvexLoss, ridge: float, noise: EnclosedNoise
) -> float:
    """An upper bound on the Frobenius norm of the objective's gradient at `weights` (c x d).

    Privacy:
        The norm depends on private values. It is compared with the public tolerance and never shown.
    """
    num_rows, width = aggregates.shape
    total = torch.zeros_like(weights)
    for start in range(0, num_rows, _ROW_BLOCK):
        rows = aggregates[start : start + _ROW_BLOCK]
        total += loss.slope(rows @ weights.T, targets[start : start + _ROW_BLOCK]).T @ rows
    gradient = total / num_rows + ridge * weights + noise.matrix / num_rows
    rounding = rounding_allowance(
        num_rows=num_rows,
        num_features=width,
        loss=loss,
        weight_size=float(torch.linalg.vector_norm(weights)),
        ridge=ridge,
        noise_size=float(torch.linalg.vector_norm(noise.matrix)),
    )
    return float(torch.linalg.vector_norm(gradient)) + rounding + noise.error / num_rows


def rounding_allowance(
    *,
    num_rows: int,
    num_features: int,
    loss: ConvexLoss,
    weight_size: float,
    ridge: float,
    noise_size: float,
) -> float:
    """Bound on the rounding error of the certificate's gradient, in float64, for rows of length at most 1.

    Args:
        num_rows: n_1; summed in blocks of `_ROW_BLOCK`.
        num_features: d.
        loss: gives its slope and curvature bounds.
        weight_size: Frobenius norm of the weights.
        ridge: the total ridge.
        noise_size: Frobenius norm of the noise matrix.
    """
    terms = min(num_rows, _ROW_BLOCK) + math.ceil(num_rows / _ROW_BLOCK) + 32
    summed = terms * math.sqrt(loss.num_classes) * loss.slope_bound
    scores = (num_features + 8) * math.sqrt(num_features) * loss.curvature_bound * weight_size
    added = 8 * (ridge * weight_size + noise_size / num_rows)
    return _UNIT * (summed + scores + added)

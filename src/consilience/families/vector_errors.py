"""Standard errors of the expected costs of sources of vectors."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from consilience.arrays import BoolArray, FloatArray
from consilience.families.base import Chunk, Passes, Sums
from consilience.families.gaussian_rounds import thinned
from consilience.families.vector_posterior import believe, precisions
from consilience.solvers.covariances import inverses

if TYPE_CHECKING:
    from consilience.families.vector import VectorParameters

__all__ = ["with_errors"]


def with_errors(
    parameters: VectorParameters, count: FloatArray, active: BoolArray, passes: Passes | None, law_known: bool
) -> VectorParameters:
    """Return the parameters with the standard errors of the costs; infinite for sources that tell nothing.

    EM looks for costs with ``cost = mean of u(cost)``, where ``u = |vote - mean of y|^2 + trace of its covariance`` for
    each item. So the covariance of the estimates is ``(I - D)^-1 Cov(u) (I - D)^-T / n`` with the derivative D of that
    map, taken here along the sizes of the covariances. It is right whatever the law of the noise.

    Parameters
    ----------
    count
        ``(m,)`` votes of each source.
    law_known
        Whether the covariance of y is given and not learned.
    """
    if not active.any():
        return parameters
    m = len(count)
    if passes is None:
        sums, share = _expected(parameters, count), 1.0
    else:
        sums = passes.over_sample(thinned(lambda chunk: _pass(parameters, chunk), passes.n_sampled))
        share = float(sums["items"]) / max(float(count.max()), 1.0)
    chosen = np.flatnonzero(np.append(active & (sums["voted"][:m] > 0), not law_known))
    own = np.maximum(sums["voted"], 1.0)
    cost = np.append(np.trace(parameters.noise, axis1=1, axis2=2), np.trace(parameters.variance))
    slope = (2.0 * np.diag(sums["blur"] / own) - sums["pull"] / own[:, None]) / cost
    meat = sums["outer"] / np.outer(own, own)
    inner = np.ix_(chosen, chosen)
    turn = np.linalg.pinv(np.eye(len(chosen)) - slope[inner])
    law = np.diag(turn @ meat[inner] @ turn.T) * min(share, 1.0)
    error = np.full(m + 1, np.inf)
    error[chosen] = np.sqrt(np.maximum(law, 0.0))
    shifted = 4.0 * np.einsum("ad,ade,ae->a", parameters.offset, parameters.noise, parameters.offset)
    return replace(parameters, cost_error=np.sqrt(error[:m] ** 2 + shifted / np.maximum(count, 1.0)))


def _pass(parameters: VectorParameters, chunk: Chunk) -> Sums:
    """Return outer products of what single items add to the map of EM, and the pieces of its derivative."""
    m = len(parameters.offset)
    known = np.zeros(len(chunk), dtype=bool) if chunk.is_known is None else chunk.is_known
    rows = np.flatnonzero((chunk.observed & parameters.used).any(axis=1) & ~known)
    if len(rows) == 0:
        return Sums({"outer": np.zeros((m + 1, m + 1)), "pull": np.zeros((m + 1, m + 1)), "blur": np.zeros(m + 1),
                     "voted": np.zeros(m + 1), "items": np.array(0.0)})  # fmt: skip
    observed = chunk.observed[rows]
    belief, residual = believe(parameters, chunk.labels[rows], observed)
    moved = belief.mean - parameters.mean
    left = residual - moved[:, None, :]
    blur = np.trace(belief.covariance, axis1=1, axis2=2)
    seen = np.column_stack([observed, np.ones(len(rows))]).astype(np.float64)
    apart = np.column_stack([(left**2).sum(axis=2), (moved**2).sum(axis=1)]) + blur[belief.pattern][:, None]
    voted = seen.sum(axis=0)
    apart = (apart - (apart * seen).sum(axis=0) / np.maximum(voted, 1.0)) * seen
    pulled = _pulled(parameters, belief.covariance)[belief.pattern] * seen
    return Sums(
        {
            "outer": apart.T @ apart,
            "pull": seen.T @ pulled,
            "blur": seen.T @ blur[belief.pattern],
            "voted": voted,
            "items": np.array(float(len(rows))),
        }
    )


def _pulled(parameters: VectorParameters, covariance: FloatArray) -> FloatArray:
    """Return ``trace(V P_b V)`` for every pattern and source, the law of y as the last one: ``(k, m + 1)``."""
    inverse = np.concatenate([precisions(parameters), inverses(parameters.variance)[None]])
    squared = covariance @ covariance
    traces: FloatArray = np.einsum("kde,bed->kb", squared, inverse, optimize=True)
    return traces


def _expected(parameters: VectorParameters, count: FloatArray) -> Sums:
    """Return what `_pass` would under the model, as if the sources voted on the same items."""
    m, d = parameters.offset.shape
    voted = np.append(count, max(float(count.max()), 1.0))
    inverse = precisions(parameters) * (count > 0)[:, None, None]
    covariance = inverses(inverse.sum(axis=0) + inverses(parameters.variance))
    residual = np.broadcast_to(-covariance, (m + 1, m + 1, d, d)).copy()
    chosen = np.arange(m + 1)
    residual[chosen, chosen] += np.concatenate([parameters.noise, parameters.variance[None]])
    both = np.minimum.outer(voted, voted)
    outer = 2.0 * np.einsum("abde,abde->ab", residual, residual) * both
    pulled = _pulled(parameters, covariance[None])[0]
    return Sums(
        {
            "outer": outer,
            "pull": both * pulled,
            "blur": np.trace(covariance) * voted,
            "voted": voted,
            "items": np.array(float(voted[-1])),
        }
    )

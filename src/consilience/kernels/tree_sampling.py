"""Random trees: exact draws by loop-erased random walks (Wilson's algorithm)."""

from __future__ import annotations

import numba
import numpy as np

from consilience.arrays import FloatArray, IntArray

__all__ = ["draw_trees"]


@numba.njit(cache=True, nogil=True)
def draw_trees(centers: IntArray, starts: IntArray, boosts: FloatArray, rng: np.random.Generator) -> IntArray:
    """Return the heads ``(t,)`` of one tree per sentence, with probability proportional to ``boost ** matches``.

    A match is a head that equals the centre's; boost 1 draws uniformly. Trees with several roots are drawn again,
    which is exact; at boost 1 about one in e has a single root.

    Parameters
    ----------
    centers
        ``(t,)`` heads of the sentences one after the other.
    starts
        ``(n + 1,)`` first token of each sentence.
    boosts
        ``(n,)`` one per sentence, positive.
    """
    heads = np.zeros(starts[-1], dtype=np.int64)
    for sentence in range(len(starts) - 1):
        start, n = starts[sentence], starts[sentence + 1] - starts[sentence]
        boost = boosts[sentence]
        stays = boost / (boost + n - 1.0)
        joined = np.zeros(n + 1, dtype=np.bool_)
        while n > 1:
            joined[:] = False
            joined[0] = True
            for token in range(1, n + 1):
                node = token
                while not joined[node]:  # a later visit overwrites the step taken before, which erases the loop
                    kept = centers[start + node - 1]
                    step = kept
                    if rng.random() >= stays:
                        step = int(rng.random() * (n - 1))  # of the n - 1 others: neither the token nor its centre
                        step += step >= min(node, kept)
                        step += step >= max(node, kept)
                    heads[start + node - 1] = step
                    node = step
                node = token
                while not joined[node]:
                    joined[node] = True
                    node = heads[start + node - 1]
            roots = 0
            for token in range(n):
                roots += heads[start + token] == 0
            if roots == 1:
                break
    return heads

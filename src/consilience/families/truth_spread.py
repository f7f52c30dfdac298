"""How far apart unrelated true labels are, as votes tell it: the unit in which fields of a record are compared."""

from __future__ import annotations

import numpy as np

from consilience.arrays import BoolArray, FloatArray

__all__ = ["relative_error"]


def relative_error(
    covariance: FloatArray, loading: FloatArray, independent: BoolArray, influence: FloatArray | None, n_items: float
) -> float:
    """Return the standard error of the variance of the truth, as a share of it.

    Covariances between independent sources are that variance times their slopes; pairs count as they would in a
    consensus of the sources.

    Parameters
    ----------
    covariance
        ``(m, m)`` between the votes of two sources.
    loading
        ``(m,)`` slope over noise variance of each source; zero for those that tell nothing.
    independent
        ``(m, m)`` pairs that agree because of the truth alone.
    influence
        ``(groups, m, m)`` of groups of items on the covariances; None where no votes are at hand, and the truth is
        taken for normal.

    Examples
    --------
    >>> relative_error(np.ones((2, 2)), np.ones(2), np.ones((2, 2), dtype=bool), None, 200.0)
    0.1
    """
    by_chance = float(np.sqrt(2.0 / max(n_items, 2.0)))
    if influence is None:
        return by_chance
    say = np.outer(loading, loading) * (independent & ~np.eye(len(loading), dtype=bool))
    shared = float((say * covariance).sum())
    if not shared > 0.0:
        return by_chance
    moved = (influence * say).sum(axis=(1, 2)) / shared
    return float(np.sqrt((moved**2).sum()))

"""Simulated votes, for tests, power checks and experiments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from consilience.arrays import FloatArray, as_floats
from consilience.exceptions import UnsupportedError
from consilience.label_types.base import LabelSpace
from consilience.votes import Votes

#: Sweeps over dependent sources. At an acceptance rate of a tenth, .9 ** 50 = .5% of the start remains.
SWEEPS = 50


def simulate(
    space: LabelSpace,
    truth: Any,
    weights: Sequence[float] | FloatArray,
    rng: np.random.Generator,
    *,
    coverage: float | Sequence[float] = 1.0,
    sources: Sequence[str] | None = None,
    dependencies: Mapping[tuple[Any, Any], float] | None = None,
) -> Votes:
    """Return votes of sources around a known truth, drawn from the paper's equation 1.

    Given the truth y, votes have a probability proportional to
    ``exp(-sum_a weight_a cost(vote_a, y) - sum_ab theta_ab cost(vote_a, vote_b))``.

    Parameters
    ----------
    truth
        One label per item.
    weights
        One weight per source: 0 for random votes; a source with a large weight is always right.
    coverage
        Probability that a source votes on an item, one for all or one per source.
    dependencies
        The correlation potentials theta_ab of pairs of sources, by position or name; other pairs are independent. With
        a positive potential two sources agree more than the truth explains.

    Examples
    --------
    >>> from consilience.label_types import Classes
    >>> rng = np.random.default_rng(0)
    >>> simulate(Classes(2), [0, 1, 1], weights=[9.0, 9.0], rng=rng).labels.tolist()
    [[0, 0], [1, 1], [1, 1]]
    >>> votes = simulate(Classes(2), np.zeros(4000, int), [1.0, 1.0], rng, dependencies={(0, 1): 2.0})
    >>> bool((votes.labels[:, 0] == votes.labels[:, 1]).mean() > 0.9)
    True
    """
    if not isinstance(rng, np.random.Generator):
        raise UnsupportedError(f"rng={rng!r} is not a random generator. Pass np.random.default_rng(seed).")
    strength, share = as_floats(weights), as_floats(coverage)
    if strength is None or strength.ndim != 1 or not len(strength) or not np.isfinite(strength).all():
        raise UnsupportedError(f"weights={weights!r}: expected one finite number per source, such as [0.5, 1.0, 2.0].")
    if share is None or share.shape not in ((), strength.shape) or not ((share >= 0) & (share <= 1)).all():
        raise UnsupportedError(
            f"coverage={coverage!r}: expected one probability, or one for each of the {len(strength)} sources."
        )
    try:
        like = np.asarray(truth).dtype
    except ValueError:  # labels that differ in length
        like = np.dtype(object)
    centers = space.as_batch(truth)
    columns = [space.sample_around(centers, float(weight), rng) for weight in strength]
    potentials = _potentials(dependencies, len(strength), sources)
    for _ in range(SWEEPS if potentials.any() else 0):
        for source in np.flatnonzero(potentials.any(axis=1)):
            # A Metropolis step whose proposals ignore the other sources.
            proposed, kept = space.sample_around(centers, float(strength[source]), rng), columns[source]
            gain = np.zeros(len(centers))
            for other in np.flatnonzero(potentials[source]):
                change = space.cost(kept, columns[other]) - space.cost(proposed, columns[other])
                gain += potentials[source, other] * change
            accepted = np.log(rng.random(len(centers))) < gain
            columns[source] = kept.copy()
            columns[source][accepted] = proposed[accepted]
    labels = space.as_labels(np.stack(columns, axis=1).reshape(-1, *columns[0].shape[1:]), like)
    labels = labels.reshape(len(centers), len(columns), *labels.shape[1:])
    observed = rng.random((len(centers), len(columns))) < share
    return Votes.from_array(labels, observed=observed, sources=sources)


def _potentials(
    dependencies: Mapping[tuple[Any, Any], float] | None, m: int, sources: Sequence[str] | None
) -> FloatArray:
    """Return the ``(m, m)`` correlation potentials, zero for independent pairs."""
    potentials = np.zeros((m, m))
    names = list(range(m)) if sources is None else list(sources)
    for pair, value in (dependencies or {}).items():
        try:
            left, right = (names.index(one) if one in names else range(m)[one] for one in pair)
            theta = float(value)
        except (TypeError, ValueError, IndexError):
            left, right, theta = 0, 0, float("nan")
        if left == right or not np.isfinite(theta):
            raise UnsupportedError(
                f"dependencies has {pair!r}: {value!r}. Give two different sources and a finite number, such as "
                "{(0, 1): 1.5}."
            )
        potentials[left, right] = potentials[right, left] = theta
    return potentials

"""How often the intervals of an audit cover the truth, for items whose true labels are all known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from consilience.arrays import FloatArray, IntArray
from consilience.exceptions import InvalidVotesError
from consilience.label_model import LabelModel
from consilience.prediction.audit import expected_distance, strata_of, usual_distance
from consilience.prediction.inference import believe
from consilience.prediction.intervals import estimate_mean
from consilience.prediction.suggest import audit_sizes
from consilience.tables.encoding import encode, read_gold


@dataclass(frozen=True)
class AuditCoverage:
    """The share of audits whose interval covers the mean loss of all items, and the mean width of the intervals.

    `covered` and `width` are for random samples with the control variate, `covered_suggested` and `width_suggested` for
    the samples of `suggest`, and `covered_plain` and `width_plain` for random samples without the model.
    """

    loss: float
    covered_plain: float
    covered: float
    covered_suggested: float
    width_plain: float
    width: float
    width_suggested: float


def audit_coverage(model: LabelModel, votes: Any, gold: Any, known: int, draws: int, seed: int = 0) -> AuditCoverage:
    """Return how often 95% intervals of `LabelModel.audit` cover the truth, over draws of `known` labels.

    Parameters
    ----------
    model
        A model that was fitted without these known labels.
    gold
        The true label of every item with votes.

    Examples
    --------
    >>> from consilience import Classes, simulate
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(0, 2, 500)
    >>> votes = simulate(Classes(2), truth, [1.0, 1.5, 2.0], rng)
    >>> found = audit_coverage(LabelModel(Classes(2)).fit(votes), votes, truth, known=50, draws=200)
    >>> 0.9 < found.covered <= 1.0
    True
    """
    space, source_model = model.space, model.source_model_
    table = source_model.aligned(votes, space)
    rows = np.flatnonzero(table.observed.any(axis=1))
    truth_votes = read_gold(gold, space, len(table))
    if truth_votes is None or not truth_votes.observed[rows, 0].all():
        raise InvalidVotesError("gold lacks the true label of an item with votes. Give all of them.")
    if not 0 < known < len(rows):
        raise InvalidVotesError(f"known={known!r} labels cannot be drawn from {len(rows)} items. Ask for fewer.")
    said = encode(table[rows], space)
    belief = believe(source_model, space.law, said.labels, said.observed, model.decode)
    loss = space.distance(belief.labels, truth_votes.labels[rows, 0])
    scale = usual_distance(space, said, belief.labels)
    expected = expected_distance(space, belief, belief.labels, scale=scale)
    bounds: dict[str, Any] = {"zero_one": space.right_or_wrong, "scale": scale, "limits": (0.0, np.inf)}
    even, suggested = np.full(len(rows), known / len(rows)), audit_sizes(space, belief, known)
    strata, alike = strata_of(space, belief, said), np.zeros(len(rows), dtype=np.int64)
    rng, truth = np.random.default_rng(seed), float(loss.mean())
    designs: tuple[tuple[FloatArray, FloatArray, IntArray], ...] = (
        (even, np.zeros(len(rows)), alike),
        (even, expected - expected.mean(), strata),
        (suggested, expected - expected.mean(), strata),
    )
    held, width = np.zeros((draws, 3)), np.zeros((draws, 3))
    for draw in range(draws):
        for place, (probability, control, stratum) in enumerate(designs):
            key = np.where(probability < 1.0, rng.random(len(rows)) / probability, 0.0)
            chosen = np.argpartition(key, known)[:known]
            found = estimate_mean(
                loss[chosen],
                control[chosen],
                1.0 / probability[chosen],
                len(rows),
                variance=float(control.var()),
                strata=stratum[chosen],
                sizes=np.tile(np.bincount(stratum) / len(rows), (known, 1)),
                **bounds,
            )
            held[draw, place] = found.low - 1e-12 <= truth <= found.high + 1e-12
            width[draw, place] = found.high - found.low
    return AuditCoverage(truth, *held.mean(axis=0).tolist(), *width.mean(axis=0).tolist())

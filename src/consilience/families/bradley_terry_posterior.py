"""From comparisons and judges to rankings: scores, their standard errors, and how sure each order is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from consilience.arrays import FloatArray, as_object_array
from consilience.families.base import Posterior
from consilience.families.bradley_terry_parameters import BradleyTerryParameters
from consilience.families.comparisons import Comparisons, ComparisonTable
from consilience.solvers.bradley_terry import scores_given_judges
from consilience.solvers.pair_judges import PairTable
from consilience.solvers.pair_polish import draw_scores, normal_draws

__all__ = ["rank_items", "weighted_pairs"]

#: Groups of at most this many items are drawn, larger ones are taken as normal.
DRAWN_ITEMS = 8
#: Groups worked on at a time, which bounds the memory of the draws.
GROUPS_AT_ONCE = 2048
ROUNDS = 60
#: An item is better for sure from this probability on, in rank intervals.
SURE = 0.975
#: Scores closer than this are tied.
TIED = 1e-9


def weighted_pairs(table: ComparisonTable, share: FloatArray, run_correlation: float) -> PairTable:
    """Return the comparisons with what they count: copies share a vote, and so do runs of one judge in part."""
    weight = table.pairs.weight * share[table.pairs.judge] * table.run_weights(run_correlation)
    return replace(table.pairs, weight=weight)


def rank_items(parameters: BradleyTerryParameters, table: ComparisonTable, decode: str) -> Posterior:
    """Return one ranking per row."""
    pairs = weighted_pairs(table, parameters.share, parameters.run_correlation)
    mean, spread, better = _beliefs(parameters, pairs)
    columns: dict[str, list[object]] = {
        name: []
        for name in ("candidates", "score", "standard_error", "rank_low", "rank_high", "pair_probability", "label")
    }
    confidence = np.zeros(len(table.names))
    for row, names in enumerate(table.names):
        size = len(names)
        chance = better[row, :size, :size]
        key = chance.sum(axis=1) if decode == "bayes" else mean[row, :size]
        order = np.argsort(-key, kind="stable")
        chance = chance[np.ix_(order, order)]
        off = ~np.eye(size, dtype=bool)
        confidence[row] = float(np.abs(2.0 * chance[off] - 1.0).mean()) if size > 1 else 0.0
        ordered = [names[at] for at in order]
        columns["candidates"].append(tuple(ordered))
        columns["score"].append(mean[row, order])
        columns["standard_error"].append(spread[row, order])
        columns["rank_low"].append(1 + ((chance >= SURE) & off).sum(axis=0))
        columns["rank_high"].append(size - ((chance >= SURE) & off).sum(axis=1))
        columns["pair_probability"].append(chance)
        columns["label"].append(_ranking(ordered, key[order]))
    labels = as_object_array(columns.pop("label"))
    return Posterior(labels, confidence, None, {name: as_object_array(values) for name, values in columns.items()})


def _ranking(names: list[object], keys: FloatArray) -> Comparisons:
    groups: list[list[object]] = []
    for place, name in enumerate(names):
        if place and keys[place - 1] - keys[place] < TIED:
            groups[-1].append(name)
        else:
            groups.append([name])
    return Comparisons.of_ranking(groups)


def _beliefs(parameters: BradleyTerryParameters, pairs: PairTable) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return mean, standard error and pairwise probabilities of the scores of each group."""
    shape = (pairs.n_groups, pairs.width)
    mean, spread, better = np.zeros(shape), np.ones(shape), np.full((*shape, pairs.width), 0.5)
    if not parameters.per_prompt:
        for group in range(pairs.n_groups):
            own = replace(pairs.where(pairs.group == group), n_groups=1)
            own = replace(own, group=np.zeros(len(own), dtype=np.int64))
            mean[group], spread[group], better[group] = _arena(parameters, own)
        return mean, spread, better
    order = np.argsort(pairs.group, kind="stable")
    pairs = pairs.where(order)
    for start in range(0, pairs.n_groups, GROUPS_AT_ONCE):
        stop = min(start + GROUPS_AT_ONCE, pairs.n_groups)
        low, high = np.searchsorted(pairs.group, [start, stop])
        own = pairs.where(np.arange(low, high))
        own = replace(own, group=own.group - start, n_groups=stop - start)
        mean[start:stop], spread[start:stop], better[start:stop] = _prompts(parameters, own)
    return mean, spread, better


def _prompts(parameters: BradleyTerryParameters, pairs: PairTable) -> tuple[FloatArray, FloatArray, FloatArray]:
    judges = parameters.traits(exact=True)
    around = scores_given_judges(pairs, judges)
    if pairs.width > DRAWN_ITEMS:
        return around.mean, _root(around.covariance), _better(around.mean, around.covariance)
    drawn = draw_scores(pairs, judges, around, normal_draws(pairs.width))
    mean, covariance = drawn.moments()
    return mean, _root(covariance), drawn.better()


def _arena(parameters: BradleyTerryParameters, pairs: PairTable) -> tuple[FloatArray, FloatArray, FloatArray]:
    from consilience.solvers.pair_errors import joint_covariance

    judges = parameters.traits()
    found = scores_given_judges(pairs, judges, rounds=ROUNDS)
    mean = found.mean[0]
    joint = joint_covariance(pairs, judges, mean, equal=parameters.equal, position=parameters.position)
    width = pairs.width
    # Only differences are in the votes: the uncertainty of the common level would be that of the prior.
    centring = np.eye(width) - 1.0 / width if width > 1 else np.eye(width)
    covariance = centring @ joint[:width, :width] @ centring.T
    centred = mean - mean.mean()
    return centred, _root(covariance[None])[0], _better(centred[None], covariance[None])[0]


def _root(covariance: FloatArray) -> FloatArray:
    return np.asarray(np.sqrt(np.maximum(np.diagonal(covariance, axis1=-2, axis2=-1), 0.0)))


def _better(mean: FloatArray, covariance: FloatArray) -> FloatArray:
    from scipy.special import ndtr

    variance = np.diagonal(covariance, axis1=1, axis2=2)
    spread = variance[:, :, None] + variance[:, None, :] - 2.0 * covariance
    better: FloatArray = ndtr((mean[:, :, None] - mean[:, None, :]) / np.sqrt(np.maximum(spread, 1e-12)))
    return better

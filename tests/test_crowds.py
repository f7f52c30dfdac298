"""Very many sources of which few vote on an item: what is found, and what it does not depend on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import consilience as cs
from consilience import arrays
from consilience.families.base import Chunk, Request
from consilience.families.gaussian_moments import score_sums
from consilience.families.gaussian_posterior import believe
from consilience.families.gaussian_rounds import round_sums
from consilience.families.pair_fits import uncorrelated_influence
from consilience.solvers import triplets


def crowd(n, m, coverage, k, seed=0):
    rng = np.random.default_rng(seed)
    truth, accuracy = rng.integers(k, size=n), rng.uniform(0.6, 0.95, m)
    wrong = (truth[:, None] + rng.integers(1, k, size=(n, m))) % k
    codes = np.where(rng.random((n, m)) < accuracy, truth[:, None], wrong).astype(np.int8)
    observed = rng.random((n, m)) < coverage
    return np.where(observed, codes, -1).astype(np.int8), truth, accuracy


def test_a_crowd_of_hundreds_is_told_apart_and_called_independent():
    # 10,000 items, 300 sources, 15 votes an item, 500 a source: accuracies are known to about 0.02; the correlation
    # falls below 0.9, or a pair of independent sources is found dependent (a chance of 5% by design, not this seed).
    matrix, truth, accuracy = crowd(10_000, 300, 0.05, 2)
    names = [f"worker{column}" for column in range(300)]
    model = cs.LabelModel(cs.Classes(2), random_state=0).fit(cs.Votes.from_matrix(matrix, sources=names))
    assert np.corrcoef(1.0 - model.expected_cost_, accuracy)[0, 1] > 0.9
    assert model.source_model_.dependencies == ()
    assert (model.predict(cs.Votes.from_matrix(matrix, sources=names)) == truth).mean() > 0.97


def test_triplets_with_the_best_known_partners_find_the_same_loadings(monkeypatch):
    rng = np.random.default_rng(0)
    loading = rng.uniform(0.3, 0.9, 40)
    everyone = np.ones((40, 40), dtype=bool)
    monkeypatch.setattr(triplets, "MAX_PARTNERS", 8)
    found = triplets.triplet_loadings(np.outer(loading, loading), everyone, np.full((40, 40), 0.01))
    assert found.value == pytest.approx(loading)
    assert found.identified.all()


def test_influences_of_very_many_sources_have_the_squared_errors_on_the_diagonal():
    error = np.random.default_rng(0).uniform(0.1, 0.2, (300, 300))
    error = (error + error.T) / 2
    influence = uncorrelated_influence(error)
    assert (influence**2).sum(axis=0) == pytest.approx(error**2, rel=1e-5)
    assert np.array_equal(influence, np.swapaxes(influence, 1, 2))


def test_a_crowd_of_rankers_is_told_apart():
    rng = np.random.default_rng(0)
    n, m, r = 3_000, 80, 5
    noise = rng.uniform(0.3, 1.5, m)
    truth = rng.normal(size=(n, 1, r))
    votes = np.argsort(np.argsort(-(truth + noise[:, None] * rng.normal(size=(n, m, r))), axis=2), axis=2)
    observed = rng.random((n, m)) < 0.15
    table = cs.Votes(votes.astype(np.int8), observed, tuple(f"ranker {column}" for column in range(m)), np.arange(n))
    model = cs.LabelModel(cs.Rankings(r), random_state=0).fit(table)
    # A ranker casts 450 votes: costs are known to about 0.06 and differ by 0.6, so that the correlation is near 0.99.
    assert np.corrcoef(model.expected_cost_, noise)[0, 1] > 0.95
    assert model.source_model_.dependencies == ()


def scores_of_a_crowd(n=400, m=90):
    rng = np.random.default_rng(1)
    noise = rng.uniform(0.3, 1.0, m)
    truth = rng.normal(size=(n, 1))
    labels = 50.0 + 2.0 * (truth + noise * rng.standard_t(4.0, size=(n, m)))
    observed = rng.random((n, m)) < 0.1
    observed[:2] = False
    return labels, observed, noise


def test_sums_of_few_scores_are_those_of_all_cells(monkeypatch):
    labels, observed, _ = scores_of_a_crowd()
    assert arrays.few_votes(observed)
    few = score_sums(labels, observed)
    monkeypatch.setattr(arrays, "MANY_SOURCES", 1_000)
    every = score_sums(labels, observed)
    assert all(np.allclose(few[name], every[name], rtol=1e-12) for name in every)


@pytest.mark.parametrize("degrees", [np.inf, 4.0])
def test_rounds_over_few_scores_are_those_over_all_cells(degrees, monkeypatch):
    labels, observed, noise = scores_of_a_crowd()
    m = len(noise)
    learned = cs.LabelModel(cs.Scores(), dependencies=None, random_state=0).fit(
        cs.Votes(labels, observed, tuple(map(str, range(m))), np.arange(len(labels)))
    )
    parameters = replace(learned.source_model_.parameters, degrees=degrees)
    chunk = Chunk(labels, observed, np.zeros(len(labels), dtype=np.int64))
    few = round_sums(parameters, chunk)
    monkeypatch.setattr(arrays, "MANY_SOURCES", 1_000)
    every = round_sums(parameters, chunk)
    # Weights of votes are renewed until an item rests: one item here, all of them there.
    tolerance = 1e-10 if np.isinf(degrees) else 1e-4
    for name in every.parts:
        assert np.allclose(few[name], every[name], rtol=tolerance, atol=tolerance * 400), name


@pytest.mark.filterwarnings("ignore:dependent-pair")
def test_copies_are_found_among_a_hundred_sources_and_nobody_else_is_accused():
    matrix, _, _ = crowd(10_000, 100, 0.2, 2)
    rng = np.random.default_rng(5)
    for copied, copy in ((0, 1), (2, 3)):
        kept = (rng.random(len(matrix)) < 0.9) | (matrix[:, copied] < 0)
        matrix[:, copy] = np.where(kept, matrix[:, copied], rng.integers(2, size=len(matrix)))
    names = [f"s{column}" for column in range(100)]
    model = cs.LabelModel(cs.Classes(2), random_state=0).fit(cs.Votes.from_matrix(matrix, sources=names))
    # A pair of others is accused where it is too close by chance, of which 0.025 are expected among all 4,950 pairs.
    assert {frozenset(pair) for pair in model.source_model_.dependencies} == {
        frozenset(("s0", "s1")),
        frozenset(("s2", "s3")),
    }


@pytest.mark.parametrize("degrees", [np.inf, 4.0])
def test_labels_of_few_scores_are_those_of_all_cells(degrees):
    rng = np.random.default_rng(5)
    observed = rng.random((300, 80)) < 0.05
    truth = rng.normal(size=(300, 1))
    labels = np.where(observed, truth + rng.standard_t(4, size=(300, 80)), np.nan)
    family = cs.Scores(mean=0.0, variance=1.0).law
    request = Request(tuple(map(str, range(80))), "auto", np.zeros((80, 80), dtype=bool))
    parameters = replace(family.from_weights(rng.uniform(0.2, 2.0, 80), request), degrees=degrees)
    assert arrays.few_votes(observed)
    found = family.posterior(parameters, labels, observed, "auto")
    whole = believe(parameters, np.where(observed, labels, 0.0), observed)
    # Under heavy tails weights of votes are renewed until an item rests: one item here, all of them there.
    tolerance = 1e-10 if np.isinf(degrees) else 1e-4
    assert np.allclose(found.labels, whole.mean, atol=tolerance)
    assert np.allclose(found.details["standard_deviation"], np.sqrt(whole.variance), atol=tolerance)
    assert not observed.any(axis=1).all()  # some items have no vote, and are at the mean of all

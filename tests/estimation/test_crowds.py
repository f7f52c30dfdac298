"""Very many sources of which few vote on an item: who is good, who copies, and that it takes seconds."""

import numpy as np
import pytest

import consilience as cs
from consilience import arrays

pytestmark = pytest.mark.filterwarnings("ignore::consilience.exceptions.ConsilienceWarning")


def crowd(n, m, coverage, k, seed=0):
    rng = np.random.default_rng(seed)
    truth, accuracy = rng.integers(k, size=n), rng.uniform(0.6, 0.95, m)
    wrong = (truth[:, None] + rng.integers(1, k, size=(n, m))) % k
    codes = np.where(rng.random((n, m)) < accuracy, truth[:, None], wrong).astype(np.int8)
    observed = rng.random((n, m)) < coverage
    return np.where(observed, codes, -1).astype(np.int8), truth, accuracy


@pytest.mark.slow
def test_a_crowd_of_hundreds_is_told_apart_and_called_independent():
    # 10,000 items, 300 sources, 15 votes an item, 500 a source: accuracies are known to about 0.02; the correlation
    # falls below 0.9, or a pair of independent sources is found dependent (a chance of 5% by design, not this seed).
    matrix, truth, accuracy = crowd(10_000, 300, 0.05, 2)
    names = [f"worker{column}" for column in range(300)]
    model = cs.LabelModel(cs.Classes(2), random_state=0).fit(cs.Votes.from_matrix(matrix, sources=names))
    assert np.corrcoef(1.0 - model.expected_cost_, accuracy)[0, 1] > 0.9
    assert model.source_model_.dependencies == ()
    assert (model.predict(cs.Votes.from_matrix(matrix, sources=names)) == truth).mean() > 0.97


def test_labels_looked_up_by_pattern_equal_those_computed_row_by_row():
    matrix, _, _ = crowd(6_000, 5, 0.7, 3)
    model = cs.LabelModel(cs.Classes(3), random_state=0).fit(matrix)
    whole = model.predict_proba(matrix)  # so many items that patterns are looked up
    parts = np.concatenate([model.predict_proba(matrix[start : start + 1000]) for start in range(0, 6_000, 1000)])
    assert np.array_equal(whole, parts)
    labels = model.posterior(matrix)
    assert labels.confidence == pytest.approx(np.where((matrix >= 0).any(axis=1), whole.max(axis=1), 0.0))


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


@pytest.mark.parametrize("space", [cs.Classes(2), cs.Classes(30), cs.Scores(), cs.Rankings(4)], ids=repr)
def test_few_votes_of_many_sources_give_what_all_cells_give(space, monkeypatch):
    rng = np.random.default_rng(0)
    votes = cs.simulate(space, space.random(300, rng), np.linspace(0.5, 3.0, 80), rng, coverage=0.08)
    assert arrays.few_votes(votes.observed)
    few = cs.LabelModel(space, random_state=0).fit(votes)
    found = few.posterior(votes)
    monkeypatch.setattr(arrays, "MANY_SOURCES", 1_000)
    many = cs.LabelModel(space, random_state=0).fit(votes)
    assert many.weight_ == pytest.approx(few.weight_, rel=1e-6, abs=1e-6)
    assert many.posterior(votes).confidence == pytest.approx(found.confidence, rel=1e-6, abs=1e-6)


@pytest.mark.slow
def test_copies_are_found_among_a_hundred_sources_and_nobody_else_is_accused():
    matrix, _, _ = crowd(10_000, 100, 0.2, 2)
    rng = np.random.default_rng(5)
    for copied, copy in ((0, 1), (2, 3)):
        kept = (rng.random(len(matrix)) < 0.9) | (matrix[:, copied] < 0)
        matrix[:, copy] = np.where(kept, matrix[:, copied], rng.integers(2, size=len(matrix)))
    names = [f"s{column}" for column in range(100)]
    model = cs.LabelModel(cs.Classes(2), random_state=0).fit(cs.Votes.from_matrix(matrix, sources=names))
    shared = model.source_model_.correlation
    assert min(shared[0, 1], shared[2, 3]) > 0.5
    others = np.delete(np.arange(100), [0, 1, 2, 3])
    assert np.where(np.eye(96, dtype=bool), 0.0, shared[np.ix_(others, others)]).max() < 0.3

"""Given dependencies: copied sources share one vote, and nobody's quality is learned from a copy."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from simulated import gap

import consilience as cs

COPIES = range(5, 10)
EDGES = list(combinations(COPIES, 2))
PATH = cs.FiniteMetric(np.abs(np.subtract.outer(np.arange(8.0), np.arange(8.0))))


def copied_classes(seed: int = 0, n: int = 5000) -> tuple[np.ndarray, np.ndarray]:
    """Return the "corr" set: 5 independent sources (.72 - .90), 5 copies (90%) of one of accuracy .60, 30% abstain."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(2, size=n)

    def source(accuracy: float) -> np.ndarray:
        return np.where(rng.random(n) < accuracy, truth, 1 - truth)

    original = source(0.6)
    copies = [np.where(rng.random(n) < 0.9, original, source(0.6)) for _ in COPIES]
    votes = np.stack([*(source(accuracy) for accuracy in np.linspace(0.72, 0.90, 5)), *copies], axis=1)
    votes[rng.random(votes.shape) < 0.3] = -1
    return votes, truth


def copied_nodes(seed: int = 0, n: int = 1000) -> tuple[np.ndarray, np.ndarray]:
    """Return votes on a path of 8 nodes: 5 independent sources, 5 copies (90%) of a very weak one."""
    rng = np.random.default_rng(seed)
    truth = PATH.random(n, rng)
    good = cs.simulate(PATH, truth, np.linspace(0.7, 1.1, 5), rng).labels
    weak = cs.simulate(PATH, truth, np.full(6, 0.15), rng).labels
    copies = np.where(rng.random((n, 5)) < 0.9, weak[:, :1], weak[:, 1:])
    return np.hstack([good, copies]), truth


# --- declared edges restore the quality of the labels ----------------------------------------------


@pytest.mark.parametrize("method", ["auto", "em", "moments", "triplets", "isotropic", "quadratic"])
def test_declared_copies_of_a_weak_class_source_do_not_mislead(method):
    # 5000 items: an accuracy of 0.92 has a standard error of 0.004, so that 0.90 is 5 of them away.
    votes, truth = copied_classes()
    misled = cs.LabelModel(cs.Classes(2), method=method, dependencies="none").fit(votes)
    told = cs.LabelModel(cs.Classes(2), method=method, dependencies=EDGES).fit(votes)
    assert misled.score(votes, truth) < 0.75
    assert told.score(votes, truth) >= 0.90


def test_declared_copies_share_one_vote_in_the_plain_vote():
    # Six opinions of equal weight, one of them weak: 0.87 against 0.73 for the ten, standard error 0.006.
    votes, truth = copied_classes()
    told = cs.LabelModel(cs.Classes(2), method="majority", dependencies=EDGES).fit(votes)
    assert told.score(votes, truth) > 0.84


@pytest.mark.parametrize(
    ("space", "method"),
    [
        *((PATH, method) for method in ["auto", "em", "moments", "triplets", "isotropic", "quadratic"]),
        *((cs.Metric(gap, vectorized=True), method) for method in ["auto", "moments", "triplets", "isotropic"]),
        *((cs.Metric(gap, embed="mds", vectorized=True), method) for method in ["auto", "moments", "isotropic"]),
    ],
    ids=lambda value: value if isinstance(value, str) else repr(value),
)
@pytest.mark.filterwarnings("ignore::consilience.exceptions.ConsilienceWarning")  # misled fits find oddities
def test_declared_copies_of_a_weak_node_source_do_not_mislead(space, method):
    # Mean distance to the truth 0.30 when told, 0.5 (robust fits) to 2 when misled; standard error below 0.02.
    codes, truth = copied_nodes()
    votes = codes if space.n_labels else codes.astype(float)
    gold = truth if space.n_labels else truth.astype(float)
    misled = cs.LabelModel(space, method=method, dependencies="none").fit(votes)
    told = cs.LabelModel(space, method=method, dependencies=EDGES).fit(votes)
    assert told.score(votes, gold) > misled.score(votes, gold) + 0.1
    assert told.score(votes, gold) > -0.4


# --- what is learned about the pairs ---------------------------------------------------------------


@pytest.mark.parametrize("method", ["auto", "moments", "triplets", "majority"])
def test_correlation_of_declared_copies_is_estimated(method):
    # Two 90% copies agree on the original's error with probability .81: their errors correlate by 0.81.
    votes, _ = copied_classes()
    model = cs.LabelModel(cs.Classes(2), method=method, dependencies=EDGES).fit(votes)
    correlation = model.source_model_.correlation
    assert np.allclose(correlation, correlation.T)
    inside = correlation[np.ix_(COPIES, COPIES)][np.triu_indices(5, 1)]
    assert inside == pytest.approx(np.full(10, 0.81), abs=0.08)


def test_correlation_is_zero_outside_the_declared_pairs():
    votes, _ = copied_classes()
    model = cs.LabelModel(cs.Classes(2), dependencies=EDGES[:3]).fit(votes)
    declared = np.zeros((10, 10), dtype=bool)
    for left, right in EDGES[:3]:
        declared[left, right] = declared[right, left] = True
    assert (model.source_model_.correlation[declared] > 0).all()
    assert not model.source_model_.correlation[~declared].any()


def test_declared_pairs_of_independent_sources_have_little_correlation():
    # 5000 items, 49% of them with both votes: a correlation has a standard error of 0.02.
    votes, _ = copied_classes()
    model = cs.LabelModel(cs.Classes(2), dependencies=[*EDGES, (0, 1), (2, 3)]).fit(votes)
    assert model.source_model_.correlation[0, 1] < 0.1
    assert model.source_model_.correlation[2, 3] < 0.1


def test_declared_pairs_are_reported_with_their_correlation():
    votes, _ = copied_classes()
    model = cs.LabelModel(cs.Classes(2), dependencies=[(5, 6)]).fit(votes)
    [finding] = [item for item in model.diagnostics_ if item.code == "dependent-pair"]
    assert finding.sources == ("source_5", "source_6")
    assert f"source_5 and source_6 ({model.source_model_.correlation[5, 6]:.2f})" in finding.message


def test_dependencies_by_position_and_by_name_are_the_same():
    votes, _ = copied_classes(n=1000)
    names = [(f"source_{left}", f"source_{right}") for left, right in EDGES]
    by_position = cs.LabelModel(cs.Classes(2), dependencies=EDGES).fit(votes)
    by_name = cs.LabelModel(cs.Classes(2), dependencies=names).fit(votes)
    assert by_position.source_model_.dependencies == tuple(names)
    assert np.array_equal(by_position.weight_, by_name.weight_)


# --- who may be learned from whom ------------------------------------------------------------------


@pytest.mark.parametrize("space", [cs.Classes(2), cs.FiniteMetric(1 - np.eye(2)), cs.Metric(gap)], ids=repr)
@pytest.mark.parametrize("method", ["isotropic", "triplets", "moments"])
def test_source_without_an_independent_partner_is_reported_as_unidentified(space, method):
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=(400, 1))
    votes = np.where(rng.random((400, 5)) < [0.9, 0.8, 0.8, 0.8, 0.8], truth, 1 - truth).astype(float)
    with pytest.warns(cs.exceptions.ConsilienceWarning, match="too-few-sources: source_0"):
        model = cs.LabelModel(space, method=method, dependencies=[(0, other) for other in range(1, 5)]).fit(votes)
    assert np.isinf(model.standard_error_[0])
    assert np.isfinite(model.standard_error_[1:]).all()


def test_everybody_depending_on_everybody_leaves_equal_weights():
    votes, truth = copied_classes(n=1000)
    with pytest.warns(cs.exceptions.ConsilienceWarning, match="fell-back-to-majority"):
        model = cs.LabelModel(cs.Classes(2), dependencies=list(combinations(range(10), 2))).fit(votes)
    assert np.ptp(model.weight_) < 1e-9
    assert model.score(votes, truth) > 0.5


def test_two_perfect_copies_count_as_one_in_the_plain_vote():
    column = np.random.default_rng(3).integers(2, size=200)
    votes = np.stack([column, column, 1 - column], axis=1)
    model = cs.LabelModel(cs.Classes(2), method="majority", dependencies=[(0, 1)]).fit(votes)
    assert model.source_model_.correlation[0, 1] == pytest.approx(1.0)
    assert model.predict_proba([[0, 0, 1]])[0] == pytest.approx([0.5, 0.5], abs=1e-6)

"""The paper's algorithms against their formulas, exact moments and the sources that were drawn."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import consilience as cs
from consilience.estimation.paper_methods import isotropic_costs, quadratic_rates, recover_signs, triplet_loadings


def everything(m: int) -> np.ndarray:
    return ~np.eye(m, dtype=bool)


def test_three_sources_follow_the_printed_formula() -> None:
    e = np.array([[0.0, 0.3, 0.2], [0.3, 0.0, 0.12], [0.2, 0.12, 0.0]])
    value, identified = triplet_loadings(e, everything(3))
    assert value == pytest.approx(np.sqrt([0.3 * 0.2 / 0.12, 0.3 * 0.12 / 0.2, 0.2 * 0.12 / 0.3]))
    assert identified.all()


@pytest.mark.parametrize("seed", range(5))
def test_exact_moments_give_back_loadings_and_signs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    loading = rng.uniform(0.2, 0.9, 7) * np.where(np.arange(7) < 2, -1.0, 1.0)
    value, _ = triplet_loadings(np.outer(loading, loading), everything(7))
    assert value == pytest.approx(loading)


def test_signs_are_the_best_of_all_by_enumeration() -> None:
    rng = np.random.default_rng(0)
    for _ in range(30):
        e = rng.normal(size=(6, 6))
        e = np.triu(e, 1) + np.triu(e, 1).T
        found = recover_signs(e, np.ones(6))
        best = max(
            float(signs @ e @ signs) for signs in (np.where((k >> np.arange(6)) & 1, 1.0, -1.0) for k in range(64))
        )
        assert found @ e @ found == pytest.approx(best, rel=0.05)


def test_a_source_without_partners_gets_the_median() -> None:
    usable = everything(4)
    usable[3], usable[:, 3] = False, False
    value, identified = triplet_loadings(np.full((4, 4), 0.25), usable)
    assert value == pytest.approx(np.full(4, 0.5))
    assert identified.tolist() == [True, True, True, False]


def test_costs_that_add_up_are_solved_and_two_sources_share_alike() -> None:
    cost = np.array([1.0, 2.0, 5.0, 0.5])
    assert isotropic_costs(cost[:, None] + cost, everything(4).astype(float))[0] == pytest.approx(cost)
    value, identified = isotropic_costs(np.full((2, 2), 3.0), everything(2).astype(float))
    assert value == pytest.approx([1.5, 1.5])
    assert not identified.any()


@pytest.mark.parametrize("prior", [0.2, 0.5, 0.7])
def test_quadratic_gives_back_both_rates_from_exact_moments(prior: float) -> None:
    one, zero = np.array([0.9, 0.8, 0.7, 0.3]), np.array([0.2, 0.3, 0.1, 0.6])
    mean = prior * one + (1 - prior) * zero
    joint = prior * np.outer(one, one) + (1 - prior) * np.outer(zero, zero)
    given_one, given_zero = quadratic_rates(joint, mean, prior, everything(4))
    assert given_one == pytest.approx(one)
    assert given_zero == pytest.approx(zero)


@pytest.mark.parametrize("method", ["isotropic", "triplets", "quadratic", "em"])
def test_methods_put_sources_of_classes_into_the_right_order(method: str) -> None:
    # 4,000 items: accuracies have standard errors below .01 and lie .08 apart.
    rng = np.random.default_rng(1)
    truth = rng.integers(2, size=4000)
    accuracy = np.array([0.58, 0.66, 0.74, 0.82, 0.90])
    votes = np.where(rng.random((4000, 5)) < accuracy, truth[:, None], 1 - truth[:, None])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cs.exceptions.ConsilienceWarning)
        model = cs.LabelModel(cs.Classes(2), method=method).fit(votes)
    assert np.argsort(model.expected_cost_).tolist() == [4, 3, 2, 1, 0]
    if method != "isotropic":  # two wrong votes coincide, so sums of costs are too small
        assert model.expected_cost_ == pytest.approx(1.0 - accuracy, abs=0.04)

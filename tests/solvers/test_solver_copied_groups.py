"""Which sources copy each other: hand-worked covariances, groups that are planted, and two readings that compete."""

from __future__ import annotations

import numpy as np
import pytest

from consilience.solvers.copied_groups import PairCovariances, candidate_groups, copied_groups, fit_values


def covariances(value, extra=None, error=0.01, scale=0.5):
    """Return exact covariances of sources of these values, plus what copying adds."""
    value = np.asarray(value, dtype=float)
    covariance = scale * np.outer(value, value)
    if extra is not None:
        covariance = covariance + extra
    usable = ~np.eye(len(value), dtype=bool)
    return PairCovariances(covariance, np.full(usable.shape, error), usable, np.full(len(value), 0.5), scale, 0.5)


def planted(m, group, amount):
    extra = np.zeros((m, m))
    extra[np.ix_(group, group)] = amount
    return extra


def test_values_that_explain_all_pairs_exactly_are_found():
    value = np.array([0.9, 0.7, 0.5, 0.3, -0.2])
    pairs = covariances(value)
    fitted = fit_values(pairs, pairs.usable[None], np.full((1, 5), 0.5), 100.0, 500)[0]
    assert fitted == pytest.approx(value, abs=1e-4)


def test_several_masks_are_fitted_as_each_alone():
    rng = np.random.default_rng(0)
    pairs = covariances(rng.uniform(0.2, 0.9, 7), extra=planted(7, [0, 1, 2], 0.1))
    masks = np.stack([pairs.usable, pairs.usable & (planted(7, [0, 1, 2], 1.0) == 0)])
    together = fit_values(pairs, masks, np.full((2, 7), 0.5), 0.1, 500)
    alone = [fit_values(pairs, mask[None], np.full((1, 7), 0.5), 0.1, 500)[0] for mask in masks]
    assert np.allclose(together, alone, atol=1e-5)


def test_residual_and_correlation_by_hand():
    pairs = covariances([0.6, 0.8], extra=planted(2, [0, 1], 0.1))
    value = np.array([0.6, 0.8])
    # 0.1 beyond what is explained, at an error of 0.01; own noise 0.5 - 0.5 * 0.36 = 0.32 and 0.5 - 0.5 * 0.64 = 0.18
    assert pairs.residual(value)[0, 1] == pytest.approx(10.0)
    assert pairs.correlation(value)[0, 1] == pytest.approx(0.1 / np.sqrt(0.32 * 0.18))


def test_independent_sources_stop_the_search():
    found = copied_groups(covariances([0.9, 0.8, 0.7, 0.6, 0.5]))
    assert len(found.readings) == 1
    assert not found.best.dependent.any()
    assert found.gap == np.inf


@pytest.mark.parametrize(
    "value", [[0.44, 0.55, 0.62, 0.71, 0.8, 0.2, 0.2, 0.2, 0.2], [0.3, 0.4, 0.5, 0.6, 0.7, 0.7, 0.7, 0.7, 0.7]]
)
def test_a_planted_clique_is_found_pair_by_pair(value):
    clique = [5, 6, 7, 8]
    best = copied_groups(covariances(value, extra=planted(9, clique, 0.15))).best
    expected = planted(9, clique, 1.0) > 0
    np.fill_diagonal(expected, False)
    assert np.array_equal(best.dependent, expected)
    assert not best.correlation[~expected].any()
    assert best.value[:5] == pytest.approx(value[:5], abs=0.06)


def test_a_vote_of_four_copies_counts_by_their_correlations():
    best = copied_groups(covariances([0.5] * 5 + [0.2] * 4, extra=planted(9, [5, 6, 7, 8], 0.4))).best
    rho = best.correlation[5, 6]
    assert best.weight() == pytest.approx([1.0] * 5 + [1.0 / (1.0 + 3.0 * rho)] * 4, rel=1e-2)


def test_candidate_groups_hold_the_clique_and_nothing_too_large():
    groups = [tuple(group.tolist()) for group in candidate_groups(covariances([0.5] * 9, planted(9, [1, 4, 8], 0.2)))]
    assert () in groups
    assert (1, 4, 8) in groups
    assert max(map(len, groups)) <= 6
    assert len(set(groups)) == len(groups)


def rivals():
    """Return two groups of three that each agree, and hardly with each other."""
    return covariances([0.1] * 6, planted(6, [0, 1, 2], 0.3) + planted(6, [3, 4, 5], 0.3), error=0.02)


def test_two_groups_of_the_same_size_leave_no_gap_between_the_readings():
    found = copied_groups(rivals())
    assert found.rival is not None
    assert found.gap < 12.0


@pytest.mark.parametrize("right", [[0, 1, 2], [3, 4, 5]])
def test_known_labels_choose_between_the_readings(right):
    evidence = np.full((6, 2), [4.0, 6.0])
    evidence[right] = [10.0, 0.0]
    best = copied_groups(rivals(), evidence).best
    wrong = [source for source in range(6) if source not in right]
    assert best.value[right].min() > best.value[wrong].max()
    assert best.dependent[np.ix_(wrong, wrong)].sum() == 6

"""Readings of dependence: which pairs depend on each other, and whether the votes can tell."""

from __future__ import annotations

import numpy as np
import pytest

from consilience.label_types.vote_correlation import gls_weights
from consilience.solvers.readings import PairReading, Refit, largest_group, opposed, read_dependence
from consilience.solvers.triplets import rank_one
from consilience.solvers.weighed_readings import contradict, weigh_readings

ERROR = 0.01


def products(moments: np.ndarray):
    """Return a fit of ``moments[a, b] = d[a] d[b]`` to the pairs that are kept, with errors of 0.01."""

    def refit(kept: np.ndarray) -> Refit:
        quality = rank_one(moments, kept, kept / ERROR**2, np.full(len(kept), 0.5)).value
        too_close = (moments - np.outer(quality, quality)) / ERROR
        np.fill_diagonal(too_close, 0.0)
        return Refit(quality, too_close)

    return refit


def of_sources(quality: list[float], groups: list[list[int]], together: float) -> tuple[np.ndarray, np.ndarray]:
    """Return exact pair moments of sources of which some groups agree for another reason, and all pairs."""
    moments = np.outer(quality, quality)
    for group in groups:
        moments[np.ix_(group, group)] = together
    np.fill_diagonal(moments, 1.0)
    return moments, ~np.eye(len(quality), dtype=bool)


def test_independent_sources_have_no_dependent_pair():
    moments, usable = of_sources([0.2, 0.4, 0.5, 0.7, 0.9], [], 0.0)
    found = read_dependence(products(moments), usable, moments)
    assert not found.best.dependent.any()
    assert found.rival is None
    np.testing.assert_allclose(found.best.quality, [0.2, 0.4, 0.5, 0.7, 0.9], atol=1e-3)


def test_copies_of_a_poor_source_are_found_and_read_as_poor():
    moments, usable = of_sources([0.1, 0.1, 0.1, 0.5, 0.6, 0.7, 0.5, 0.6], [[0, 1, 2]], 0.8)
    found = read_dependence(products(moments), usable, moments)
    assert found.rival is None
    assert np.argwhere(np.triu(found.best.dependent)).tolist() == [[0, 1], [0, 2], [1, 2]]
    np.testing.assert_allclose(found.best.quality[:3], 0.1, atol=0.02)
    assert largest_group(found.best.dependent).tolist() == [0, 1, 2]


def test_two_groups_that_agree_among_themselves_are_rivals():
    moments, usable = of_sources([0.4] * 6, [[0, 1, 2], [3, 4, 5]], 0.8)
    found = read_dependence(products(moments), usable, moments)
    assert found.rival is not None
    assert {tuple(found.first.tolist()), tuple(found.second.tolist())} == {(0, 1, 2), (3, 4, 5)}


def test_best_linear_weights_are_those_of_least_squares():
    rng = np.random.default_rng(0)
    truth = rng.normal(size=200_000)
    shared = rng.normal(size=truth.shape)
    votes = np.stack([truth + rng.normal(size=truth.shape) + common * shared for common in (0.0, 1.0, 1.0)], axis=1)
    votes /= votes.std(axis=0)
    truth /= truth.std()
    moments, quality = votes.T @ votes / len(truth), votes.T @ truth / len(truth)
    weights, together = gls_weights(np.ones((1, 3), dtype=bool), moments, quality)
    direct = np.linalg.lstsq(votes, truth, rcond=None)[0]
    # the diagonal is raised by 2%, which moves weights of this size by less than 0.02
    np.testing.assert_allclose(weights[0], direct, atol=0.02)
    assert together[0] == pytest.approx(np.corrcoef(votes @ direct, truth)[0, 1], abs=0.01)


def test_best_linear_weights_leave_out_who_abstains_and_never_turn_negative():
    moments = np.array([[1.0, 0.9, 0.2], [0.9, 1.0, 0.2], [0.2, 0.2, 1.0]])
    seen = np.array([[True, True, True], [True, False, True], [False, False, False]])
    weights, together = gls_weights(seen, moments, np.array([0.8, 0.5, 0.3]))
    assert weights[0, 1] == 0.0  # least squares would subtract the poorer of two near copies
    np.testing.assert_allclose(weights[0], weights[1])
    assert together[2] == 0.0
    assert not weights[2].any()


def noisy(quality: list[float], groups: list[list[int]], together: float, error: float, seed=4, scatter=1.0):
    """Return a fit of products to moments with noise, the pairs, and the moments.

    Standard errors are too small by the factor `scatter`, and the fit says so.
    """
    moments, usable = of_sources(quality, groups, together)
    noise = np.triu(np.random.default_rng(seed).normal(0.0, error, moments.shape), 1)
    moments = moments + noise + noise.T

    def refit(kept: np.ndarray) -> Refit:
        value = np.maximum(rank_one(moments, kept, kept / error**2, np.full(len(kept), 0.5)).value, 0.0)
        too_close = (moments - np.outer(value, value)) / error * scatter
        np.fill_diagonal(too_close, 0.0)
        return Refit(value, too_close, scatter)

    return refit, usable, moments


def test_copies_of_which_no_pair_stands_out_are_found_by_how_the_others_agree():
    # Believing the copies (quality 0.97) explains their pairs, and puts those of the others 2 standard errors off each.
    refit, usable, moments = noisy([0.6] * 10, [[0, 1, 2]], 0.95, 0.07)
    assert not read_dependence(refit, usable, moments).best.dependent.any()
    found = weigh_readings(refit, usable, moments)
    assert np.argwhere(np.triu(found.best.dependent)).tolist() == [[0, 1], [0, 2], [1, 2]]
    assert found.rival is None


def test_where_copies_and_better_sources_explain_as_much_the_votes_cannot_tell():
    # Of four sources, two that copy each other look like the other two doing so.
    refit, usable, moments = noisy([0.5] * 4, [[0, 1]], 0.9, 0.02)
    found = weigh_readings(refit, usable, moments)
    assert not found.best.dependent.any()
    assert found.doubtful is not None


def test_better_sources_are_no_copies():
    refit, usable, moments = noisy([0.9, 0.9, 0.9, 0.3, 0.3, 0.2, 0.4, 0.3], [], 0.0, 0.02)
    found = weigh_readings(refit, usable, moments)
    assert not found.best.dependent.any()
    assert found.doubtful is None


def test_of_explanations_about_as_good_the_one_that_accuses_fewest_is_taken():
    # A good source agrees with the copies of a middling one more than their quality explains: it copies nobody.
    quality = [0.7, 0.0, 0.1, 0.5, 0.9, 0.5, 0.6, 0.5, 0.5, 0.1]
    refit, usable, moments = noisy(quality, [[0, 1], [3, 5, 6, 7]], 0.8, 0.04, seed=3)
    found = weigh_readings(refit, usable, moments)
    pairs = [[0, 1], [3, 5], [3, 6], [3, 7], [5, 6], [5, 7], [6, 7]]
    assert np.argwhere(np.triu(found.best.dependent)).tolist() == pairs
    assert found.rival is None


def test_pairs_that_are_close_by_chance_are_no_doubt_about_sources_that_are_alike():
    # Some two of seven agree most; weights hardly follow them, so that nothing is lost if they are copies. Without
    # that rule four of these draws are doubted.
    for seed in range(40):
        refit, usable, moments = noisy([0.7] * 7, [], 0.0, 0.02, seed=seed)
        found = weigh_readings(refit, usable, moments)
        assert not found.best.dependent.any()
        assert found.doubtful is None


def test_sources_that_mislead_are_no_copies_of_each_other():
    # Both say the opposite, so that they agree with each other and with nobody else.
    refit, usable, moments = noisy([-0.3, 0.7, 0.1, 0.7, 0.3, 0.6, -0.4], [], 0.0, 0.02)
    assert not weigh_readings(refit, usable, moments).best.dependent.any()


def test_that_most_sources_copy_each_other_is_no_rival_of_a_small_group():
    refit, usable, moments = noisy([0.4, 0.0, 0.0, 0.0, 0.7, 0.9, 0.7, 0.4], [[1, 2, 3]], 0.5, 0.02, seed=3)
    found = weigh_readings(refit, usable, moments)
    assert np.argwhere(np.triu(found.best.dependent)).tolist() == [[1, 2], [1, 3], [2, 3]]
    assert found.rival is None


def test_errors_that_are_too_small_accuse_nobody():
    # Residuals of three standard errors are nothing where all of them scatter three times too much.
    for seed in range(6):
        refit, usable, moments = noisy([0.7, 0.6, 0.6, 0.5, 0.5, 0.4, 0.4, 0.3], [], 0.0, 0.02, seed, scatter=3.0)
        assert not weigh_readings(refit, usable, moments).best.dependent.any()


def test_two_groups_that_exchange_their_places_are_rivals_however_many_others_are_poor():
    both = [PairReading(np.zeros((16, 16), dtype=bool), np.full(16, 0.05), 0.0) for _ in range(2)]
    for reading, copies, trusted in zip(both, (slice(0, 4), slice(4, 8)), (slice(4, 8), slice(0, 4)), strict=True):
        reading.dependent[copies, copies] = ~np.eye(4, dtype=bool)
        reading.quality[trusted] = 0.5
        reading.quality[copies] = 0.1
        reading.quality[8:] = np.linspace(-0.3, 0.2, 8)  # on which both readings agree
    assert not opposed(both[0].quality, both[1].quality)
    assert contradict(both[0], both[1])
    assert not contradict(both[0], both[0])

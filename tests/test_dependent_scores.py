"""Scores and vectors of sources that err together, compete, or have too few votes for weights of their own."""

from __future__ import annotations

import numpy as np
import pytest

import consilience as cs
from consilience.families.gaussian import GaussianParameters
from consilience.families.gaussian_evidence import drawn
from consilience.families.gaussian_posterior import believe
from consilience.families.left_out import STEPS, Support

pytestmark = pytest.mark.filterwarnings("ignore::consilience.exceptions.ConsilienceWarning")


def codes(model: cs.LabelModel) -> set[str]:
    return {item.code for item in model.diagnostics_}


def fit(votes: np.ndarray, gold: np.ndarray | None = None, **options: object) -> cs.LabelModel:
    return cs.LabelModel(options.pop("space", cs.Scores()), random_state=0, **options).fit(votes, gold=gold)


def with_copies(n: int, apart: float, seed: int = 0, missing: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Return votes of six independent sources and three (near) copies of a weak one."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=n)
    votes = truth[:, None] + rng.normal(size=(n, 9)) * np.array([0.6, 0.8, 1.0, 1.0, 1.2, 1.4, 1.4, 1.4, 1.4])
    votes[:, 7:] = votes[:, 6:7] + apart * rng.normal(size=(n, 2))
    votes[rng.random(votes.shape) < missing] = np.nan
    return votes, truth


COPIES = {("source_6", "source_7"), ("source_6", "source_8"), ("source_7", "source_8")}


@pytest.mark.parametrize(
    ("n", "apart", "missing"), [(200, 0.1, 0.0), (600, 0.3, 0.0), (600, 0.0, 0.0), (600, 0.1, 0.3)]
)
def test_copies_of_a_weak_source_are_found_and_share_one_vote(n, apart, missing):
    votes, truth = with_copies(n, apart, missing=missing)
    model = fit(votes)
    assert set(model.source_model_.dependencies) == COPIES
    alone = fit(votes[:, :7])
    error, bound = (np.mean((one.predict(seen) - truth) ** 2) for one, seen in ((model, votes), (alone, votes[:, :7])))
    assert error < 1.05 * bound  # as good as without the copies
    misled = fit(votes, dependencies=())
    assert np.mean((misled.predict(votes) - truth) ** 2) > 1.2 * bound


def test_exact_copies_share_one_vote_even_where_nothing_can_be_learned():
    # Two opinions are left of three sources: their mean, and not the mean of the three votes.
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(2, 100)) + rng.normal(size=100)
    votes = np.column_stack([first, second, second])
    model = fit(votes)
    assert {"copied-source", "fell-back-to-majority"} <= codes(model)
    assert model.predict(votes) == pytest.approx((first + second) / 2.0, abs=0.02)


def test_learning_can_be_switched_off():
    votes, _ = with_copies(300, 0.1)
    model = fit(votes, dependencies=())
    assert model.source_model_.dependencies == ()
    assert "dependent-pair" not in codes(model)


def halves(seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    truth, fad = rng.normal(size=(2, 1000))
    votes = truth[:, None] + rng.normal(size=(1000, 6))
    votes[:, 3:] += fad[:, None]
    return votes, truth


def test_two_groups_that_compete_are_named_and_the_plain_mean_returned():
    votes, _ = halves()
    model = fit(votes)
    [finding] = [item for item in model.diagnostics_ if item.code == "competing-groups"]
    assert set(finding.sources) == {f"source_{number}" for number in range(6)}
    assert "gold=" in finding.message
    assert model.predict(votes) == pytest.approx(votes.mean(axis=1))


def test_known_labels_decide_between_two_groups():
    votes, truth = halves()
    gold = np.full(1000, np.nan)
    gold[:20] = truth[:20]
    model = fit(votes, gold)
    # The right half correlates with the truth by 0.89, the mean of all by 0.84, the wrong half by 0.72.
    assert np.corrcoef(model.predict(votes), truth)[0, 1] > 0.87
    assert {("source_3", "source_4"), ("source_3", "source_5"), ("source_4", "source_5")} == set(
        model.source_model_.dependencies
    )


# --- weights only as far as the votes support them ---------------------------------------------------


def lines() -> GaussianParameters:
    unknown = np.full(3, 0.1)
    return GaussianParameters(
        np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 3.0]), np.diag([1.0, 2.0, 3.0]), 0.0, 1.0,
        np.zeros((3, 3), dtype=bool), unknown, unknown, unknown,
    )  # fmt: skip


def test_lines_drawn_all_the_way_give_the_plain_mean():
    # Two votes each: offsets of variance 2/3 are no larger than their errors ((1+1)/2, (2+4)/2, (3+9)/2), so all go.
    equal = drawn(lines(), 0.0, np.full(3, 2.0), shrink=0.0)
    assert equal.slope == pytest.approx([2.0, 2.0, 2.0])
    assert equal.offset == pytest.approx([2.0, 2.0, 2.0])
    assert equal.noise_variance == pytest.approx([2.0, 2.0, 2.0])
    votes = np.array([[4.0, 5.0, 9.0]])
    # mean 6 = 2 + 2 y
    assert believe(equal, votes, np.ones((1, 3), dtype=bool)).mean == pytest.approx([2.0])


def test_lines_drawn_half_way_lie_between():
    half = drawn(lines(), 0.5, np.full(3, 2.0))
    assert half.slope == pytest.approx([1.5, 2.0, 2.5])
    assert half.noise_variance == pytest.approx(np.sqrt(2.0 * np.array([1.0, 2.0, 3.0])))
    assert (half.slope_error >= 0.1).all()


def test_clear_offsets_are_kept():
    # With a million votes each the offsets 1, 2, 3 are known to a thousandth.
    equal = drawn(lines(), 0.0, np.full(3, 1e6))
    assert equal.offset == pytest.approx([1.0, 2.0, 3.0], abs=1e-3)


@pytest.mark.parametrize(
    ("gain", "error", "share"),
    [
        ([0.0, 0.1, 0.2, 0.3, 0.4], [0.0, 0.01, 0.01, 0.01, 0.01], 1.0),
        ([0.0, -0.1, -0.2, -0.3, -0.4], [0.0, 0.01, 0.01, 0.01, 0.01], 0.0),
        ([0.0, 0.01, 0.02, 0.02, 0.02], [0.0, 0.05, 0.1, 0.15, 0.2], 0.0),
        ([0.0, 0.05, 0.06, 0.03, 0.0], [0.0, 0.01, 0.01, 0.01, 0.01], 0.5),
    ],
)
def test_the_step_is_the_one_whose_gain_is_surest(gain, error, share):
    assert len(gain) == len(STEPS)
    assert Support(np.array(gain), np.array(error)).share == share


def crowd(seed: int, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Return 100 items in five blocks of 20, each with ten workers of its own but two."""
    rng = np.random.default_rng(seed)
    n, m = 100, 42
    seen = np.zeros((n, m), dtype=bool)
    for block in range(5):
        seen[block * 20 : block * 20 + 20, [0, 1, *range(2 + 8 * block, 10 + 8 * block)]] = True
    truth = rng.normal(50.0, 20.0, n)
    votes = truth[:, None] + 25.0 * rng.normal(size=(n, m))
    if kind == "spam":
        votes = truth[:, None] + 12.0 * rng.normal(size=(n, m))
        votes = np.where(rng.random(m) < 0.3, rng.uniform(0.0, 100.0, (n, m)), votes)
    if kind == "zeros":
        truth = np.clip(rng.gamma(0.6, 35.0, n), 0.0, 100.0)
        felt = truth[:, None] + rng.normal(size=(n, m)) * (5.0 + 0.7 * truth[:, None])
        quiet = (felt < 10.0) | (rng.random((n, m)) < rng.uniform(0.1, 0.6, m))
        votes = np.round(np.where(quiet, 0.0, np.clip(0.7 * felt, 0.0, 100.0)))
    return np.where(seen, votes, np.nan), truth


@pytest.mark.parametrize("kind", ["equal", "zeros"])
def test_a_sparse_crowd_is_not_weighed_beyond_what_it_supports(kind):
    votes, truth = crowd(0, kind)
    model = fit(votes)
    assert "drawn-together" in codes(model)
    assert np.mean((model.predict(votes) - truth) ** 2) < 1.02 * np.mean((np.nanmean(votes, axis=1) - truth) ** 2)


def test_spammers_in_a_sparse_crowd_are_weighed_down():
    votes, truth = crowd(0, "spam")
    found = fit(votes).predict(votes)
    # 0.4 of the error of the mean over ten seeds, at most 0.6 in any.
    assert np.mean((found - truth) ** 2) < 0.7 * np.mean((np.nanmean(votes, axis=1) - truth) ** 2)


def test_equal_sources_of_vectors_come_close_to_the_plain_mean():
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(60, 2))
    votes = truth[:, None, :] + rng.normal(size=(60, 8, 2))
    model = fit(votes, space=cs.Vectors(2))
    assert np.mean((model.predict(votes) - truth) ** 2) < 1.02 * np.mean((votes.mean(axis=1) - truth) ** 2)


def test_equal_sources_are_put_on_the_scale_that_is_told():
    # n = 4000 items, 6 sources of slope 0.6 and noise variance 0.2: posterior variance 1 / (1 / 2.25 + 6 * .36 / .2) =
    # .0889; its estimate has a standard error of .002, so 20% above is more than eight of them. The plain mean errs by
    # .16 * 2.25 + .2 / 6 = .39.
    rng = np.random.default_rng(3)
    truth = rng.normal(0.0, 1.5, 4000)
    votes = 0.6 * truth[:, None] + rng.normal(size=(4000, 6)) * np.sqrt(0.2)
    model = fit(votes, space=cs.Scores(mean=0.0, variance=2.25))
    assert np.mean((model.predict(votes) - truth) ** 2) < 1.2 * 0.0889
    np.testing.assert_allclose(model.source_model_.parameters.slope, 0.6, atol=0.03)

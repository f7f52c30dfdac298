"""The trust engine on small tables worked out by hand and on simulated two-class votes."""

from __future__ import annotations

import numpy as np
import pytest

from consilience.arrays import BoolArray, FloatArray
from consilience.estimation.pair_table import Forward, PairTable
from consilience.estimation.protocol import Trust
from consilience.estimation.trust import trust


def votes_of(
    quality: FloatArray,
    n: int,
    rng: np.random.Generator,
    groups: tuple[tuple[int, ...], ...] = (),
    copied: float = 0.9,
) -> tuple[FloatArray, FloatArray]:
    """Return votes and truth, -1 or 1; in a group, all but the first repeat the first on a share of the items."""
    truth = rng.choice([-1.0, 1.0], n)
    right = rng.random((n, len(quality))) < (1.0 + quality) / 2.0
    votes = np.where(right, truth[:, None], -truth[:, None])
    for group in groups:
        for member in group[1:]:
            same = rng.random(n) < copied
            votes[same, member] = votes[same, group[0]]
    return votes, truth


def table_of(votes: FloatArray, truth: FloatArray | None = None, known: int = 0) -> PairTable:
    """Return the pair table of votes -1, 0 (none), 1; the labels of the first `known` items are given."""
    seen = (votes != 0.0).astype(float)
    both = seen.T @ seen
    value = votes.T @ votes / np.maximum(both, 1.0)
    error = np.where(both >= 3, np.sqrt((1.0 - value**2 + 0.01) / np.maximum(both, 1.0)), np.inf)
    gold_value = gold_error = None
    if known and truth is not None:
        count = np.maximum(seen[:known].sum(axis=0), 1.0)
        gold_value = (votes[:known] * truth[:known, None]).sum(axis=0) / count
        gold_error = np.sqrt((1.0 - gold_value**2 + 0.3) / count)
    return PairTable(value, error, both, gold_value, gold_error)


def product_table(quality: FloatArray, error: float, items: float) -> PairTable:
    """Return the exact table of independent sources."""
    m = len(quality)
    return PairTable(np.outer(quality, quality), np.full((m, m), error), np.full((m, m), items))


def is_sound(found: Trust) -> bool:
    """Return whether all numbers are finite, and probabilities are probabilities."""
    arrays = [found.u, found.spread, found.draws, found.together]
    for hypothesis in found.hypotheses:
        arrays += [hypothesis.u, hypothesis.spread, hypothesis.correlation]
    numbers = [found.independent, found.alike, found.no_signal, found.misfit]
    total = sum(hypothesis.probability for hypothesis in found.hypotheses)
    return (
        all(np.isfinite(array).all() for array in arrays)
        and bool(np.isfinite(numbers).all())
        and abs(total - 1.0) < 1e-9
        and 1 <= len(found.hypotheses) <= 6
        and min(found.independent, found.alike, found.no_signal) >= -1e-9
        and max(found.independent, found.alike, found.no_signal) <= 1.0 + 1e-9
    )


def test_three_independent_sources_follow_the_product_formula() -> None:
    # q_1 = sqrt(y_12 y_13 / y_23) = sqrt(.48 * .40 / .30) = .8, and so on.
    value = np.array([[1.0, 0.48, 0.40], [0.48, 1.0, 0.30], [0.40, 0.30, 1.0]])
    found = trust(PairTable(value, np.full((3, 3), 0.002), np.full((3, 3), 250_000.0)))
    assert np.tanh(found.u) == pytest.approx([0.8, 0.6, 0.5], abs=0.02)
    assert found.independent == pytest.approx(1.0)


def test_known_qualities_are_recovered_from_an_exact_table() -> None:
    quality = np.array([0.1, 0.25, 0.4, 0.55, 0.7, 0.8])
    found = trust(product_table(quality, 0.01, 10_000.0))
    assert np.tanh(found.u) == pytest.approx(quality, abs=0.03)
    assert found.independent > 0.9
    assert found.misfit < 0.01


def test_a_forward_map_given_as_a_table_is_used() -> None:
    grid = np.linspace(-4.0, 4.0, 161)
    bent = np.tanh(grid) ** 3
    quality = np.array([0.5, 0.6, 0.7, 0.8])
    value = np.outer(quality**3, quality**3)
    table = PairTable(value, np.full((4, 4), 0.004), np.full((4, 4), 60_000.0))
    found = trust(table, Forward.of_table(grid, np.outer(bent, bent)))
    assert np.tanh(found.u) == pytest.approx(quality, abs=0.03)


@pytest.mark.parametrize("seed", range(4))
def test_copies_are_found(seed: int) -> None:
    # 5 copies of 90%: tens of nats; a miss is not expected in thousands of seeds.
    quality = np.array([0.2] * 5 + [0.5, 0.55, 0.6, 0.5, 0.55])
    votes, _ = votes_of(quality, 600, np.random.default_rng(seed), (tuple(range(5)),))
    found = trust(table_of(votes))
    assert found.together[:5, :5][~np.eye(5, dtype=bool)].min() > 0.9
    assert found.together[5:, :5].max() < 0.1
    assert np.tanh(found.u) == pytest.approx(quality, abs=0.2)
    assert found.hypotheses[0].correlation[0, 1] > 0.6


def test_independent_sources_are_not_accused() -> None:
    # At most 1% of fits may say P(independent) < .5: two or more of 20 are expected in 2% of seeds.
    accused = 0
    for seed in range(20):
        rng = np.random.default_rng([7, seed])
        votes, _ = votes_of(rng.uniform(0.2, 0.7, 9), 400, rng)
        accused += trust(table_of(votes)).independent < 0.5
    assert accused <= 1


def test_the_order_of_the_sources_does_not_matter() -> None:
    rng = np.random.default_rng(3)
    votes, truth = votes_of(rng.uniform(0.2, 0.7, 10), 300, rng, ((0, 1, 2),))
    order = rng.permutation(10)
    for known in (0, 40):
        one = trust(table_of(votes, truth, known))
        two = trust(table_of(votes[:, order], truth, known))
        assert two.u == pytest.approx(one.u[order], abs=1e-6)
        assert two.together == pytest.approx(one.together[np.ix_(order, order)], abs=1e-6)
        assert two.draws == pytest.approx(one.draws[:, order], abs=1e-5)
        assert two.independent == pytest.approx(one.independent, abs=1e-6)


def test_the_same_table_gives_the_same_answer() -> None:
    votes, _ = votes_of(np.full(7, 0.5), 100, np.random.default_rng(1))
    one, two = trust(table_of(votes)), trust(table_of(votes))
    assert (one.draws == two.draws).all()
    assert (one.u == two.u).all()


@pytest.mark.parametrize("seed", range(3))
def test_known_labels_decide_between_camps(seed: int) -> None:
    # 60 known labels: the camps differ by .45 +- .15, three standard errors and more in both readings.
    quality = np.array([0.15] * 5 + [0.6] * 5)
    groups = (tuple(range(5)), tuple(range(5, 10)))
    votes, truth = votes_of(quality, 1000, np.random.default_rng([5, seed]), groups, 0.8)
    found = trust(table_of(votes, truth, 60))
    assert np.tanh(found.u[5:]).min() > np.tanh(found.u[:5]).max()


@pytest.mark.parametrize("seed", range(3))
def test_two_schools_are_not_taken_for_experts_and_copies(seed: int) -> None:
    # Each school votes around its own version of the truth, both 85% right: nobody may be called nearly perfect.
    rng = np.random.default_rng([11, seed])
    truth = rng.choice([-1.0, 1.0], 1000)
    columns = []
    for size in (6, 4):
        version = np.where(rng.random(1000) < 0.85, truth, -truth)
        columns.append(np.where(rng.random((1000, size)) < 0.85, version[:, None], -version[:, None]))
    found = trust(table_of(np.hstack(columns)))
    quality = np.tanh(found.u)
    assert abs(quality[:6].mean() - quality[6:].mean()) < 0.25
    assert found.together[6:, 6:][~np.eye(4, dtype=bool)].mean() > 0.5


def test_linked_pairs_are_always_together() -> None:
    votes, _ = votes_of(np.array([0.3, 0.4, 0.5, 0.6, 0.5, 0.4]), 500, np.random.default_rng(0))
    linked: BoolArray = np.zeros((6, 6), dtype=bool)
    linked[0, 3] = linked[3, 4] = True
    for learn in (True, False):
        found = trust(table_of(votes), linked=linked, learn=learn)
        assert found.together[0, 3] == pytest.approx(1.0)
        assert found.together[0, 4] == pytest.approx(1.0)
        assert found.independent == 0.0
        for hypothesis in found.hypotheses:
            assert hypothesis.groups[0] == hypothesis.groups[3] == hypothesis.groups[4]
    assert trust(table_of(votes), linked=linked, learn=False).together[1, 2] == 0.0


def test_links_of_the_table_count_too() -> None:
    votes, _ = votes_of(np.full(5, 0.5), 300, np.random.default_rng(0))
    table = table_of(votes)
    linked: BoolArray = np.zeros((5, 5), dtype=bool)
    linked[1, 2] = True
    found = trust(PairTable(table.value, table.error, table.both, linked=linked))
    assert found.together[1, 2] == pytest.approx(1.0)


@pytest.mark.parametrize("m", [1, 2, 3, 5])
def test_without_any_pair_the_prior_remains(m: int) -> None:
    found = trust(PairTable(np.eye(m), np.full((m, m), np.inf), np.zeros((m, m))))
    assert is_sound(found)
    assert found.u == pytest.approx(np.full(m, 0.55), abs=1e-6)


def test_two_sources_share_the_credit() -> None:
    found = trust(product_table(np.array([0.7, 0.7]), 0.01, 10_000.0))
    assert is_sound(found)
    assert found.u[0] == pytest.approx(found.u[1])
    assert np.tanh(found.u[0]) == pytest.approx(0.7, abs=0.1)


@pytest.mark.parametrize("m", [2, 3, 6])
def test_perfect_agreement_is_sound(m: int) -> None:
    found = trust(PairTable(np.ones((m, m)), np.zeros((m, m)), np.full((m, m), 50.0)))
    assert is_sound(found)
    assert np.tanh(found.u).min() > 0.8


@pytest.mark.parametrize("seed", range(5))
def test_a_handful_of_items_is_sound(seed: int) -> None:
    votes, truth = votes_of(np.full(6, 0.4), 4, np.random.default_rng(seed))
    assert is_sound(trust(table_of(votes)))
    assert is_sound(trust(table_of(votes, truth, 2)))


def test_a_source_without_pairs_gets_the_average() -> None:
    votes, _ = votes_of(np.array([0.5, 0.5, 0.5, 0.5, 0.5]), 2000, np.random.default_rng(0))
    votes[:, 4] = 0.0
    found = trust(table_of(votes))
    assert is_sound(found)
    assert found.u[4] == pytest.approx(found.u[:4].mean(), abs=0.1)
    assert found.spread[4] > found.spread[:4].max()


def test_known_labels_alone_suffice() -> None:
    quality = np.array([0.2, 0.5, 0.8])
    found = trust(PairTable(np.eye(3), np.full((3, 3), np.inf), np.diag(np.full(3, 2000.0)), quality, np.full(3, 0.02)))
    assert is_sound(found)
    assert np.tanh(found.u) == pytest.approx(quality, abs=0.04)


def test_sources_at_chance_give_no_signal() -> None:
    votes, _ = votes_of(np.zeros(8), 20_000, np.random.default_rng(2))
    assert trust(table_of(votes)).no_signal > 0.5
    votes, _ = votes_of(np.full(8, 0.5), 3000, np.random.default_rng(2))
    assert trust(table_of(votes)).no_signal < 0.01


def test_a_table_that_nothing_fits_has_misfit() -> None:
    rng = np.random.default_rng(4)
    noise = rng.normal(0.3, 0.2, (9, 9))
    value = np.clip((noise + noise.T) / 2.0, -0.9, 0.9)
    found = trust(PairTable(value, np.full((9, 9), 0.01), np.full((9, 9), 10_000.0)))
    assert is_sound(found)
    assert found.misfit > 0.03
    off = ~np.eye(9, dtype=bool)
    assert all(hypothesis.correlation[off].min() > 0.03 for hypothesis in found.hypotheses)


@pytest.mark.parametrize("groups", [(), ((0, 1, 2),)])
def test_intervals_cover_nine_times_of_ten(groups: tuple[tuple[int, ...], ...]) -> None:
    # 40 tables of 8 sources; the coverage of one seed scatters by about .03.
    inside = []
    for seed in range(40):
        rng = np.random.default_rng([23, len(groups), seed])
        quality = rng.uniform(0.2, 0.7, 8)
        quality[:3] = quality[0]
        votes, _ = votes_of(quality, 400, rng, groups)
        low, high = np.quantile(np.tanh(trust(table_of(votes)).draws), [0.05, 0.95], axis=0)
        inside.append(((low <= quality) & (quality <= high)).mean())
    assert 0.8 < np.mean(inside) < 0.98

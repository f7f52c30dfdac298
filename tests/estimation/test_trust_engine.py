"""The trust engine on small tables worked out by hand and on simulated two-class votes."""

import os
import subprocess
import sys

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


def test_experts_among_useless_sources_are_not_taken_for_copies() -> None:
    # One of 60 other draws failed, so that three of six do with a probability below .001.
    failures = 0
    for seed in range(6):
        rng = np.random.default_rng([12, seed])
        quality = np.concatenate([rng.uniform(0.8, 0.95, 3), np.zeros(6)])
        found = np.tanh(trust(table_of(votes_of(quality, 2000, rng)[0])).u)
        failures += found[:3].min() < 0.6 or np.abs(found[3:]).max() > 0.25
    assert failures < 3


def test_experts_among_weak_sources_are_not_taken_for_copies() -> None:
    # The weak ones are better than chance, so that "everyone is weak and some repeat each other" fits the table, too.
    # None of 60 other draws failed, so that three of six do with a probability below .001.
    failures = 0
    for seed in range(6):
        rng = np.random.default_rng([13, seed])
        quality = np.concatenate([rng.uniform(0.1, 0.25, 10), rng.uniform(0.85, 0.97, 8)])
        failures += trust(table_of(votes_of(quality, 2000, rng)[0])).independent < 0.5
    assert failures < 3


def test_links_of_the_table_count_too() -> None:
    votes, _ = votes_of(np.full(5, 0.5), 300, np.random.default_rng(0))
    table = table_of(votes)
    linked: BoolArray = np.zeros((5, 5), dtype=bool)
    linked[1, 2] = True
    found = trust(PairTable(table.value, table.error, table.both, linked=linked))
    assert found.together[1, 2] == pytest.approx(1.0)


def test_two_sources_share_the_credit() -> None:
    found = trust(product_table(np.array([0.7, 0.7]), 0.01, 10_000.0))
    assert is_sound(found)
    assert found.u[0] == pytest.approx(found.u[1])
    assert np.tanh(found.u[0]) == pytest.approx(0.7, abs=0.1)


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


def test_the_engine_runs_without_compilation() -> None:
    program = "import consilience as cs; votes = [[0, 0, 1], [1, 1, 0]] * 5; model = cs.LabelModel(cs.Classes(2))"
    program += "; print(model.fit(votes).predict([[1, 1, 0]]))"
    settings = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    ran = subprocess.run([sys.executable, "-c", program], env=settings, capture_output=True, text=True, check=False)
    assert ran.stdout == "[1]\n", ran.stderr

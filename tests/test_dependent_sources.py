"""Copied sources of rankings, finite spaces, manifolds and bare distances: found, named, and not counted twice."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

import consilience as cs
from consilience.exceptions import ConsilienceWarning

quiet = pytest.mark.filterwarnings("ignore::consilience.exceptions.ConsilienceWarning")


def codes(model: cs.LabelModel) -> set[str]:
    return {finding.code for finding in model.diagnostics_}


def pairs_of(model: cs.LabelModel) -> list[tuple[int, int]]:
    return [tuple(int(name.removeprefix("source_")) for name in pair) for pair in model.source_model_.dependencies]


def copied_rankings(seed: int, copies: int, n: int = 1000) -> tuple[cs.Rankings, np.ndarray, np.ndarray]:
    """Return rankings of five items by nine sources; the first ones copy a nearly random one on 90% of the items."""
    space, rng = cs.Rankings(5), np.random.default_rng(seed)
    weight = np.where(np.arange(9) < copies, 0.1, np.linspace(0.4, 1.0, 9))
    truth = space.random(n, rng)
    votes = cs.simulate(space, truth, weight, rng).labels.copy()
    for source in range(1, copies):
        rows = rng.random(n) < 0.9
        votes[rows, source] = votes[rows, 0]
    return space, votes, truth


@quiet
@pytest.mark.parametrize("copies", [3, 4])
def test_copied_rankings_are_found_and_do_not_mislead(copies):
    space, votes, truth = copied_rankings(1, copies)
    model = cs.LabelModel(space).fit(votes)
    assert pairs_of(model) == list(combinations(range(copies), 2))
    # 0.08 and 0.10 where copies are known; the plain vote has 0.19 and 0.30; standard error 0.003
    assert space.kendall_error(model.predict(votes), truth) < 0.12
    assert model.weight_[:copies].max() < 0.3 < model.weight_[copies:].min()


@quiet
def test_learned_dependence_is_used_and_stored(tmp_path):
    space, votes, _ = copied_rankings(2, 3, n=500)
    model = cs.LabelModel(space).fit(votes)
    model.save(tmp_path / "model.cs")
    again = cs.LabelModel.load(tmp_path / "model.cs")
    assert np.array_equal(again.predict(votes), model.predict(votes))
    # three copies against two others of the same weight: they count as one
    correlation = model.source_model_.correlation
    assert correlation[0, 1] > 0.7
    assert correlation[3:, :].max() == 0.0


def camps(n: int = 600) -> tuple[cs.Rankings, np.ndarray, np.ndarray]:
    """Return votes of three sources that follow the truth and three that follow something else."""
    space, rng = cs.Rankings(5), np.random.default_rng(4)
    truth, other = space.random(n, rng), space.random(n, rng)
    sides = [cs.simulate(space, target, np.array([1.0, 0.8, 0.9]), rng).labels for target in (truth, other)]
    return space, np.hstack(sides), truth


@quiet
def test_three_known_labels_decide_between_two_camps():
    # Three rankings of five have about 15 independent comparisons; the right camp agrees with them by 0.6, the other
    # by 0 with a standard error of 0.26 per source: wrong in about one of a thousand draws.
    space, votes, truth = camps()
    for seed in range(4):
        known = np.zeros(len(truth), dtype=bool)
        known[np.random.default_rng(seed).choice(len(truth), 3, replace=False)] = True
        model = cs.LabelModel(space).fit(votes, gold=(truth, known))
        assert model.weight_[:3].min() > 2 * np.abs(model.weight_[3:]).max()
        assert space.kendall_error(model.predict(votes), truth) < 0.2


@quiet
def test_known_labels_decide_between_two_camps_of_a_finite_space():
    nodes = np.arange(8.0)
    space, rng = cs.FiniteMetric(np.abs(np.subtract.outer(nodes, nodes))), np.random.default_rng(3)
    truth, other = space.random(800, rng), space.random(800, rng)
    sides = [cs.simulate(space, target, np.array([1.0, 0.8, 0.9]), rng).labels for target in (truth, other)]
    votes = np.hstack(sides)
    assert "competing-groups" in codes(cs.LabelModel(space).fit(votes))
    known = np.zeros(800, dtype=bool)
    known[:6] = True
    told = cs.LabelModel(space).fit(votes, gold=(truth, known))
    assert told.weight_[:3].min() > told.weight_[3:].max() + 0.3


@pytest.mark.parametrize("seed", range(6))
def test_independent_sources_are_not_called_dependent(seed):
    # Flags need five standard errors: about 2e-5 for all pairs of these twelve fits together. Warnings are errors.
    rng = np.random.default_rng(100 + seed)
    for space, low, high in ((cs.Rankings(5), 0.2, 1.2), (cs.FiniteMetric(np.minimum(ring(9), 3)), 0.5, 1.5)):
        votes = cs.simulate(space, space.random(600, rng), rng.uniform(low, high, 6), rng)
        model = cs.LabelModel(space).fit(votes)
        assert model.source_model_.dependencies == ()


def ring(size: int) -> np.ndarray:
    step = np.abs(np.subtract.outer(np.arange(size), np.arange(size)))
    return np.minimum(step, size - step).astype(float)


def straight(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    return np.sqrt(((left - right) ** 2).sum(axis=-1))


def points(jitter: float | None, n: int = 300) -> tuple[np.ndarray, np.ndarray]:
    """Return nine votes on points: four of noise 1.2, copies unless `jitter` is None, and five of noise 0.7."""
    rng = np.random.default_rng(0)
    truth = 2.0 * rng.normal(size=(n, 4))
    noise = 1.2 * rng.normal(size=(4, n, 4)) if jitter is None else 1.2 * rng.normal(size=(n, 4)) + np.zeros((4, 1, 1))
    first = truth + noise + (0.0 if jitter is None else jitter) * rng.normal(size=(4, n, 4))
    others = truth + 0.7 * rng.normal(size=(5, n, 4))
    return np.concatenate([first, others]).swapaxes(0, 1), truth


def share_picked(model: cs.LabelModel, votes: np.ndarray) -> float:
    labels = np.asarray(model.predict(cs.Votes.from_array(votes)))
    return float((np.abs(votes - labels[:, None]).sum(axis=2) < 1e-12)[:, :4].any(axis=1).mean())


@quiet
@pytest.mark.parametrize("jitter", [0.0, 0.1])
def test_copies_gain_no_weight_where_only_a_distance_is_known(jitter):
    # Picked as the label: 5% of the items without copying, standard error 1.3%; 85% by the plain medoid of the copies.
    space = cs.Metric(straight, vectorized=True)
    alone, _ = points(None)
    usual = share_picked(cs.LabelModel(space).fit(cs.Votes.from_array(alone)), alone)
    votes, _ = points(jitter)
    model = cs.LabelModel(space).fit(cs.Votes.from_array(votes))
    assert pairs_of(model) == list(combinations(range(4), 2))
    assert share_picked(model, votes) <= usual + 0.05
    assert model.expected_cost_[:4].min() >= model.expected_cost_[4:].max()


@quiet
@pytest.mark.parametrize("space", [cs.Sphere(2), cs.SPD(2), cs.Hyperbolic(2)], ids=repr)
def test_copies_gain_no_weight_on_manifolds(space):
    rng = np.random.default_rng(5)
    geometry, truth = space.geometry, space.random(300, rng)

    def noisy(scale: float) -> np.ndarray:
        return geometry.exp(truth, scale * geometry.random_tangent(truth, rng))

    bad = noisy(0.5)
    votes = np.stack([bad, bad, bad, *(noisy(0.25) for _ in range(5))], axis=1)
    model = cs.LabelModel(space).fit(cs.Votes.from_array(votes))
    assert pairs_of(model) == list(combinations(range(3), 2))
    assert model.expected_cost_[:3].min() > model.expected_cost_[3:].max()


def test_copies_that_were_found_are_not_advised_to_be_given():
    space, rng = cs.Classes(2), np.random.default_rng(3)
    truth = space.random(1000, rng)
    votes = cs.simulate(space, truth, np.full(8, 1.2), rng).labels.copy()
    votes[:, 1] = votes[:, 0]
    model = cs.LabelModel(space)
    with pytest.warns(ConsilienceWarning, match="dependent-pair"):
        model.fit(votes)
    assert pairs_of(model) == [(0, 1)]
    [copied] = [note for note in model.diagnostics_ if note.code == "copied-source"]
    assert "counts once" in copied.message
    assert "dependencies=" not in copied.message


@quiet
def test_adversaries_do_not_turn_the_labels_of_dependent_rankings_around():
    # Twelve sources of 30% of the cost of chance, two of them reversed, one copied: the plain vote errs on 2% of pairs.
    space, rng = cs.Rankings(5), np.random.default_rng(5)
    truth = space.random(800, rng)
    weight = space.law.weight_from_cost(0.3 * space.law.expected_cost(np.zeros(12)))
    votes = cs.simulate(space, truth, weight, rng).labels.copy()
    votes[:, :2] = 4 - votes[:, :2]
    same = rng.random(800) < 0.9
    votes[same, 3] = votes[same, 2]
    model = cs.LabelModel(space).fit(votes)
    plain = space.kendall_error(model.predict_baseline(votes), truth)
    assert space.kendall_error(model.predict(votes), truth) <= plain + 0.002


@quiet
@pytest.mark.parametrize("kind", ["classes", "steps", "rankings"])
def test_copies_at_few_items_are_never_followed(kind):
    # Five copies of a poor source among twelve, on 120 items: either they share a vote, or all weigh the same.
    levels = np.arange(6)
    space = {
        "classes": cs.Classes(4),
        "steps": cs.FiniteMetric(np.abs(np.subtract.outer(levels, levels))),
        "rankings": cs.Rankings(5),
    }[kind]
    for seed in range(3):
        rng = np.random.default_rng(seed)
        truth = space.as_labels(space.random(120, rng))
        chance = space.law.expected_cost(np.zeros(12))
        votes = cs.simulate(space, truth, space.law.weight_from_cost(0.55 * chance), rng).labels.copy()
        for copy in range(1, 5):
            same = rng.random(120) < 0.9
            votes[same, copy] = votes[same, 0]
        model = cs.LabelModel(space).fit(cs.Votes.from_array(votes))
        cost = [
            float(space.cost(space.as_batch(labels), space.as_batch(truth)).mean())
            for labels in (model.predict(votes), model.predict_baseline(votes))
        ]
        assert cost[0] <= 1.1 * cost[1] + 0.01
        assert codes(model) & {"dependent-pair", "possible-copies", "competing-groups"}


def test_rankings_with_half_of_the_items_left_out_do_not_look_copied() -> None:
    space, rng = cs.Rankings(10), np.random.default_rng(0)
    strong = {0: 2.21, 1: 3.7, 5: 3.59, 6: 2.06, 9: 4.38, 10: 4.78, 16: 4.5, 17: 2.26}
    weight = np.array([strong.get(source, 0.16) for source in range(18)])
    truth = space.random(250, rng)
    full = cs.simulate(space, truth, weight, rng).labels
    kept = cs.Rankings.positions_from_scores(full, larger_is_better=False, seen=rng.random(full.shape) < 0.5)
    votes = cs.Votes.from_array(kept, observed=(kept >= 0).sum(axis=-1) >= 2)
    model = cs.LabelModel(space, random_state=0).fit(votes)
    assert {"dependent-pair", "possible-copies"}.isdisjoint(note.code for note in model.diagnostics_)


@quiet
def test_groups_that_err_together_do_not_hide_behind_their_own_misfit_where_votes_hold_ties():
    # Five, three and two sources that share an error each, half of them with ties. The plain vote errs on 0.25, and so
    # does a fit that multiplies standard errors by the misfit, or maximizes a likelihood of independent sources.
    rng = np.random.default_rng(100010)
    truth, ranked = rng.normal(size=(1900, 5)), []
    for size in (5, 3, 2):
        shared = rng.normal(size=truth.shape)
        for _ in range(size):
            step = 0.7 if rng.random() < 0.5 else 1e-9
            scores = rng.uniform(0.4, 1.0) * truth + shared + 0.4 * rng.normal(size=truth.shape)
            ranked.append(cs.Rankings.positions_from_scores(np.round(scores / step) * step))
    votes, space = np.stack(ranked, axis=1).astype(np.int64), cs.Rankings(5)
    model = cs.LabelModel(space, random_state=0).fit(votes)
    groups = (range(5), range(5, 8), range(8, 10))
    assert set(pairs_of(model)) == {pair for group in groups for pair in combinations(group, 2)}
    gold = cs.Rankings.positions_from_scores(truth).astype(np.int64)
    plain = space.kendall_error(model.predict_baseline(votes), gold)
    # standard error of the difference 0.002
    assert space.kendall_error(model.predict(votes), gold) < plain - 0.02

"""What every label type learns from one engine: qualities, copies, camps, known labels, honest errors; embeddings."""

from typing import Any

import numpy as np
import pytest
from simulated import fitted

import consilience as cs

STEPS = np.abs(np.subtract.outer(np.arange(5), np.arange(5))).astype(float)
SPACES: dict[str, cs.LabelSpace] = {
    "two classes": cs.Classes(2),
    "four classes": cs.Classes(4),
    "tags": cs.Tags(4),
    "steps": cs.FiniteMetric(STEPS),
    "rankings": cs.Rankings(5),
    "scores": cs.Scores(),
    "sphere": cs.Sphere(2),
}
each_space = pytest.mark.parametrize("name", SPACES)


def draw(name: str, quality: Any, n: int, seed: int, copied: tuple[int, ...] = (), share: float = 0.9) -> Any:
    """Return votes of sources of given qualities and the truth; the copied ones repeat the first of them."""
    space, rng = SPACES[name], np.random.default_rng(seed)
    truth = space.as_labels(space.random(n, rng))
    quality = np.asarray(quality, dtype=float)
    # Half of the chance cost is removed by a source of quality .5; scores have no chance cost of their own.
    chance = 2.0 if name == "scores" else space.law.chance_cost
    weight = space.law.weight_from_cost(chance * (1.0 - quality))
    labels = cs.simulate(space, truth, weight, rng).labels.copy()
    for source in copied[1:]:
        same = rng.random(n) < share
        labels[same, source] = labels[same, copied[0]]
    return cs.Votes.from_array(labels, sources=[f"s{index}" for index in range(len(quality))]), truth


def cost(name: str, labels: Any, truth: Any) -> float:
    space = SPACES[name]
    return float(space.cost(space.as_batch(labels), space.as_batch(truth)).mean())


@each_space
def test_better_sources_get_lower_costs_and_labels_beat_the_plain_vote(name: str) -> None:
    # 1,000 items and qualities .1 to .8: the order of the extremes cannot be mistaken (over 20 standard errors).
    votes, truth = draw(name, [0.1, 0.2, 0.3, 0.5, 0.7, 0.8], 1000, seed=1)
    model = fitted(SPACES[name], votes)
    assert model.expected_cost_.argmax() in (0, 1)
    assert model.expected_cost_.argmin() in (4, 5)
    assert cost(name, model.predict(votes), truth) < cost(name, model.predict_baseline(votes), truth)


@each_space
@pytest.mark.parametrize("seed", [2, 3])
def test_copies_of_a_poor_source_are_found_and_do_not_mislead(name: str, seed: int) -> None:
    # Five of nine-tenths copies of a poor source among ten, 1,000 items: the plain vote follows them.
    votes, truth = draw(name, [0.2] * 4 + [0.4, 0.45, 0.5, 0.55, 0.6], 1000, seed, copied=(0, 1, 2, 3))
    model = fitted(SPACES[name], votes)
    own, plain = cost(name, model.predict(votes), truth), cost(name, model.predict_baseline(votes), truth)
    assert own < 0.85 * plain
    copies = model.source_model_.correlation[:4, :4][~np.eye(4, dtype=bool)]
    assert copies.min() > 0.4
    assert any(finding.code == "dependent-pair" for finding in model.diagnostics_)
    assert model.source_model_.effective_sources < 7.0


@each_space
def test_independent_sources_are_rarely_accused(name: str) -> None:
    # The engine's false-alarm rate is at most .01 per fit; two of twelve fits would happen once in 150 runs.
    accused = 0
    for seed in range(4):
        for n, m in ((60, 5), (300, 8), (1000, 6)):
            rng = np.random.default_rng([seed, n])
            votes, _ = draw(name, rng.uniform(0.25, 0.75, m), n, seed)
            findings = fitted(SPACES[name], votes).diagnostics_
            accused += any(finding.code in ("dependent-pair", "competing-groups") for finding in findings)
    assert accused < 2


@each_space
@pytest.mark.parametrize("n", [30, 300])
def test_alike_sources_stay_close_to_the_plain_vote(name: str, n: int) -> None:
    own, plain = 0.0, 0.0
    for seed in range(6 if n == 30 else 3):
        votes, truth = draw(name, [0.45] * 7, n, seed)
        model = fitted(SPACES[name], votes)
        own += cost(name, model.predict(votes), truth)
        plain += cost(name, model.predict_baseline(votes), truth)
    # Nothing in 30 items tells alike sources from unlike ones, and averaging over both costs up to a third there.
    assert own < (1.4 if n == 30 else 1.1) * plain


@pytest.mark.parametrize("name", ["two classes", "rankings", "steps", "scores"])
def test_ten_known_labels_decide_between_two_camps(name: str) -> None:
    # Both camps copy within themselves; without known labels nothing tells the good one (quality .6) from the poor.
    votes, truth = draw(name, [0.15] * 5 + [0.6] * 5, 600, 4, copied=(0, 1, 2, 3, 4), share=0.8)
    labels, rng = votes.labels.copy(), np.random.default_rng(5)
    for source in range(6, 10):
        same = rng.random(600) < 0.8
        labels[same, source] = labels[same, 5]
    votes = cs.Votes.from_array(labels)
    known = np.arange(600) < 20
    model = fitted(SPACES[name], votes, gold=(truth, known))
    rest = np.flatnonzero(~known)
    assert cost(name, model.predict(votes)[rest], truth[rest]) < 0.9 * cost(
        name, model.predict_baseline(votes)[rest], truth[rest]
    )


@each_space
@pytest.mark.parametrize(("n_gold", "hardest"), [(5, False), (50, False), (20, True)])
def test_known_labels_do_not_hurt(name: str, n_gold: int, hardest: bool) -> None:
    # Of 3,000 fresh items. The hardest items say little about the others, and taken for a random sample they cost four
    # classes several times more. Of two classes they may still mislead about the balance: over 24 draws the change was
    # 8% on average with a standard deviation of 19%, so that 1.4 is three standard errors of the mean over four.
    without = given = 0.0
    for seed in range(4):
        every, every_truth = draw(name, [0.15, 0.25, 0.35, 0.45, 0.55, 0.65], 3300, seed)
        votes, truth, fresh, fresh_truth = every[:300], every_truth[:300], every[300:], every_truth[300:]
        before = fitted(SPACES[name], votes)
        chosen = before.suggest(votes, n_gold, purpose="learn").items if hardest else votes.items[:n_gold]
        after = fitted(SPACES[name], votes, gold=(truth, np.isin(votes.items, chosen)))
        without += cost(name, before.predict(fresh), fresh_truth)
        given += cost(name, after.predict(fresh), fresh_truth)
    assert given < (1.4 if hardest else 1.1) * without


@each_space
def test_given_dependencies_are_in_every_explanation(name: str) -> None:
    votes, _ = draw(name, [0.3] * 3 + [0.4, 0.5, 0.6], 300, 6, copied=(0, 1, 2))
    model = fitted(SPACES[name], votes, dependencies=[("s0", "s1"), ("s1", "s2")])
    assert {("s0", "s1"), ("s0", "s2"), ("s1", "s2")} <= set(model.source_model_.dependencies)
    alone = fitted(SPACES[name], votes, dependencies="none")
    assert alone.source_model_.dependencies == ()


@pytest.mark.parametrize("name", ["two classes", "four classes", "tags", "steps", "rankings", "scores"])
def test_intervals_of_qualities_cover(name: str) -> None:
    # 8 fits of 6 sources: 48 nominal 90% intervals; 75% or fewer of covered ones happen once in a thousand times.
    space, covered = SPACES[name], []
    quality = np.array([0.2, 0.3, 0.4, 0.5, 0.6, 0.7])
    true = (2.0 if name == "scores" else space.law.chance_cost) * (1.0 - quality)
    for seed in range(8):
        votes, _ = draw(name, quality, 400, 100 + seed)
        model = fitted(space, votes)
        covered.append(np.abs(model.expected_cost_ - true) < 1.645 * model.cost_standard_error_)
    assert np.mean(covered) > 0.75


@pytest.mark.parametrize("name", ["two classes", "four classes", "steps"])
@pytest.mark.parametrize("copied", [(), (0, 1, 2)], ids=["independent", "copies"])
def test_confidence_comes_true(name: str, copied: tuple[int, ...]) -> None:
    # 4 x 2,000 items: the mean of right labels has a standard error below .006.
    stated, right = [], []
    for seed in range(4):
        votes, truth = draw(name, [0.3] * 3 + [0.35, 0.4, 0.45, 0.5], 2000, seed, copied=copied)
        model = fitted(SPACES[name], votes)
        stated.append(model.confidence(votes).mean())
        right.append(np.mean(model.predict(votes) == truth))
    assert np.mean(stated) == pytest.approx(np.mean(right), abs=0.06)


def test_errors_that_all_sources_share_widen_intervals_by_the_same_amount() -> None:
    # Votes scatter by .5 around a value that misses the truth by 2. In 100 draws with 100 known labels, intervals held
    # .946 +- .019 of the other truths, and the widest was 1.036 +- .007 times the narrowest (2 times, before): both
    # limits are five standard deviations away.
    rng = np.random.default_rng(5)
    truth = rng.normal(0.0, 5.0, 2000)
    shared = truth + rng.normal(0.0, 2.0, 2000)
    votes = shared[:, None] + rng.normal(0.0, 0.5, (2000, 4))
    observed = rng.random(votes.shape) < 0.6
    table = cs.Votes.from_array(votes, observed=observed)
    known = np.isin(np.arange(2000), rng.choice(2000, 100, replace=False))
    model = cs.LabelModel(cs.Scores(), random_state=0).fit(table, gold=(truth, known))
    rows = np.flatnonzero(~known & observed.any(axis=1))
    found = model.predict_distribution(table[rows])
    lower, upper = found.interval(0.95)
    assert np.mean((lower <= truth[rows]) & (truth[rows] <= upper)) > 0.85
    widths = found.standard_deviation
    assert widths is not None
    assert widths.max() < 1.08 * widths.min()


def test_known_labels_calibrate_confidence() -> None:
    # All sources share the error of a seventh of the items, which agreement cannot show.
    rng = np.random.default_rng(9)
    truth = rng.integers(2, size=2000)
    seen = np.where(rng.random(2000) < 0.15, 1 - truth, truth)
    votes = np.where(rng.random((2000, 7)) < 0.85, seen[:, None], 1 - seen[:, None])
    known = np.arange(2000) < 100
    sure = fitted(cs.Classes(2), votes)
    told = fitted(cs.Classes(2), votes, gold=(truth, known))
    right = np.mean(told.predict(votes)[~known] == truth[~known])
    assert sure.confidence(votes).mean() > right + 0.08
    assert told.confidence(votes)[~known].mean() == pytest.approx(right, abs=0.06)
    assert any(finding.code == "calibrated" for finding in told.diagnostics_)


@each_space
def test_labels_do_not_depend_on_the_order_of_sources_or_items(name: str) -> None:
    votes, _ = draw(name, [0.2, 0.3, 0.5, 0.6, 0.7], 200, 11)
    order, rows = np.array([3, 0, 4, 1, 2]), np.random.default_rng(0).permutation(200)
    moved = cs.Votes.from_array(
        votes.labels[rows][:, order], sources=[f"s{index}" for index in order], items=np.asarray(votes.items)[rows]
    )
    (first, one), (second, two) = (
        (model.predict(table), model.confidence(table))
        for table in (votes, moved)
        for model in [fitted(SPACES[name], table)]
    )
    batch = SPACES[name].as_batch
    assert SPACES[name].distance(batch(first[rows]), batch(second)).max() < 1e-6
    assert one[rows] == pytest.approx(two, abs=1e-6)


#: Label types with an embedding (the paper's g), weights of five sources that are far apart, and the factor between
#: squared distances of coordinates and counted differences, where there is one.
EMBEDDED = {
    "classes": (cs.Classes(3), [0.5, 1.0, 1.6, 2.4, 3.5], 2.0),
    "path": (
        cs.FiniteMetric(np.abs(np.arange(5.0)[:, None] - np.arange(5.0))),
        [0.2, 0.5, 0.9, 1.5, 2.5],
        1.0,
    ),
    "rankings": (cs.Rankings(5), [0.1, 0.3, 0.6, 1.0, 1.7], 4.0),
    "rankings of any length": (cs.Rankings(None), [0.1, 0.3, 0.6, 1.0, 1.7], 4.0),
    "tags": (cs.Tags(4), [0.5, 1.0, 1.6, 2.4, 3.5], 4.0 * 4),
    "sequences": (cs.Sequences(3), [0.5, 1.0, 1.6, 2.4, 3.5], None),
    "trees": (cs.DependencyTrees(), [1.0, 2.0, 3.0, 4.0, 5.5], None),
    "vectors": (cs.Vectors(2), [0.3, 0.6, 1.2, 2.5, 5.0], 1.0),
    "hyperbolic": (cs.Hyperbolic(2), [0.3, 0.6, 1.2, 2.5, 5.0], None),
    "sphere": (cs.Sphere(2), [0.5, 1.0, 2.0, 4.0, 8.0], None),
    "rotations": (cs.SO3(), [0.5, 1.0, 2.0, 4.0, 8.0], None),
    "covariance matrices": (cs.SPD(2, metric="log-euclidean"), [0.3, 0.6, 1.2, 2.5, 5.0], 1.0),
}


@pytest.mark.parametrize("name", EMBEDDED)
def test_triplets_on_the_embedding_put_sources_of_every_type_into_the_right_order(name: str) -> None:
    # 1,500 items. Over 15 other draws no type had two neighbors in the wrong order.
    space, weights, factor = EMBEDDED[name]
    rng = np.random.default_rng(2)
    truth = space.random(1500, rng)
    votes = cs.simulate(space, truth, weights, rng)
    columns = [space.as_batch(votes.labels[:, source]) for source in range(5)]
    placed = np.stack([space.embed(column) for column in columns])
    if factor is not None:
        squared = ((placed[0] - placed[1]) ** 2).sum(axis=1)
        assert squared == pytest.approx(factor * space.cost(columns[0], columns[1]))
    model = fitted(space, votes, method="triplets")
    assert np.argsort(model.expected_cost_).tolist() == [4, 3, 2, 1, 0]

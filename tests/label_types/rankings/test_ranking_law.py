"""`LabelModel` on rankings: posterior against enumeration, recovery, partial, tied and ragged votes, documents."""

from itertools import permutations

import numpy as np
import pytest
from simulated import GivenWeights, codes, fitted
from tests.refusals import refused

import consilience as cs
from consilience.arrays import as_object_array
from consilience.exceptions import FileFormatError, PriorError
from consilience.label_types.rankings.law import sample_mallows
from consilience.tables import guess_space, label_table, read_trec, read_votes


def orders(r):
    return np.array(list(permutations(range(r))))


def weighted_cost(weights, votes, truth):
    i, j = np.triu_indices(len(truth), 1)
    seen = (votes[:, i] >= 0) & (votes[:, j] >= 0)
    against = ((votes[:, i] - votes[:, j]) * (truth[i] - truth[j]) < 0) & seen
    return float(weights @ against.sum(axis=1))


def simulated(space, n, weights, seed=0, coverage=1.0):
    rng = np.random.default_rng(seed)
    truth = space.random(n, rng)
    return cs.simulate(space, truth, weights, rng, coverage=coverage), truth


def test_pair_probabilities_equal_enumeration_with_partial_and_tied_votes():
    votes = np.array([[[0, 1, 2, 3], [1, 0, -1, 2], [0, 0, 1, 1]]])
    weights = np.array([0.5, 1.2, 0.8])
    table = cs.Votes.from_array(votes, observed=np.ones((1, 3), bool))
    model = fitted(cs.Rankings(4), table, method=GivenWeights(*weights))
    mass = np.array([np.exp(-weighted_cost(weights, votes[0], y)) for y in orders(4)])
    i, j = np.triu_indices(4, 1)
    expected = (mass / mass.sum()) @ (orders(4)[:, i] < orders(4)[:, j])
    assert np.allclose(model.posterior(table).details["pair_probability"][0], expected)


@pytest.mark.parametrize("decode", ["map", "bayes"])
def test_decoders_minimize_what_they_promise(decode):
    space = cs.Rankings(4)
    weights = np.array([0.3, 0.5, 0.4])
    votes, _ = simulated(space, 40, weights)
    belief = fitted(space, votes, method=GivenWeights(*weights), decode=decode).posterior(votes)
    i, j = np.triu_indices(4, 1)
    for row, label in enumerate(belief.labels):
        if decode == "map":
            costs = [weighted_cost(weights, votes.labels[row], y) for y in orders(4)]
            mine = weighted_cost(weights, votes.labels[row], label)
        else:
            chance = belief.details["pair_probability"][row]
            costs = [np.where(y[i] < y[j], 1 - chance, chance).sum() for y in orders(4)]
            mine = np.where(label[i] < label[j], 1 - chance, chance).sum()
        assert mine == pytest.approx(min(costs))
    assert belief.details["optimal"].all()


def test_the_plain_vote_is_unweighted_kemeny():
    space = cs.Rankings(5)
    votes, _ = simulated(space, 60, [0.3, 0.4, 0.5, 0.6])
    found = fitted(space, votes).predict_baseline(votes)
    assert np.array_equal(found, fitted(space, votes, method="majority").predict(votes))
    best = cs.kemeny(votes).cost
    labels = votes.labels.astype(np.int16)
    assert sum(space.distance(labels[:, a], found.astype(np.int16)) for a in range(4)) == pytest.approx(best)


def test_confidence_is_the_share_of_chance_level_error_that_is_removed():
    space = cs.Rankings(4)
    weights = np.array([0.6, 0.8, 1.0])
    votes, truth = simulated(space, 4000, weights)
    belief = fitted(space, votes, method=GivenWeights(*weights)).posterior(votes)
    # 4000 rankings: the standard error of the mean share of wrong pairs is about .004
    wrong = space.kendall_error(belief.labels, truth)
    assert belief.details["expected_error"].mean() == pytest.approx(wrong, abs=0.02)
    assert belief.confidence == pytest.approx(1 - 2 * belief.details["expected_error"])


def test_long_rankings_come_out_the_same_wherever_they_stand():
    space = cs.Rankings(15)
    votes, _ = simulated(space, 60, [0.05, 0.1, 0.15, 0.1])
    model = fitted(space, votes)
    whole = model.predict(votes)
    assert np.array_equal(model.predict(votes[30:]), whole[30:])
    assert np.array_equal(model.predict(votes[::-1])[::-1], whole)


def test_integer_programming_proves_what_the_search_leaves_open():
    rng = np.random.default_rng(3)
    labels = np.argsort(rng.random((20, 7, 18)), axis=2)  # without any signal, so majorities run in cycles
    votes = cs.Votes.from_array(labels, observed=np.ones((20, 7), bool))
    searched = fitted(cs.Rankings(18), votes, method="majority").posterior(votes).details
    solved = fitted(cs.Rankings(18, exact="milp"), votes, method="majority").posterior(votes).details
    assert not searched["optimal"].all()
    assert solved["optimal"].all()
    assert (solved["gap"] == 0).all()


@pytest.mark.parametrize("method", ["auto", "em", "triplets"])
def test_weights_are_recovered(method):
    space = cs.Rankings(5)
    weights = np.array([0.2, 0.4, 0.6, 0.8, 1.0, 0.5])
    votes, _ = simulated(space, 6000, weights)
    # standard errors are about .012; triplets take the product form and keep a small bias
    tolerance = 0.15 if method == "triplets" else 0.06
    assert np.abs(fitted(space, votes, method=method).weight_ - weights).max() < tolerance
    if method == "em":  # where isotropic weights are biased towards equal ones
        votes, _ = simulated(space, 6000, [1.0, 0.01, 0.01, 0.01, 0.3])
        assert fitted(space, votes, method="isotropic").weight_[1] > 0.3
        assert fitted(space, votes, method=method).weight_[1] < 0.1


def test_partial_rankings_and_top_lists_are_weighed():
    space = cs.Rankings(7)
    rng = np.random.default_rng(1)
    weights = np.array([0.3, 0.5, 0.7, 0.9, 1.1, 0.6])
    votes, truth = simulated(space, 3000, weights)
    seen = rng.random((6, 3000, 7)) < 0.6
    drawn = [sample_mallows(truth.astype(int), seen[a], w, rng.random((3000, 7))) for a, w in enumerate(weights)]
    labels = np.stack(drawn, axis=1)
    partial = cs.Votes.from_array(labels, observed=(labels >= 0).any(axis=2))
    lists = cs.Votes.from_array(np.minimum(votes.labels, 3), observed=votes.observed)
    # standard errors are .02 to .05; one source of six is off by more than three of them in 2% of all draws
    for table in (partial, lists):
        assert np.abs(fitted(space, table).weight_ - weights).max() < 0.2
    unseen = cs.Votes.from_array(np.where(votes.labels < 3, votes.labels, -1), observed=votes.observed)
    good, bad = (space.kendall_error(fitted(space, table).predict(table), truth) for table in (lists, unseen))
    assert good + 0.1 < bad


def test_adversary_is_named_and_used_when_weights_may_be_negative():
    weights = np.array([0.8, 0.7, 0.9, 0.6, 0.8, -0.8])
    space, plain = cs.Rankings(5, signed=True), cs.Rankings(5)
    votes, truth = simulated(space, 1500, weights)
    model, clipped = fitted(space, votes), fitted(plain, votes)
    assert model.weight_[5] == pytest.approx(-0.8, abs=0.15)
    assert "adversarial-source" in codes(clipped)
    assert clipped.weight_[5] < 0.1  # at chance, but for a hypothesis of little probability
    used, ignored = (one.predict(votes) for one in (model, clipped))
    assert space.kendall_error(used, truth) < 1.1 * plain.kendall_error(ignored, truth)


def test_known_rankings_weigh_two_sources():
    space = cs.Rankings(5)
    votes, truth = simulated(space, 300, [2.0, 0.1])
    gold = (truth, np.arange(300) < 40)
    for method in ("auto", "labelled"):
        model = fitted(space, votes, gold=gold, method=method)
        assert model.weight_[0] > 1.0 > 0.6 > model.weight_[1]
    with pytest.raises(PriorError, match="prior"):
        cs.LabelModel(space, prior="uniform").fit(votes)


@pytest.fixture(scope="module")
def ragged():
    space = cs.Rankings(None)
    rng = np.random.default_rng(0)
    truth = space.as_labels(space.random(400, rng))
    return space, cs.simulate(space, truth, [0.5, 1.0, 1.5, 0.8], rng), truth


def test_rows_of_different_length(ragged):
    space, votes, truth = ragged
    model = fitted(space, votes)
    # standard errors are .05 to .12
    assert np.abs(model.weight_ - [0.5, 1.0, 1.5, 0.8]).max() < 0.4
    predicted = model.predict(votes)
    assert [len(label) for label in predicted] == [len(label) for label in truth]
    pieces = model.predict(cs.partitions.InMemoryPartitions.of(votes, rows=3))
    assert all(np.array_equal(one, two) for one, two in zip(pieces, predicted, strict=True))
    gold = [label if len(label) < 5 else None for label in truth]
    assert np.isfinite(fitted(space, votes, gold=gold).weight_).all()
    silent = cs.Votes.from_array(np.full((2, 4), None, dtype=object), observed=np.zeros((2, 4), bool))
    assert (model.predict(silent).tolist(), model.confidence(silent).tolist()) == ([None, None], [0.0, 0.0])


def test_long_lists_of_different_length_are_not_called_adversarial():
    rng = np.random.default_rng(1)
    sizes = rng.integers(8, 31, 120)
    truth = [rng.permutation(size) for size in sizes]
    exists = np.arange(30) < sizes[:, None]
    padded = np.full((120, 30), -1)
    padded[exists] = np.concatenate(truth)
    votes = np.stack([sample_mallows(padded, exists, w, rng.random((120, 30))) for w in (0.05, 0.1, 0.15, 0.1)], axis=1)
    table = np.array([[row[:size] for row in item] for item, size in zip(votes, sizes, strict=True)] + [None], object)
    space = cs.Rankings(None)
    model = fitted(space, cs.Votes.from_array(table[:-1].tolist()))
    assert "adversarial-source" not in codes(model)
    assert np.abs(model.weight_ - [0.05, 0.1, 0.15, 0.1]).max() < 0.06
    # what a source costs is counted in pairs of its own lists
    chance = (sizes * (sizes - 1) / 4).mean()
    assert np.all((model.expected_cost_ > 0.1 * chance) & (model.expected_cost_ < chance))


def test_items_nobody_saw_stay_unseen_and_rows_without_votes_are_missing():
    space = cs.Rankings(4)
    labels = np.array([[[0, 1, 2, -1], [1, 0, 2, -1], [0, 1, 2, -1]]] * 30 + [[[0, 1, 2, 3]] * 3])
    observed = np.arange(31)[:, None].repeat(3, axis=1) < 30
    items = np.array([f"query {number}" for number in range(31)], dtype=object)
    table = cs.Votes.from_array(labels, observed=observed, items=items)
    model = fitted(space, table)
    predicted = model.predict(table)
    assert (predicted[0].tolist(), predicted[30].tolist()) == ([0, 1, 2, -1], [-1, -1, -1, -1])
    assert model.confidence(table)[30] == 0.0
    note = next(item for item in model.diagnostics_ if item.code == "items-without-votes")
    assert "query 30" in note.message
    space = cs.Rankings(["milk", "juice", "tea"])  # names come back as names, positions as positions
    names = [[["milk", "tea", "juice"], ["milk", "juice", "tea"], ["milk", "tea", "juice"]]] * 12
    assert fitted(space, names).predict(names)[0] == ["milk", "tea", "juice"]
    positions = space.as_batch([label for row in names for label in row]).reshape(12, 3, 3)
    assert fitted(space, positions).predict(positions)[0].tolist() == [0, 2, 1]


def searched(queries=40, documents=30, kept=10, seed=0):
    """Return the lists of four engines and the true orders, with documents of their own for every query."""
    rng = np.random.default_rng(seed)
    lists, truth = [], []
    for query in range(queries):
        relevance = rng.normal(size=documents)
        names = np.array([f"d{query}_{number}" for number in range(documents)])
        truth.append(names[np.argsort(-relevance)].tolist())
        noisy = [relevance + rng.normal(size=documents) * noise for noise in (0.3, 0.5, 0.8, 1.2)]
        lists += [names[np.argsort(-scores)][:kept].tolist() for scores in noisy]
    engines = ["bm25", "splade", "dense", "colbert"]
    votes = cs.Votes.from_array(as_object_array(lists).reshape(queries, 4), sources=engines)
    return votes, as_object_array(truth)


def test_orders_of_names_come_back_as_orders_of_names():
    votes, truth = searched()
    space = cs.Rankings(None)
    model = cs.LabelModel(space).fit(votes)
    labels = model.predict(votes)
    listed = {name for order in votes.labels[3] for name in order}
    assert set(labels[3]) == listed
    assert " > ".join(labels[3]) == label_table(model, votes)["label"][3].as_py()
    assert model.explain(votes, 3).label == labels[3]
    # 300 pairs of documents per query on average; by chance half are wrong.
    assert space.kendall_error(labels, truth) < 0.45
    assert model.score(votes, truth) == pytest.approx(model.score(votes[::-1], truth[::-1]))
    told = cs.LabelModel(space).fit(votes, gold=truth)
    assert told.expected_cost_[0] < told.expected_cost_[3]  # noise .3 and 1.2


def test_lists_that_look_like_the_top_of_longer_ones_put_the_rest_below(tmp_path):
    votes, truth = searched()
    rows = [",".join([f"q{row}", *map(" > ".join, orders)]) for row, orders in enumerate(votes.labels)]
    (tmp_path / "runs.csv").write_text("\n".join(["query,bm25,splade,dense,colbert", *rows]))
    space = guess_space(read_votes(tmp_path / "runs.csv")).space
    assert space == cs.Rankings(None)
    error = {}
    for unlisted in (None, "below", "unseen"):
        read = read_votes(tmp_path / "runs.csv", space, unlisted=unlisted)
        assert ("top 10 of longer ones" in str(read.receipt)) == (unlisted is None)
        error[unlisted] = space.kendall_error(cs.LabelModel(space).fit(read).predict(read), truth)
    assert error[None] == error["below"] < error["unseen"]
    with refused(FileFormatError, "'above'", "'below' or 'unseen'"):
        read_votes(tmp_path / "runs.csv", space, unlisted="above")
    (tmp_path / "few.csv").write_text("id,ann,bob\nx,a > b,b > a\ny,b > c,c > a\n")
    assert guess_space(read_votes(tmp_path / "few.csv")).space == cs.Rankings(["a", "b", "c"])


def test_rows_of_more_than_128_names_are_ranked():
    names = [f"d{number:03d}" for number in range(150)]
    rng = np.random.default_rng(1)
    lists = [[names[at] for at in np.argsort(np.arange(150) + rng.normal(size=150) * 5)] for _ in range(12)]
    votes = cs.Votes.from_array(as_object_array(lists).reshape(3, 4))
    space = cs.Rankings(None)
    labels = cs.LabelModel(space, method="majority").fit(votes).predict(votes)
    assert space.kendall_error(labels, as_object_array([names] * 3)) < 0.05


def test_documents_of_equal_score_are_ordered_by_name_wherever_their_lines_are(tmp_path):
    lines = [f"q1 Q0 {document} 1 {score} a" for document, score in (("d2", 1), ("d3", 1), ("d1", 2))]
    for order in ((0, 1, 2), (2, 1, 0), (1, 2, 0)):
        (tmp_path / "all.run").write_text("\n".join(lines[line] for line in order))
        assert read_trec(tmp_path / "all.run").labels.tolist() == [[["d1", "d3", "d2"]]]


def test_run_files_are_read_by_score(tmp_path):
    lines = "q1 Q0 d1 1 3.5 a\nq1 Q0 d2 2 4.5 a\n\nq2 Q0 d9 1 1 a\nq1 Q0 d3 1 2 b\n"
    (tmp_path / "all.run").write_text(lines)
    votes = read_trec(tmp_path / "all.run")
    assert (votes.sources, votes.items.tolist()) == (("a", "b"), ["q1", "q2"])
    assert votes.labels[0].tolist() == [["d2", "d1", "d3"], ["d3", ("d2", "d1")]]
    assert votes.observed.tolist() == [[True, True], [True, False]]
    assert read_trec(tmp_path, unlisted="unseen").labels[0, 0] == ["d2", "d1", "d3"]  # one run per file
    for bad, words in (
        ("q1 Q0 d1 1 high a", ["line 1", "'q1 Q0 d1 1 high a'"]),
        ("q1 Q0 d1 1 nan a", ["line 1", "'q1 Q0 d1 1 nan a'"]),
        ("q1 d1", ["line 1"]),
        ("", ["no rank"]),
    ):
        (tmp_path / "bad.txt").write_text(bad + "\n")
        with refused(FileFormatError, *words):
            read_trec(tmp_path / "bad.txt")

"""An audit by known labels: intervals that hold, exact where all is known, honest about what was learned from."""

import numpy as np
import pytest
from tests.cli.running import refused_by_program, result_of, run
from tests.refusals import refused
from tests.simulated import simulated

import consilience as cs
from consilience.exceptions import InvalidVotesError, UnsupportedError
from report_examples import EXAMPLES, fitted

ANYTHING = "ignore::consilience.exceptions.ConsilienceWarning"


def told(truth, rows):
    """Return known labels of some items only."""
    gold = np.full(len(truth), None, dtype=object)
    gold[rows] = np.asarray(truth, dtype=object)[rows]
    return gold


def with_shared_errors(n, seed):
    """Return votes of two classes in which half of the sources are wrong together; labels are 97% right."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, n)
    wrong = rng.random((n, 6)) < 0.08
    wrong[:, :3] |= (rng.random(n) < 0.03)[:, None]
    return cs.Votes.from_array(truth[:, None] ^ wrong), truth


@pytest.mark.filterwarnings(ANYTHING)
@pytest.mark.parametrize("known", [30, 300])
@pytest.mark.parametrize("kind", ["three classes", "path", "shared"])
def test_intervals_hold_whatever_the_model_believes(kind, known):
    # 1,000 draws: the standard error of 95% is 0.7 points, so each of 12 limits fails by chance less than once in 10^4.
    if kind == "shared":
        space = cs.Classes(2)
        votes, truth = with_shared_errors(2000, 5)
    else:
        data = simulated(kind, n=2000, seed=5)
        space, votes, truth = data.space, data.votes, data.truth
    model = cs.LabelModel(space).fit(votes)
    found = cs.testing.audit_coverage(model, votes, truth, known, draws=1000)
    for share in (found.covered, found.covered_suggested):
        assert 0.92 < share < 0.99
    assert found.width < 1.1 * found.width_plain
    assert found.width_suggested < 1.1 * found.width_plain


@pytest.mark.filterwarnings(ANYTHING)
@pytest.mark.parametrize("kind", ["one class is often wrong", "some items are hard"])
def test_strata_shorten_intervals_where_losses_differ_in_a_way_that_the_model_does_not_expect(kind):
    # 1,000 draws: the standard error of 95% is 0.7 points. The variance within strata is at most 0.8 of the whole.
    rng = np.random.default_rng(7)
    if kind == "some items are hard":
        spread = rng.choice([1.0, 6.0], (2000, 1), p=[0.7, 0.3])
        space, truth = cs.Scores(), rng.normal(50, 10, 2000)
        votes = cs.Votes.from_array(truth[:, None] + spread * rng.normal(size=(2000, 4)))
    else:
        space, said = cs.Classes(2), rng.integers(0, 2, 2000)
        votes = cs.Votes.from_array(said[:, None] ^ (rng.random((2000, 5)) < 0.1))
        truth = np.where(rng.random(2000) < 0.5 * said, 0, said)  # half of what looks like class 1 is not
    model = cs.LabelModel(space).fit(votes)
    found = cs.testing.audit_coverage(model, votes, truth, 100, draws=1000)
    assert found.width < 0.93 * found.width_plain
    assert found.width_suggested < 0.93 * found.width_plain
    for share in (found.covered, found.covered_suggested):
        assert 0.92 < share < 0.98


@pytest.mark.filterwarnings(ANYTHING)
@pytest.mark.parametrize("name", EXAMPLES)
def test_with_every_label_known_an_audit_is_exact_for_every_label_type(name):
    example = EXAMPLES[name]()
    model, space = fitted(example), example.space
    known = cs.tables.encoding.read_gold(example.gold, space, len(example.votes)) if example.gold is not None else None
    if known is None:
        gold, rows = model.predict_baseline(example.votes), np.flatnonzero(example.votes.observed.any(axis=1))
    else:
        gold, rows = example.gold, np.flatnonzero(known.observed[:, 0] & example.votes.observed.any(axis=1))
    gold = cs.tables.encoding.read_gold(gold, space, len(example.votes))
    votes = example.votes[rows]
    labels = space.as_batch(model.predict(votes))
    gold = (gold.labels[rows, 0], np.ones(len(rows), dtype=bool))
    found = model.audit(votes, gold)
    loss = space.distance(labels, gold[0]).mean()
    exact = 1.0 - loss if space.right_or_wrong else loss
    assert found.labels.value == pytest.approx(exact, abs=1e-9)
    assert found.labels.low == pytest.approx(found.labels.high, abs=1e-9)
    assert found.labels_needed(0.01) == 0
    assert len(list(found.rows())) >= 3 + votes.observed.any(axis=0).sum()
    assert str(found).startswith("about")


@pytest.mark.filterwarnings(ANYTHING)
def test_a_mean_distance_is_at_most_that_of_the_two_labels_farthest_apart():
    data = simulated("path", n=80)
    model = cs.LabelModel(data.space).fit(data.votes)
    codes = np.arange(data.space.n_labels)
    farthest = max(data.space.distance(np.full_like(codes, code), codes).max() for code in codes)
    for known in (3, 8, 30):
        audit = model.audit(data.votes, told(data.truth, range(known)))
        assert all(one.high <= farthest for _, measure, one in audit.rows() if measure == "mean distance")


def test_items_drawn_where_the_model_is_unsure_are_weighed_back():
    # 60 samples of 60: the standard error of the mean is below 0.007, so 0.028 is exceeded by chance once in 10^4.
    data = simulated("two classes", n=600)
    model = cs.LabelModel(data.space).fit(data.votes)
    truth = float((model.predict(data.votes) == data.truth).mean())
    values = []
    for seed in range(60):
        model.random_state = seed
        drawn = model.suggest(data.votes, 60, purpose="audit")
        assert len(set(drawn.items.tolist())) == 60
        rows = drawn.items.astype(int)
        values.append(model.audit(data.votes, told(data.truth, rows), drawn.weights(data.votes)).labels.value)
    assert np.mean(values) == pytest.approx(truth, abs=0.028)


def test_suggested_items_for_an_audit_are_rather_the_doubtful_ones_and_both_purposes_take_turns():
    data = simulated("three classes", n=600)
    model = cs.LabelModel(data.space, random_state=1).fit(data.votes)
    everyone = model.suggest(data.votes, 590, "audit")
    assert everyone.probability.max() <= 1.0
    drawn = model.suggest(data.votes, 60, "audit")
    rows = drawn.items.astype(int)
    doubt = 1.0 - model.confidence(data.votes)[rows]
    assert np.corrcoef(doubt, drawn.probability)[0, 1] > 0.5
    assert 0.1 / 1.05 <= drawn.probability.min() < drawn.probability.max()
    mixed = model.suggest(data.votes, 21)
    assert np.isnan(mixed.probability).tolist() == [False, True] * 10 + [False]
    assert len(set(mixed.items.tolist())) == 21
    assert np.isnan(mixed.weights(data.votes)).sum() == len(data.votes) - 11
    with refused(UnsupportedError, "purpose='teach' is unknown", "both, audit, learn"):
        model.suggest(data.votes, 5, "teach")


@pytest.mark.filterwarnings(ANYTHING)
def test_known_labels_that_were_learned_from_are_held_out_in_turn(tmp_path):
    data = simulated("three classes", n=300)
    gold = told(data.truth, np.arange(60))
    model = cs.LabelModel(data.space, method="labelled").fit(data.votes, gold)
    model.save(tmp_path / "model.npz")
    for one in (model, cs.LabelModel.load(tmp_path / "model.npz")):
        assert one.audit(data.votes, gold).cross_fitted == 60
        more = told(data.truth, np.arange(80))
        assert one.audit(data.votes, more).cross_fitted == 60
    # One source that is right by chance on known items only: a fit on them trusts it, items held out do not.
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, (300, 40))
    best = (labels[:60] == data.truth[:60, None]).sum(axis=0).argmax()
    votes = cs.Votes.from_array(labels[:, [best, (best + 1) % 40, (best + 2) % 40]])
    model = cs.LabelModel(data.space, method="labelled").fit(votes, gold)
    naive = float((model.predict(votes)[:60] == data.truth[:60]).mean())
    assert model.audit(votes, gold).labels.value < naive


@pytest.mark.filterwarnings(ANYTHING)
def test_confidence_outside_of_the_interval_is_a_finding_with_a_next_step():
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 2, 800)
    hard = rng.random(800) < 0.35  # here every source says the same, right or wrong
    shared = rng.random(800) < 0.5
    votes = np.where(hard[:, None] & shared[:, None], 1 - truth[:, None], truth[:, None] ^ (rng.random((800, 5)) < 0.1))
    model = cs.LabelModel(cs.Classes(2)).fit(votes)
    found = model.audit(votes, told(truth, rng.permutation(800)[:150]))
    [finding] = found.diagnostics
    assert (finding.code, finding.severity) == ("audit-disagrees", "warning")
    assert "Fit again with these known labels" in finding.message
    assert found.confidence.high < found.stated
    good = simulated("two classes", n=800)
    calm = cs.LabelModel(good.space).fit(good.votes).audit(good.votes, told(good.truth, np.arange(100)))
    assert calm.diagnostics == ()


def test_slices_classes_shares_difference_and_labels_needed_add_up():
    data = simulated("three classes", n=900)
    model = cs.LabelModel(data.space).fit(data.votes)
    half = ["a", "b"] * 450
    found = model.audit(data.votes, told(data.truth, np.arange(200)), by=half)
    assert set(found.slices) == {"a", "b"}
    assert sum(one.items for one in found.slices.values()) == found.labels.items
    assert sum(one.value for one in found.shares.values()) == pytest.approx(1.0, abs=0.03)
    assert found.difference.value == pytest.approx(found.labels.value - found.plain_vote.value, abs=0.06)
    assert found.difference.margin < found.labels.margin  # only items where the two disagree can differ
    more = found.labels_needed(found.labels.margin / 2)
    assert 250 < more < 600  # four times as many of infinitely many, fewer of 900
    scores = cs.Scores()
    truth = np.random.default_rng(0).normal(50, 10, 400)
    votes = truth[:, None] + np.random.default_rng(1).normal(0, [2.0, 5.0, 9.0], (400, 3))
    mean = cs.LabelModel(scores).fit(votes).audit(votes, told(truth, np.arange(80))).mean_score
    assert mean.low < truth.mean() < mean.high
    assert mean.margin < 0.6  # without the model it would be 1.96 * 10 / sqrt(80), above 2


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        ({"gold": [None] * 400}, ("gold contains none", "Label a few items by hand")),
        ({"weights": [1.0] * 3}, ("shape (3,) for 400 items",)),
        ({"weights": [-1.0] * 400}, ("weights[0] is -1.0", "one over a probability")),
        ({"weights": ["x"] * 400}, ("are not numbers",)),
        ({"weights": [np.nan] * 400}, ("No item has a known label, a vote and a weight", "model.suggest")),
        ({"by": [1, 2]}, ("by has shape (2,) for 400 items",)),
    ],
)
def test_what_cannot_be_audited_is_refused(arguments, parts):
    data = simulated("two classes")
    model = cs.LabelModel(data.space).fit(data.votes)
    with refused(InvalidVotesError, *parts):
        model.audit(data.votes, **{"gold": data.truth, **arguments})


@pytest.mark.filterwarnings(ANYTHING)
@pytest.mark.parametrize("shift", [0.0, 5.0])
def test_a_few_equal_losses_are_not_taken_for_all(shift):
    truth = np.random.default_rng(0).normal(50, 10, 100)
    votes = truth[:, None] + shift + np.array([0.0, 0.0, 0.0, 0.3])
    model = cs.LabelModel(cs.Scores(), method="majority").fit(votes)
    loss = np.abs(model.predict(votes) - truth)
    assert loss.std() < 1e-9
    found = model.audit(votes, told(truth, np.arange(6))).labels
    assert found.low < loss.mean() - 0.05 < loss.mean() + 0.05 < found.high


def test_a_precision_that_is_none_is_refused():
    data = simulated("two classes")
    found = cs.LabelModel(data.space).fit(data.votes).audit(data.votes, told(data.truth, np.arange(30)))
    with refused(UnsupportedError, "margin=0 is not a width"):
        found.labels_needed(0)


@pytest.mark.filterwarnings(ANYTHING)
def test_the_command_reads_probabilities_and_slices_and_refuses_what_is_neither(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run("demo", "--tables", "-o", ".").exit_code == 0
    assert run("label", "votes.csv", "-o", "labels.csv", "--save", "model.npz").exit_code == 0
    gold = (tmp_path / "gold.csv").read_text().splitlines()
    command = ["audit", "model.npz", "votes.csv", "--gold"]
    plain = result_of(*command, "gold.csv", "--by", "eve")["rows"]
    assert {"items of cat", "items of dog", "items of owl"} < {row["about"] for row in plain}
    drawn = [f"{line},{0.2 if row % 2 else 0.1}" for row, line in enumerate(gold[1:-3])]
    (tmp_path / "drawn.csv").write_text(
        "\n".join(["item,label,probability", *drawn, *(f"{one}," for one in gold[-3:])])
    )
    weighed = result_of(*command, "drawn.csv")["rows"]
    assert weighed[0]["known"] == plain[0]["known"] - 3
    assert weighed[0]["value"] != plain[0]["value"]
    (tmp_path / "bad.csv").write_text("item,label,probability\nt0,dog,2\n")
    words = ("item 't0'", "2 is not a probability")
    refused_by_program(tmp_path, *command, "bad.csv", words=words)
    refused_by_program(tmp_path, *command, "gold.csv", "--by", "evee", words=("no column 'evee'", "'eve'"))

"""Rows with names of their own: orders of names in and out, top-k lists, run files, long lists."""

import numpy as np
import pytest
from tests.refusals import refused

import consilience as cs
from consilience.arrays import as_object_array
from consilience.exceptions import FileFormatError
from consilience.tables import guess_space, label_table, read_trec, read_votes


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

"""Labels do not depend on the order of rows or columns, on chunks, threads, a fork, a pickle or the hash seed."""

import copy
import multiprocessing
import os
import pickle
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

import consilience as cs
from consilience.partitions import InMemoryPartitions
from fuzzing.targets import SPACES, sample

pytestmark = pytest.mark.filterwarnings("ignore::consilience.exceptions.ConsilienceWarning")
KINDS = list(SPACES)


def labels_of(kind: str, votes: cs.Votes, given: object = None) -> tuple[dict[object, object], dict[object, float]]:
    """Return label and confidence of each item."""
    model = cs.LabelModel(SPACES[kind]).fit(votes if given is None else given)
    table = cs.tables.label_table(model, votes)
    items = table.column("item").to_pylist()
    return (
        dict(zip(items, table.column("label").to_pylist(), strict=True)),
        dict(zip(items, table.column("confidence").to_pylist(), strict=True)),
    )


def close(left: object, right: object) -> bool:
    """Whether two labels are the same; numbers up to rounding errors."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(close(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(close, left, right))
    if isinstance(left, float) and isinstance(right, float):
        return bool(np.isclose(left, right, rtol=1e-9, atol=1e-9))
    return left == right


def assert_same(kind: str, found: tuple, expected: tuple) -> None:
    for item, label in expected[0].items():
        assert close(found[0][item], label), (kind, item, found[0][item], label)
        assert found[1][item] == pytest.approx(expected[1][item], abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_labels_do_not_depend_on_the_order_of_rows_and_columns_or_on_chunks_and_threads(kind):
    votes = replace(sample(kind), sources=("ann", "bob", "cleo", "dan"), names_given=True)
    expected = labels_of(kind, votes)
    rng = np.random.default_rng(1)
    for _ in range(3):
        shuffled = votes[rng.permutation(len(votes))].select([votes.sources[at] for at in rng.permutation(4)])
        assert_same(kind, labels_of(kind, shuffled), expected)
    for rows, workers in ((5, 1), (3, 2)):
        assert_same(kind, labels_of(kind, votes, InMemoryPartitions.of(votes, rows=rows, workers=workers)), expected)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("method", "n_sources"), [("majority", 2), ("majority", 4), ("auto", 2)])
def test_ties_are_broken_alike_whatever_the_order_of_rows_and_columns(kind, method, n_sources):
    """Two equal sources that disagree tie on every item."""
    votes = replace(sample(kind), sources=("ann", "bob", "cleo", "dan"), names_given=True)
    names = ["ann", "cleo", "bob", "dan"][:n_sources]

    def labels(table: cs.Votes) -> dict[object, object]:
        found = cs.tables.label_table(cs.LabelModel(SPACES[kind], method=method).fit(table), table)
        return dict(zip(found.column("item").to_pylist(), found.column("label").to_pylist(), strict=True))

    expected = labels(votes.select(names))
    for other in (votes.select(names[::-1]), votes.select(names)[np.arange(len(votes))[::-1]]):
        found = labels(other)
        assert all(close(found[item], label) for item, label in expected.items())


@pytest.mark.parametrize(
    ("space", "row", "label"),
    [
        (cs.Classes(["ham", "spam"]), ["spam", "ham"], "ham"),
        (cs.FiniteMetric(np.array([[0.0, 1.0], [1.0, 0.0]]), names=["b", "a"]), ["a", "b"], "b"),
        (cs.Metric(lambda left, right: float(left != right)), [7, 3], 3),
        (cs.Metric(lambda left, right: float(left != right)), ["x", "c"], "c"),
        (cs.Texts(), ["the dog", "a dog"], "a dog"),
        (cs.DependencyTrees(), [[0, 1, 1], [0, 1, 2]], [0, 1, 2]),
    ],
    ids=["classes", "finite", "metric of numbers", "metric", "texts", "trees"],
)
def test_ties_are_broken_by_the_rule_in_the_docs(space, row, label):
    for said in (row, row[::-1]):
        votes = np.empty((6, 2), dtype=object)
        for item, source in np.ndindex(votes.shape):
            votes[item, source] = said[source]
        found = cs.LabelModel(space, method="majority").fit(votes).predict(votes)
        assert [one.tolist() if isinstance(one, np.ndarray) else one for one in found] == [label] * 6


SEEDED = """
import warnings; warnings.simplefilter("ignore")
import consilience as cs
from fuzzing.targets import SPACES, sample
for kind in SPACES:
    votes = sample(kind)
    print(cs.tables.label_table(cs.LabelModel(SPACES[kind]).fit(votes), votes).to_pylist())
"""


def test_labels_do_not_depend_on_the_hash_seed(capsys):
    other = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONHASHSEED": "7"}
    command = [sys.executable, "-c", SEEDED]
    there = subprocess.run(command, env=other, capture_output=True, text=True, check=True).stdout
    exec(SEEDED, {})  # here the seed is another one
    assert capsys.readouterr().out == there


def answers(model: cs.LabelModel, kind: str) -> str:
    table = cs.tables.label_table(model, sample(kind))
    return repr(table.to_pylist())


@pytest.mark.parametrize("kind", KINDS)
def test_labels_are_the_same_from_eight_threads_pickled_and_copied(kind):
    model = cs.LabelModel(SPACES[kind]).fit(sample(kind))
    expected = answers(model, kind)
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(lambda _: answers(model, kind), range(16))) == {expected}
    for other in (pickle.loads(pickle.dumps(model)), copy.copy(model), copy.deepcopy(model)):
        assert answers(other, kind) == expected


def test_two_fits_in_two_threads_learn_what_they_learn_alone():
    def weights(kind: str) -> list[float]:
        return cs.LabelModel(SPACES[kind]).fit(sample(kind)).weight_.tolist()

    alone = [weights(kind) for kind in KINDS]
    state = np.random.get_state()[1].copy()  # noqa: NPY002  that it is left alone is the point
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(weights, KINDS)) == alone
    assert np.array_equal(np.random.get_state()[1], state)  # noqa: NPY002


def test_writing_asks_nothing_of_the_whole_process(tmp_path, monkeypatch):
    """Setting the permissions of new files, even for a moment, changes them for the files of all other threads."""
    monkeypatch.setattr(os, "umask", None)
    monkeypatch.setattr(os, "chdir", None)
    model = cs.LabelModel(SPACES["classes"]).fit(sample("classes"))

    def write(number: int) -> bytes:
        cs.write_labels(tmp_path / f"{number}.csv", model, sample("classes"))
        model.save(tmp_path / "model")
        return (tmp_path / f"{number}.csv").read_bytes()

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(write, range(16)))) == 1
    assert sorted(path.name for path in tmp_path.glob(".*")) == []


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
@pytest.mark.parametrize("kind", KINDS)
def test_labels_are_the_same_after_a_fork(kind):
    model = cs.LabelModel(SPACES[kind]).fit(sample(kind))
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of forks beside threads
        process = context.Process(target=lambda: there.send(answers(model, kind)))
        process.start()
    assert here.poll(60)
    assert here.recv() == answers(model, kind)
    process.join(60)

"""Models in threads, after a fork, pickled and copied: the same labels, and nothing in global state."""

import copy
import multiprocessing
import os
import pickle
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import consilience as cs
from fuzzing.targets import SPACES, sample

pytestmark = pytest.mark.filterwarnings("ignore::consilience.exceptions.ConsilienceWarning")
KINDS = list(SPACES)


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

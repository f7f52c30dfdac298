"""What once failed under `make fuzz`, and a few inputs more: a good result, or an error of the package."""

import random
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import consilience as cs
from consilience.exceptions import ConsilienceError
from fuzzing import run, targets

SAVED = sorted(path for path in run.CORPUS.rglob("*") if path.is_file())
#: Changed inputs of each kind in every run of the tests; `make fuzz` has new ones without end.
INPUTS = 25


@pytest.mark.parametrize("path", SAVED, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_input_that_once_failed_is_answered(path):
    assert run.signature(path.parent.name, path.read_bytes()) is None


@pytest.mark.parametrize("name", targets.TARGETS)
def test_changed_inputs_are_answered(name):
    target, rng = targets.TARGETS[name], random.Random(zlib.crc32(name.encode()))
    seeds = target.seeds()
    for _ in range(INPUTS):
        data = target.change(rng.choice(seeds), rng)
        assert run.signature(name, data) is None, data


NUMBERS = st.floats(allow_nan=False)


def lists_of(size, values):
    return st.lists(values, min_size=size, max_size=size)


#: Labels of every type, some of them beyond what the type allows.
LABELS = {
    "classes": st.sampled_from(["ham", "spam", "eggs"]),
    "finite": st.integers(-1, 4),
    "scores": st.floats(allow_nan=True, width=64),
    "vectors": lists_of(2, NUMBERS),
    "rankings": st.permutations(range(3)),
    "tags": st.sets(st.sampled_from("ab")).map(frozenset),
    "sequences": st.lists(st.sampled_from(["O", "B-X", "I-X"]), max_size=4),
    "boxes": st.lists(st.tuples(*[st.floats(-9, 99)] * 4, st.sampled_from(["car", "dog"])), max_size=3),
    "spans": st.lists(st.tuples(st.integers(0, 9), st.integers(10, 20)), max_size=3),
    "trees": st.lists(st.integers(0, 3), min_size=1, max_size=3),
    "texts": st.text(max_size=12),
    "preferences": st.permutations("abc") | st.permutations("ab"),
    "hyperbolic": lists_of(2, st.floats(-9, 9)).map(lambda at: [float(np.hypot(1.0, np.hypot(*at))), *at]),
    "sphere": lists_of(3, st.floats(-1, 1)).map(lambda at: (np.array(at) / max(np.linalg.norm(at), 1e-9)).tolist()),
    "rotations": lists_of(4, st.floats(-1, 1)).map(lambda at: (np.array(at) / max(np.linalg.norm(at), 1e-9)).tolist()),
    "spd": lists_of(3, st.floats(-9, 9)).map(lambda at: [[at[0] ** 2 + 1.0, at[1]], [at[1], at[2] ** 2 + 1.0]]),
    "records": st.fixed_dictionaries({"stars": st.none() | NUMBERS, "topic": st.sampled_from("xy")}),
    "metric": NUMBERS,
}


def test_every_label_type_is_drawn():
    assert LABELS.keys() == targets.SPACES.keys()


@pytest.mark.filterwarnings("ignore::consilience.exceptions.ConsilienceWarning")
@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
@pytest.mark.parametrize("kind", LABELS)
@settings(max_examples=20)
@given(st.data())
def test_any_table_of_votes_is_labelled_or_refused(kind, data):
    sources = data.draw(st.integers(1, 4))
    rows = st.lists(st.none() | LABELS[kind], min_size=sources, max_size=sources)
    table = data.draw(st.lists(rows, min_size=1, max_size=6))
    try:
        votes = cs.Votes.from_matrix(table, sources=[f"s{column}" for column in range(sources)])
        targets.check_labels(targets.SPACES[kind], votes)
    except ConsilienceError:
        pass


def test_fuzzer_saves_what_fails_as_small_as_it_gets(tmp_path, monkeypatch, capsys):
    def judge(data: bytes) -> None:
        if b"x" in data:
            raise KeyError("x")

    monkeypatch.setitem(targets.TARGETS, "csv", targets.Target(lambda: [b"axb"], lambda data, rng: data * 3, judge, 1))
    arguments = ["run", "--minutes", "1", "--inputs", "3", "--target", "csv", "--corpus", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", arguments)
    assert run.main() == 1
    (saved,) = (path for path in Path(tmp_path).rglob("*") if path.is_file())
    assert saved.read_bytes() == b"x"
    assert "FAILED csv: KeyError" in capsys.readouterr().out

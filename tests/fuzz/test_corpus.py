"""What once failed under `make fuzz`, and a few inputs more: a good result, or an error of the package."""

import random
import sys
import zlib
from pathlib import Path

import pytest
from hypothesis import given
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


LABELS = {
    "classes": st.sampled_from(["ham", "spam", "eggs"]),
    "scores": st.floats(allow_nan=True, width=64),
    "vectors": st.lists(st.floats(allow_nan=False), min_size=2, max_size=2),
    "rankings": st.permutations(range(3)),
    "tags": st.sets(st.sampled_from("ab")).map(frozenset),
    "texts": st.text(max_size=12),
    "spans": st.lists(st.tuples(st.integers(0, 9), st.integers(10, 20)), max_size=3),
}


@pytest.mark.filterwarnings("ignore::consilience.exceptions.ConsilienceWarning")
@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
@given(st.data())
def test_any_table_of_votes_is_labelled_or_refused(data):
    kind = data.draw(st.sampled_from(sorted(LABELS)))
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

    monkeypatch.setitem(targets.TARGETS, "csv", targets.Target(lambda: [b"axb"], lambda data, rng: data * 3, judge))
    arguments = ["run", "--minutes", "1", "--inputs", "3", "--target", "csv", "--corpus", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", arguments)
    assert run.main() == 1
    (saved,) = (path for path in Path(tmp_path).rglob("*") if path.is_file())
    assert saved.read_bytes() == b"x"
    assert "FAILED csv: KeyError" in capsys.readouterr().out

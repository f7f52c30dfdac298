"""What makes a function a labeling function: name, resources, rows; and the benchmark of applying them."""

from __future__ import annotations

import importlib
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pandas as pd

import consilience as cs
from consilience import labeling

ROOT = Path(__file__).resolve().parents[2]


@cs.labeling_function
def says_free(row):
    return "spam" if "free" in row.text else None


def test_the_decorator_works_with_and_without_parentheses():
    @cs.labeling_function
    def first(row):
        return row

    @cs.labeling_function()
    def second(row):
        return row

    @cs.labeling_function(name="third", resources={"words": {"a"}})
    def other(row, words):
        return row in words

    shout = cs.labeling_function(resources={"shout": str.upper})(lambda text, shout: shout(text))
    assert shout("a") == "A"  # a callable resource is passed as it is
    assert [one.name for one in (first, second, other)] == ["first", "second", "third"]
    assert (first(1), second(2), other("a"), other("b")) == (1, 2, True, False)


def test_a_resource_made_once_is_made_once_per_process():
    made = []

    def make() -> int:
        made.append(os.getpid())
        return os.getpid()

    @cs.labeling_function(resources={"process": labeling.once(make)})
    def who(row, process):
        return process

    alone = cs.apply(who, list(range(50)), chunk_rows=5)
    assert made == [os.getpid()]
    assert set(alone.labels.ravel().tolist()) == {os.getpid()}
    workers = set(cs.apply(who, list(range(50)), chunk_rows=5, n_jobs=2).labels.ravel().tolist())
    assert os.getpid() not in workers
    assert len(workers) <= 2


def test_decorated_functions_can_be_pickled():
    again = pickle.loads(pickle.dumps([says_free, labeling.keywords("text", ["free"], "spam")]))
    assert again[0] is says_free
    assert pickle.loads(pickle.dumps(labeling.LabelingFunction(str.upper, "upper")))("a") == "A"
    assert cs.apply(again, pd.DataFrame({"text": ["free"]})).labels.tolist() == [["spam", "spam"]]


class SnorkelFunction:
    """What snorkel's class looks like from outside: a name, a call, preprocessors that set attributes."""

    def __init__(self, name, function, pre=()):
        self.name, self._function, self._pre = name, function, list(pre)

    def __call__(self, point):
        for step in self._pre:
            point = step(pickle.loads(pickle.dumps(point)))
        return self._function(point)


def test_functions_of_snorkel_are_taken_as_they_are():
    def lower(point):
        point.lowered = point.text.lower()
        return point

    functions = [
        SnorkelFunction("plain", lambda point: 1 if "FREE" in point["text"] else -1),
        SnorkelFunction("prepared", lambda point: 0 if "hi" in point.lowered else -1, [lower]),
    ]
    votes = cs.apply(functions, pd.DataFrame({"text": ["FREE", "Hi"]}))
    assert votes.sources == ("plain", "prepared")
    assert votes.observed.tolist() == [[True, False], [False, True]]
    assert votes.labels[votes.observed].tolist() == [1, 0]


def test_a_row_has_columns_that_are_no_identifiers_and_those_named_like_methods():
    row = labeling.chunks.rows_of({"count": [1], "a b": [2], "class": [3], "_x": [4]})[0]
    assert (row.count, row["count"], row["a b"], row["class"], row["_x"]) == (1, 1, 2, 3, 4)
    assert list(row) == [1, 2, 3, 4]


def test_the_benchmark_writes_its_table_without_snorkel_and_its_functions_vote_as_they_say(tmp_path, monkeypatch):
    script = str(ROOT / "benchmarks" / "bench_labeling.py")
    command = [sys.executable, script, "--quick", "--results", str(tmp_path), "--snorkel", str(tmp_path / "none")]
    subprocess.run(command, check=True, capture_output=True)
    text = (tmp_path / "labeling.md").read_text(encoding="utf-8")
    assert f"`python benchmarks/bench_labeling.py --quick` · consilience {cs.__version__}" in text
    assert "snorkel was not found" in text
    assert "nan" not in text
    monkeypatch.syspath_prepend(str(ROOT))
    bench = importlib.import_module("benchmarks.bench_labeling")
    frame = pd.DataFrame({"a": [1.0, -1.0, -1.0], "b": [0.0, 1.0, -1.0]})
    for make in (bench.row_function, bench.batch_function):
        assert bench.as_matrix(cs.apply(make(0.0), frame, cs.Classes(2))).ravel().tolist() == [1, 0, -1]

"""The experiments and the benchmark on trees run, and measure what they say."""

from __future__ import annotations

import gzip
import importlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import consilience as cs


def test_simulated_parsers_err_as_often_as_they_are_told() -> None:
    trees = importlib.import_module("experiments.trees")
    rng = np.random.default_rng(0)
    gold = list(cs.DependencyTrees().random_trees(np.full(300, 12), rng))
    corpus = trees.Corpus.of(gold)
    parsers = trees.simulate(corpus, [0.05, 0.3], 0.0, 0.0, rng)
    # n = 3600 tokens, standard error below 0.008; making trees of the choices adds a few errors
    assert 1.0 - cs.trees.uas(parsers[0], gold) == pytest.approx(0.06, abs=0.03)
    assert 1.0 - cs.trees.uas(parsers[1], gold) == pytest.approx(0.32, abs=0.06)
    wrong = trees.wrong_heads(corpus, rng)
    assert (wrong != corpus.heads).all()
    assert (wrong != corpus.position).all()


def test_the_medoid_is_the_vote_closest_to_the_others() -> None:
    trees = importlib.import_module("experiments.trees")
    space = cs.DependencyTrees()
    votes = cs.Votes.from_array([[[2, 0, 2], [2, 0, 1], [3, 1, 0]], [[0, 1], [2, 0], [2, 0]]])
    found = trees.medoid(space, cs.Votes.from_array(np.stack([space.as_batch(row) for row in votes.labels])))
    assert [tree.tolist() for tree in found] == [[2, 0, 2], [2, 0]]


def conllu(trees: list[np.ndarray]) -> str:
    sentences = []
    for tree in trees:
        rows = [f"{d}\tw{d}\t_\t_\t_\t_\t{h}\t{'root' if h == 0 else 'dep'}\t_\t_" for d, h in enumerate(tree, start=1)]
        sentences.append("\n".join(rows) + "\n\n")
    return "".join(sentences)


@pytest.fixture
def cached_parses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Gold trees of three small test sets, and the output of three parsers on each."""
    space, rng = cs.DependencyTrees(), np.random.default_rng(0)
    (tmp_path / "data" / "ud_english").mkdir(parents=True)
    for treebank in ("en_ewt", "en_lines", "en_partut"):
        gold = space.random_trees(rng.integers(4, 15, 60), rng)
        with gzip.open(tmp_path / "data" / "ud_english" / f"{treebank}-ud-test.conllu.gz", "wt") as file:
            file.write(conllu(list(gold)))
        folder = tmp_path / "cache" / treebank
        folder.mkdir(parents=True)
        for name, rate in (("udpipe-gum", 0.1), ("spacy-gum", 0.2), ("udpipe-atis", 0.3)):
            weight = float(space.law.weight_from_cost(np.array([rate]))[0])
            (folder / f"{name}.conllu").write_text(conllu(list(space.sample_around(gold, weight, rng))))
    monkeypatch.setenv("CONSILIENCE_DATA", str(tmp_path / "data"))
    return tmp_path / "cache"


def test_the_experiment_on_real_parsers_reads_its_cache_and_counts_test_sets(
    cached_parses: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_experiment: Callable[..., str]
) -> None:
    text = run_experiment("parsers", "--cache", str(cached_parses), seeds=2)
    assert "| ParTUT: **30 known sentences** |" in text
    assert "| EWT: udpipe-gum |" in text
    assert str(tmp_path) not in text
    monkeypatch.setenv("CONSILIENCE_CACHE", str(cached_parses))
    importlib.import_module("experiments.parsers").main(["--seeds", "2", "--results", str(tmp_path)])
    text = (tmp_path / "parsers.md").read_text(encoding="utf-8")
    assert "on two of the three test sets: **holds**" in text  # independent parsers: the consensus beats each of them


def test_a_parse_that_is_no_tree_becomes_the_nearest_one() -> None:
    parsers = importlib.import_module("experiments.parsers")
    bank = cs.tables.read_conllu(conllu([np.array([0, 1, 0]), np.array([2, 0]), np.array([2, 3, 2, 0])]))
    checked, changed = parsers.as_trees(bank)
    assert changed == 2
    kept = [int((new == old).sum()) for new, old in zip(checked.trees(), bank.trees(), strict=True)]
    assert kept == [2, 2, 3]


def test_the_experiment_on_real_parsers_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="fewer than three parsers for EWT, LinES, ParTUT"):
        importlib.import_module("experiments.parsers").main(["--quick", "--cache", str(tmp_path)])
    with pytest.raises(SystemExit, match="--cache needs a folder"):
        importlib.import_module("experiments.parsers").main(["--cache"])

"""The experiments and the benchmark on trees run, and measure what they say."""

import gzip
import importlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import consilience as cs


def conllu(trees: list[np.ndarray]) -> str:
    sentences = []
    for tree in trees:
        rows = [f"{d}\tw{d}\t_\t_\t_\t_\t{h}\t{'root' if h == 0 else 'dep'}\t_\t_" for d, h in enumerate(tree, start=1)]
        sentences.append("\n".join(rows) + "\n\n")
    return "".join(sentences)


@pytest.fixture
def cached_parses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Gold trees of four small test sets, and the output of three parsers on each."""
    space, rng = cs.DependencyTrees(), np.random.default_rng(0)
    for treebank in ("en_ewt", "en_lines", "en_partut", "cs_pud"):
        folder = tmp_path / "data" / ("ud_czech" if treebank == "cs_pud" else "ud_english")
        folder.mkdir(parents=True, exist_ok=True)
        gold = space.random_trees(rng.integers(4, 15, 60), rng)
        with gzip.open(folder / f"{treebank}-ud-test.conllu.gz", "wt") as file:
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
    assert "| PUD: udpipe-gum |" in (tmp_path / "parsers_czech.md").read_text(encoding="utf-8")
    assert "on two thirds of the test sets: **holds**" in text  # independent parsers: the consensus beats each of them


def test_a_parse_that_is_no_tree_becomes_the_nearest_one() -> None:
    parsers = importlib.import_module("experiments.parsers")
    bank = cs.tables.read_conllu(conllu([np.array([0, 1, 0]), np.array([2, 0]), np.array([2, 3, 2, 0])]))
    checked, changed = parsers.as_trees(bank)
    assert changed == 2
    kept = [int((new == old).sum()) for new, old in zip(checked.trees(), bank.trees(), strict=True)]
    assert kept == [2, 2, 3]


def test_the_experiment_on_real_parsers_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="fewer than three parsers for some test set of every language"):
        importlib.import_module("experiments.parsers").main(["--quick", "--cache", str(tmp_path)])
    with pytest.raises(SystemExit, match="--cache needs a folder"):
        importlib.import_module("experiments.parsers").main(["--cache"])

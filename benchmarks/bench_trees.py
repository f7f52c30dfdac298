"""Speed of consensus trees on votes for the sentences of the LinES test set, beside networkx.

Votes of parsers that each err on a fifth of the heads. Without the treebank (CONSILIENCE_DATA) sentences of the same
mean length are drawn. CPU time of one process, one thread.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

# Before NumPy is imported: several threads would hide how much work is done.
os.environ |= {name: "1" for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")}

import networkx as nx
import numpy as np
import numpy.typing as npt

import consilience as cs

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # so that the script runs by its path

from experiments.tables import markdown_table, verdict, write_results

RESULTS = Path(__file__).resolve().parent / "results"
REPETITIONS, TARGET, ERROR, MEAN_LENGTH = 7, 50_000.0, 0.2, 17.8
#: Sentences that networkx solves; it would take minutes for all.
PEER_SENTENCES = 60
SOURCES = (3, 7)
LONG = 120

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


def sentence_lengths(n: int) -> tuple[IntArray, str]:
    """Return numbers of tokens: those of the treebank, or drawn ones."""
    name = os.environ.get("CONSILIENCE_DATA")
    path = Path(name or "") / "ud_english" / "en_lines-ud-test.conllu.gz"
    if name and path.is_file():
        lengths = np.array([len(sentence) for sentence in cs.tables.read_conllu(path).sentences])
        return lengths[:n], f"lengths of the LinES test set, mean {lengths[:n].mean():.1f} tokens"
    lengths = 2 + np.random.default_rng(0).negative_binomial(2, 2 / MEAN_LENGTH, n)
    return lengths, f"drawn lengths, mean {lengths.mean():.1f} tokens"


def cpu_seconds(work: Callable[[], object], repetitions: int) -> float:
    """Return the median CPU time, after a warm-up that compiles what has to be compiled."""
    work()
    spent = []
    for _ in range(repetitions):
        start = time.process_time()
        work()
        spent.append(max(time.process_time() - start, 1e-6))
    return float(np.median(spent))


def by_networkx(score: FloatArray, *, voted_only: bool) -> float:
    """Return the largest sum of scores of a tree with one root: an edge of the root costs more than all others gain.

    With `voted_only` the graph has no other edges than those with a vote, which is all that networkx needs.
    """
    n = len(score) - 1
    penalty = 1.0 + 2.0 * n * float(np.abs(score).max())
    graph = nx.DiGraph()
    graph.add_weighted_edges_from(
        (h, d, score[h, d] - penalty * (h == 0))
        for h in range(n + 1)
        for d in range(1, n + 1)
        if h != d and (score[h, d] > 0 or not voted_only)
    )
    best = nx.maximum_spanning_arborescence(graph)
    return float(best.size(weight="weight")) + penalty


def edge_scores(trees: Sequence[IntArray], weights: FloatArray) -> FloatArray:
    """Return the weighted votes on the edges of one sentence."""
    n = len(trees[0])
    score = np.zeros((n + 1, n + 1))
    for tree, weight in zip(trees, weights, strict=True):
        score[tree, np.arange(1, n + 1)] += weight
    return score


def total(score: FloatArray, heads: IntArray) -> float:
    return float(score[heads, np.arange(1, len(heads) + 1)].sum())


def measure(lengths: IntArray, sources: int, peers: int, repetitions: int) -> tuple[list[list[str]], float, str]:
    """Return rows of the table, trees per second of the weighted mean, and how often networkx finds the same score."""
    rng = np.random.default_rng(sources)
    space = cs.DependencyTrees()
    truth = space.random_trees(lengths, rng)
    rate = ERROR * np.linspace(0.6, 1.4, sources)
    votes = cs.simulate(space, truth, space.law.weight_from_cost(rate), rng)
    weights = np.tile(space.law.weight_from_cost(rate), (len(truth), 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cs.exceptions.ConsilienceWarning)
        model = cs.LabelModel(space, random_state=0).fit(votes)
        fitting = cpu_seconds(lambda: cs.LabelModel(space, random_state=0).fit(votes), max(repetitions // 2, 1))
    mean = len(truth) / cpu_seconds(lambda: space.weighted_mean(votes.labels, weights), repetitions)
    predict = len(truth) / cpu_seconds(lambda: model.predict(votes), repetitions)
    scores = [edge_scores(row, weights[0]) for row in votes.labels]
    dense = len(scores) / cpu_seconds(lambda: [cs.trees.maximum_arborescence(score) for score in scores], repetitions)
    best: list[float] = []
    start = time.process_time()
    best += [by_networkx(score, voted_only=True) for score in scores[:peers]]
    peer = peers / max(time.process_time() - start, 1e-6)
    start = time.process_time()
    best += [by_networkx(score, voted_only=False) for score in scores[:peers]]
    dense_peer = peers / max(time.process_time() - start, 1e-6)
    found = space.weighted_mean(votes.labels[:peers], weights[:peers])
    ours = [total(score, heads) for score, heads in zip(scores, found, strict=False)]
    same = f"{int(np.isclose([*ours, *ours], best, rtol=1e-9).sum())} of {2 * peers}"
    names = {
        "weighted vote and best tree, from checked votes": mean,
        "predict: checks, votes, best tree, probabilities": predict,
        "best tree of a dense table, one call each": dense,
        "networkx, edges with a vote": peer,
        "networkx, dense table": dense_peer,
    }
    rows = []
    for name, speed in names.items():
        ratio = speed / peer
        rows.append([f"{sources} parsers: {name}", f"{speed:,.0f}", f"{ratio:,.0f}" if ratio >= 10 else f"{ratio:.2g}"])
    rows.append([f"{sources} parsers: fit (all sentences once)", f"{len(truth) / fitting:,.0f}", "-"])
    return rows, mean, same


def long_sentences(repetitions: int, count: int) -> float:
    """Return trees per second for dense random scores of 120 tokens, where every tree needs contractions."""
    rng = np.random.default_rng(0)
    tables = [rng.random((LONG + 1, LONG + 1)) for _ in range(count)]
    return count / cpu_seconds(lambda: [cs.trees.maximum_arborescence(table) for table in tables], repetitions)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and write ``trees.md``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small tables: shows that it runs, proves nothing")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the table")
    given = parser.parse_args(arguments)
    n, repetitions, peers = (20, 1, 3) if given.quick else (1121, REPETITIONS, PEER_SENTENCES)
    lengths, described = sentence_lengths(n)
    rows, rates, agreed = [], {}, {}
    for sources in SOURCES:
        added, rates[sources], agreed[sources] = measure(lengths, sources, peers, repetitions)
        rows += added
    long = long_sentences(repetitions, 2 if given.quick else 50)
    slowest = min(rates.values())
    judged = "\n".join(
        [
            verdict(f"At least {TARGET:,.0f} consensus trees per second", slowest >= TARGET, f"{slowest:,.0f}"),
            verdict(
                "The same score as networkx",
                all(same == f"{2 * peers} of {2 * peers}" for same in agreed.values()),
                "; ".join(f"{sources} parsers: {same}" for sources, same in agreed.items()),
            ),
        ]
    )
    blocks = [
        "The first line of each block is `DependencyTrees().weighted_mean(votes, weights)`: votes are arrays of heads "
        "that passed the checks, and come out as arrays of heads. *ratio* is to networkx on the edges with a vote, "
        "with a large penalty on the edges of the root.",
        markdown_table(["sentences per CPU second", "rate", "ratio"], rows),
        f"Dense random scores of {LONG} tokens, where cycles have to be contracted: {long:,.0f} trees per second.",
        "## Targets",
        "A quick run on small tables: targets are not judged." if given.quick else judged,
    ]
    settings = [f"{n} sentences, {described}", f"CPU seconds, one thread, median of {repetitions} after a warm-up"]
    command = f"python benchmarks/bench_trees.py{' --quick' * given.quick}"
    write_results(given.results / "trees.md", "Dependency trees: speed", command, settings, blocks)


if __name__ == "__main__":
    main()

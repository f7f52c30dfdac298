"""Claim: retrieval models, weighted without labels, train a ranker that beats BM25 and a tenth of the gold labels.

The paper's experiment on MSLR-WEB10K, on LETOR's MQ2008 instead. Reads ``letor_mq2008`` from the folder that
CONSILIENCE_DATA names.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import consilience as cs

from . import public_data
from .tables import (
    QUICK,
    FloatArray,
    IntArray,
    Settings,
    data_folder,
    fit_quietly,
    in_parallel,
    markdown_table,
    mean_spread,
    read_settings,
    verdict,
    write_results,
)

FOLDS = (1, 2, 3, 4, 5)
BM25 = "bm25_whole"
LEVELS, DRAWN, SETS_PER_QUERY = 3, 5, 3
SHARES = (0.1, 0.25, 1.0)
#: Sources that order documents alike.
GROUPS = {
    "BM25 and language models of the text": ("bm25_whole", "bm25_body", "lmir_abs_whole", "lmir_jm_whole"),
    "Dirichlet, tf-idf and tf of the text": ("lmir_dir_whole", "tfidf_whole", "tf_whole"),
    "title and anchor": ("bm25_title", "bm25_anchor", "lmir_jm_title"),
}
KNOWN = 30
HELPED = f"ours, {KNOWN} sets known"
#: Kendall error and NDCG@1 on MSLR-WEB10K, as the paper prints them.
PAPER = {
    "supervised, 10%": ("0.4003", "0.7000"),
    "supervised, 25%": ("0.3736", "0.7288"),
    "BM25": ("0.4001", "0.7288"),
    "ours": ("0.3929", "0.7402"),
}
MEASURES = ("Kendall", "NDCG@1", "NDCG@10")
MODELS: dict[str, Callable[[int], Any]] = {
    "network": lambda seed: cs.end_models.ListwiseRanker(epochs=10, random_state=seed),
    "trees": lambda seed: cs.end_models.LambdaRanker(n_estimators=50, num_leaves=7, random_state=seed),
}

Cells = dict[tuple[str, str], list[tuple[float, ...]]]


@dataclass(frozen=True, eq=False)
class Sets:
    """Rows of documents, one set each, all of one size."""

    rows: IntArray
    data: public_data.Retrieval

    @property
    def X(self) -> FloatArray:  # noqa: N802
        return self.data.features[self.rows]

    @property
    def gold(self) -> IntArray:
        return cs.Rankings.positions_from_scores(self.data.relevance[self.rows].astype(float)).astype(np.int64)

    def votes(self) -> cs.Votes:
        ranked = [cs.Rankings.positions_from_scores(self.data.feature(name)[self.rows]) for name in self.data.sources]
        return cs.Votes.from_array(np.stack(ranked, axis=1).astype(np.int64), sources=list(self.data.sources))


def one_of_each_level(data: public_data.Retrieval, queries: Sequence[IntArray], rng: np.random.Generator) -> Sets:
    """Return the paper's sets: one document of every relevance per query, three draws."""
    found = []
    for rows in queries:
        levels = [rows[data.relevance[rows] == level] for level in range(LEVELS)]
        if all(len(level) for level in levels):
            found += [[rng.choice(level) for level in levels] for _ in range(SETS_PER_QUERY)]
    return Sets(rng.permuted(np.array(found), axis=1), data)


def any_documents(data: public_data.Retrieval, queries: Sequence[IntArray], rng: np.random.Generator) -> Sets:
    """Return sets of five documents of a query, drawn without a look at their relevance."""
    large = [rows for rows in queries if len(rows) >= DRAWN]
    return Sets(
        np.stack([rng.choice(rows, DRAWN, replace=False) for rows in large for _ in range(SETS_PER_QUERY)]), data
    )


def measure(scores: Sequence[FloatArray], relevance: Sequence[IntArray]) -> tuple[float, float, float]:
    """Return Kendall error over pairs of unequal relevance, NDCG@1 and NDCG@10; queries with one level are left out."""
    errors, first, ten = [], [], []
    for score, level in zip(scores, relevance, strict=True):
        better = level[:, None] > level[None, :]
        if not better.any():
            continue
        wrong = (1.0 - np.sign(score[:, None] - score[None, :])) / 2.0
        errors.append(float(wrong[better].mean()))
        first.append(ndcg(score, level, 1))
        ten.append(ndcg(score, level, 10))
    return float(np.mean(errors)), float(np.mean(first)), float(np.mean(ten))


def ndcg(score: FloatArray, relevance: IntArray, top: int) -> float:
    """Return the discounted gain of the best `top`, over that of the best order; tied scores share their places."""
    order = np.argsort(-score, kind="stable")
    gain = 2.0 ** relevance[order] - 1.0
    ranked = score[order]
    for value in np.unique(ranked):
        tied = ranked == value
        gain[tied] = gain[tied].mean()
    discount = 1.0 / np.log2(np.arange(2, top + 2))
    best = np.sort(2.0**relevance - 1.0)[::-1][:top]
    return float(gain[:top] @ discount[: len(gain[:top])] / (best @ discount[: len(best)]))


def run_fold(fold: int, seed: int, by_level: bool, quick: bool) -> tuple[Cells, dict[str, list[float]]]:
    """Return measures by model and row, and the errors of the labels, with one fold as the test set."""
    data = public_data.load_letor_mq2008()
    found: Cells = defaultdict(list)
    labels_found: dict[str, list[float]] = defaultdict(list)
    draw = one_of_each_level if by_level else any_documents
    rng = np.random.default_rng([fold, seed])
    train_queries = [rows for rows in data.rows if data.fold[rows[0]] != fold]
    test_queries = [rows for rows in data.rows if data.fold[rows[0]] == fold]
    order = rng.permutation(len(train_queries))
    train_queries = [train_queries[index] for index in (order[:60] if quick else order)]
    train = draw(data, train_queries, rng)
    tested = draw(data, test_queries, rng).rows if by_level else test_queries
    relevance = [data.relevance[rows] for rows in tested]
    features = [data.features[rows] for rows in tested]
    found["rule", "BM25"].append(measure([data.feature(BM25)[rows] for rows in tested], relevance))
    votes = train.votes()
    space = cs.Rankings(train.rows.shape[1])
    known = np.zeros(len(train.rows), dtype=bool)
    known[rng.choice(len(train.rows), min(KNOWN, len(train.rows)), replace=False)] = True
    ours = fit_quietly(cs.LabelModel(space, random_state=0), votes)
    found |= errors_of_sources(ours, votes, train.gold)
    labels: dict[str, Any] = {
        "BM25": votes.labels[:, list(votes.sources).index(BM25)],
        "majority": fit_quietly(cs.LabelModel(space, method="majority"), votes).predict(votes),
        "ours": ours.predict(votes),
        HELPED: fit_quietly(cs.LabelModel(space, random_state=0), votes, (train.gold, known)).predict(votes),
    }
    for name, positions in labels.items():
        labels_found[name].append(space.kendall_error(positions, train.gold))
    for kind, make in MODELS.items():
        for name, positions in labels.items():
            found[kind, name].append(measure(make(seed).fit(train.X, positions).score_items(features), relevance))
        for share in SHARES:
            # the sets of a query lie together, so that this is a share of the queries
            count = max(2, round(share * len(train.rows)))
            model = make(seed).fit(train.X[:count], train.gold[:count])
            found[kind, f"supervised, {share:.0%}"].append(measure(model.score_items(features), relevance))
    return dict(found), dict(labels_found)


def errors_of_sources(model: cs.LabelModel, votes: cs.Votes, gold: IntArray) -> Cells:
    """Return estimated and counted errors of each source, and mean correlations of errors between the groups."""
    space, sources = model.space, list(votes.sources)
    truth = space.embed(space.as_batch(gold))
    said = np.stack([space.embed(space.as_batch(votes.labels[:, index])) for index in range(len(sources))])
    right = (said * truth).mean(axis=(1, 2))
    shared = np.einsum("aip,bip->ab", said, said) / truth.size - np.outer(right, right)
    shared /= np.sqrt(np.outer(np.diag(shared), np.diag(shared)))
    found: Cells = {}
    for name, estimated, counted in zip(sources, model.expected_cost_ / truth.shape[1], (1 - right) / 2, strict=True):
        found["source", name] = [(float(estimated), float(counted))]
    for one, names in GROUPS.items():
        rows = [sources.index(name) for name in names]
        blocks = [shared[np.ix_(rows, [sources.index(name) for name in others])] for others in GROUPS.values()]
        found["group", one] = [tuple(float(block[block < 1 - 1e-9].mean()) for block in blocks)]
    return found


def table_of_errors(found: Cells, kind: str, columns: Sequence[str]) -> str:
    rows = [
        [name, *(f"{value:.2f}" for value in np.mean(values, axis=0))]
        for (own, name), values in found.items()
        if own == kind
    ]
    return markdown_table(["", *columns], rows)


def run(settings: Settings, by_level: bool) -> tuple[Cells, dict[str, list[float]]]:
    """Return measures by model and row, one entry per fold and seed, and the errors of the labels."""
    found: Cells = defaultdict(list)
    labels: dict[str, list[float]] = defaultdict(list)
    folds = FOLDS[:1] if settings.quick else FOLDS
    runs = [(fold, seed, by_level, settings.quick) for fold in folds for seed in range(settings.seeds)]
    for of_models, of_labels in in_parallel(run_fold, runs, "levels" if by_level else "all   "):
        for key, values in of_models.items():
            found[key] += values
        for name, errors in of_labels.items():
            labels[name] += errors
    return found, labels


def table_of(found: Cells, labels: dict[str, list[float]], with_paper: bool) -> str:
    rows = []
    for (kind, name), values in found.items():
        if kind not in ("rule", *MODELS):
            continue
        columns = np.array(values).T
        said = "BM25 itself" if kind == "rule" else f"{name}, {kind}"
        printed = PAPER.get(name, ("", "")) if kind == "network" else ("", "")
        known = mean_spread(labels[name], 3) if name in labels and kind == "network" else ""
        rows.append([said, known, *(mean_spread(list(one), 3) for one in columns), *(printed if with_paper else ())])
    columns = ["labels, Kendall", *MEASURES, *(("paper (MSLR), Kendall", "paper (MSLR), NDCG@1") if with_paper else ())]
    return markdown_table(["", *columns], rows)


def compare(found: Cells, what: str, kind: str) -> list[str]:
    """Return whether ours is above BM25 and above a tenth of the gold, with paired differences over the folds."""
    lines = []
    ours = np.array(found[kind, "ours"])
    others = {
        "BM25 itself": np.array(found["rule", "BM25"]),
        "a model of BM25": np.array(found[kind, "BM25"]),
        "a model of the plain vote": np.array(found[kind, "majority"]),
        "supervised with 10%": np.array(found[kind, "supervised, 10%"]),
    }
    for name, other in others.items():
        for column, sign in ((0, -1.0), (1, 1.0)):
            gain = sign * (ours - other)[:, column]
            error = gain.std() / np.sqrt(len(gain))
            claim = f"{what}, {kind}: {MEASURES[column]} better than {name}"
            lines.append(verdict(claim, gain.mean() > 0, f"by {gain.mean():+.3f} ± {error:.3f}"))
    return lines


def main(arguments: Sequence[str] | None = None) -> None:
    """Run both kinds of sets and write ``letor.md``."""
    settings = read_settings("experiments.letor", __doc__, 1, 1, arguments, full_seeds=5)
    data = public_data.load_letor_mq2008(data_folder("letor_mq2008"))
    levels, level_labels = run(settings, True)
    anything, any_labels = run(settings, False)
    judged = [
        *compare(levels, "one of each level", "network"),
        *compare(anything, "all documents", "network"),
        *compare(levels, "one of each level", "trees"),
        *compare(anything, "all documents", "trees"),
        *(
            verdict(
                f"{what}, labels: not above the plain vote",
                np.mean(labels["ours"]) <= np.mean(labels["majority"]),
                f"{np.mean(labels['ours']):.3f} against {np.mean(labels['majority']):.3f}",
            )
            for what, labels in (("one of each level", level_labels), ("all documents", any_labels))
        ),
    ]
    blocks = [
        f"{len(data):,} documents of {len(data.rows)} queries, relevance 0 to 2, 46 features. Ten of them rank by "
        f"themselves and are the sources: {', '.join(data.sources)}; no label is used but for *supervised*, which has "
        f"the gold of a share of the training queries, and *{HELPED}*. Five folds, each the test set of the others; "
        "no query is in both. Kendall: share of pairs of unequal relevance in the wrong order, lower is better; NDCG: "
        "higher is better; queries whose documents are all equally relevant are left out. *network* is the paper's "
        "(four layers, ListMLE, 10 passes), *trees* are `LambdaRanker(n_estimators=50, num_leaves=7)`. *BM25* as a "
        "source is a model trained on its rankings, *BM25 itself* ranks by the feature. Mean ± standard deviation over "
        "folds and seeds; differences with their standard errors, to which the shared training data is not added.",
        "## Targets",
        QUICK if settings.quick else "\n".join(judged),
        "## One document of each level",
        "The paper's sets: for queries that have all levels, three sets of one document of each, in training and test. "
        "So the choice of documents looks at the gold. (MSLR-WEB10K has five levels; its numbers stand beside, on "
        "other queries and documents.)",
        table_of(levels, level_labels, True),
        "### Errors of the sources",
        "Shares of pairs in the wrong order, as our model estimates them without labels, and counted with the gold.",
        table_of_errors(levels, "source", ["estimated", "counted"]),
        "Mean correlation of errors, counted with the gold, between the sources of each two groups.",
        table_of_errors(levels, "group", list(GROUPS)),
        "## All documents",
        "Trained on three sets of five documents per query, drawn without a look at their relevance; tested on all "
        "documents of the test queries.",
        table_of(anything, any_labels, False),
    ]
    described = [f"5 folds, seeds 0..{settings.seeds - 1}"]
    write_results(settings.results / "letor.md", "Learning to rank documents", settings.command, described, blocks)


if __name__ == "__main__":
    main()

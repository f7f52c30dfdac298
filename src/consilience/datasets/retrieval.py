"""Documents found for queries, with the features that search engines rank by."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from consilience.arrays import FloatArray, IntArray
from consilience.datasets.folders import Origin, read_table

__all__ = ["Retrieval", "load_letor_mq2008"]

ORIGIN = Origin(
    "letor_mq2008",
    "LETOR 4.0, MQ2008: 15,211 documents for 784 queries with 46 features and relevance",
    "Microsoft Research (LETOR 4.0, MQ2008 supervised ranking, S1 to S5), as mq2008.parquet with named columns",
)
ROWS = 15211
KEYS = ("qid", "docid", "relevance", "fold")
#: The panel of models of retrieval that stand in for those of the paper.
SOURCES = (
    "bm25_whole",
    "bm25_body",
    "bm25_title",
    "lmir_abs_whole",
    "lmir_dir_whole",
    "lmir_jm_whole",
    "tfidf_whole",
    "tf_whole",
    "bm25_anchor",
    "lmir_jm_title",
)


@dataclass(frozen=True, eq=False)
class Retrieval:
    """Documents, one row each, grouped by query.

    Attributes
    ----------
    query : array of shape (n,)
        Equal where documents were found for the same query; these rows lie together.
    relevance : array of shape (n,)
        The gold: 0, 1 or 2.
    fold : array of shape (n,)
        1 to 5; all documents of a query are in the same one.
    features : array of shape (n, 46)
        Each between 0 and 1 within its query; larger is more relevant for the `sources`.
    feature_names : tuple of str
    sources : tuple of str
        Ten features that rank documents by themselves.
    """

    query: IntArray
    relevance: IntArray
    fold: IntArray
    features: FloatArray
    feature_names: tuple[str, ...]
    sources: tuple[str, ...] = SOURCES

    def __len__(self) -> int:
        return len(self.query)

    @property
    def rows(self) -> list[IntArray]:
        """The rows of each query."""
        starts = np.flatnonzero(np.r_[True, self.query[1:] != self.query[:-1]])
        return np.split(np.arange(len(self.query)), starts[1:])

    def feature(self, name: str) -> FloatArray:
        """Return one column."""
        return self.features[:, self.feature_names.index(name)]


def load_letor_mq2008(folder: str | Path | None = None) -> Retrieval:
    """Return the documents of ``letor_mq2008/mq2008.parquet``, queries together."""
    table = read_table(ORIGIN.path(folder, "mq2008.parquet"), [*KEYS, *SOURCES], ROWS)
    names = tuple(name for name in table.columns if name not in KEYS)
    query = table["qid"].astype(np.int64)
    order = np.argsort(query, kind="stable")
    return Retrieval(
        query[order],
        table["relevance"].astype(np.int64)[order],
        table["fold"].astype(np.int64)[order],
        np.column_stack([table.numbers(name) for name in names])[order],
        names,
    )

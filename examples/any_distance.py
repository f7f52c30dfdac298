"""Claim: a distance is enough to estimate the quality of sources.

Six sources tag photographs. A label is a Python set of tags, and the distance is the number of tags that differ. The
model knows neither the true tags nor the sources, and estimates how many tags each source gets wrong.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import consilience as cs

TAGS = ("beach", "boat", "bridge", "child", "cloud", "dog", "forest", "house", "night", "river", "snow", "street")
#: How often each source gets a tag wrong. Weights matter most with a single good source. With two (0.05 and 0.08), the
#: estimates are as close, but the labels are about as good as a majority vote.
ERROR_RATES = {"editor": 0.05, "librarian": 0.25, "app": 0.28, "intern": 0.3, "crowd_1": 0.32, "crowd_2": 0.35}


@dataclass(frozen=True)
class Row:
    """Wrong tags per photograph: the estimate (for a source, with its standard error), and the true value."""

    name: str
    learned: float | None
    error: float | None
    true: float


def make_votes(n_items: int, rng: np.random.Generator) -> tuple[cs.Votes, list[frozenset[str]]]:
    """Return sets of tags with errors, and the true sets."""
    truth = rng.random((n_items, len(TAGS))) < 0.3
    wrong = rng.random((n_items, len(ERROR_RATES), len(TAGS))) < np.array(list(ERROR_RATES.values()))[:, None]
    rows = [[as_set(flags ^ errors) for errors in by_source] for flags, by_source in zip(truth, wrong, strict=True)]
    return cs.Votes.from_array(rows, sources=list(ERROR_RATES)), [as_set(flags) for flags in truth]


def as_set(flags: np.ndarray) -> frozenset[str]:
    """Return the tags whose flag is set."""
    return frozenset(tag for tag, flag in zip(TAGS, flags, strict=True) if flag)


def compare(n_items: int = 300, seed: int = 0) -> list[Row]:
    """Return the estimated and true errors of every source, and the errors of the labels."""
    votes, truth = make_votes(n_items, np.random.default_rng(seed))
    space = cs.Metric(lambda left, right: len(left ^ right))
    model = cs.LabelModel(space, random_state=seed).fit(votes)
    plain = cs.LabelModel(space, method="majority", random_state=seed).fit(votes)
    rows = []
    for column, (name, learned) in enumerate(zip(votes.sources, model.expected_cost_, strict=True)):
        wrong = [len(vote ^ tags) for vote, tags in zip(votes.labels[:, column], truth, strict=True)]
        error = float(model.cost_standard_error_[column])
        rows.append(Row(name, float(learned), error, float(np.mean(wrong))))
    rows.append(Row("labels by majority vote", None, None, -plain.score(votes, truth)))
    rows.append(Row("labels by consilience", None, None, -model.score(votes, truth)))
    return rows


if __name__ == "__main__":
    print(f"{'wrong tags per photograph':27}{'estimated':>12}{'true':>8}")
    for row in compare():
        learned = "" if row.learned is None else f"{row.learned:.2f} ± {row.error:.2f}"
        print(f"{row.name:27}{learned:>12}{row.true:8.2f}")

"""Claim: 95% intervals of an audit contain the truth in 93 to 97% of draws, and are shorter than without the model.

All real sets with known labels, and simulated sets in which sources share errors. In each draw, 30, 100 or 300 labels
are known, and the interval for the mean loss of all labels is compared with that loss.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from rich.progress import track

import consilience as cs

from .known_labels import SPACES, draw
from .real_data import cases
from .tables import QUICK, data_folder, fit_quietly, markdown_table, read_settings, verdict, write_results

SIZES = (30, 100, 300)
ITEMS = 3000
#: Of the simulated sets and of all draws. The interval was chosen on others (0, 23 and 3107 of the sets).
SEED = 4021
LOW, HIGH = 0.93, 0.97
WIDTH, WORST = 0.85, 1.05


def populations(quick: bool) -> Iterator[tuple[str, cs.LabelSpace, cs.Votes, Any]]:
    """Yield name, label type, votes and truth of every set."""
    names = ["classes"] if quick else list(SPACES)
    for name in names:
        rng = np.random.default_rng([SEED, names.index(name)])
        yield f"simulated {name}, three copies", SPACES[name], *draw(SPACES[name], "three copies", ITEMS, rng)
    if quick:
        return
    rng = np.random.default_rng(SEED)
    truth = rng.integers(0, 2, ITEMS)
    # Labels of 97% accuracy, whose errors a third of the sources share.
    hard, wrong = rng.random(ITEMS) < 0.08, rng.random((ITEMS, 6)) < 0.05
    wrong[:, :2] = np.where(hard[:, None], rng.random((ITEMS, 1)) < 0.8, wrong[:, :2])
    wrong[:, 2:] = np.where(hard[:, None], rng.random((ITEMS, 4)) < 0.4, wrong[:, 2:])
    yield "simulated classes, hard items", cs.Classes(2), cs.Votes.from_array(truth[:, None] ^ wrong), truth
    for name, read in cases(data_folder("wrench", "movies", "preflib_dots"), quick):
        case = read()
        if not name.startswith("movies"):  # their gold has ties, which is not a label of the type
            yield name, case.space, case.votes, case.truth


def bounds(model: cs.LabelModel, votes: cs.Votes, gold: Any) -> tuple[float, float]:
    """Return the smallest width that knowing the loss of every item could give, over that of a plain sample.

    The first is for a random sample and the control variate that predicts the losses best from all that is known of an
    item; the second also draws items in proportion to the standard deviation that is left.
    """
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.isotonic import IsotonicRegression
    from sklearn.model_selection import cross_val_predict

    space, rows = model.space, np.flatnonzero(votes.observed.any(axis=1))
    votes, truth = votes[rows], space.as_batch(np.asarray(gold)[rows])
    belief, seen = model.posterior(votes), votes.observed
    labels = space.as_batch(belief.labels)
    loss = space.distance(labels, truth)
    apart, codes = np.full(seen.shape, -1.0), np.full(seen.shape, -1.0)
    for source, own in enumerate(seen.T):
        said = space.as_batch(votes.labels[own, source])
        apart[own, source] = space.distance(said, labels[own])
        if belief.probabilities is not None:
            codes[own, source] = said
    known = [belief.confidence, np.where(seen, apart, 0).sum(axis=1) / seen.sum(axis=1), apart]
    if belief.probabilities is not None:
        known += [belief.probabilities, labels, codes]
    features = np.column_stack(known)
    forest = RandomForestRegressor(100, min_samples_leaf=5, random_state=0)
    # Steps that never fall, fitted to all losses, make probabilities of each guess; the best guess counts.
    guesses = [cross_val_predict(forest, features, loss, cv=5), 1.0 - belief.confidence, known[1]]
    steps = IsotonicRegression(out_of_bounds="clip")
    fitted = [steps.fit_transform(one, loss) for one in guesses]
    expected = min(fitted, key=lambda one: float(((loss - one) ** 2).sum()))
    left = (loss - expected) ** 2
    varies = expected * (1 - expected) if space.right_or_wrong else steps.fit_transform(expected, left)
    return float(np.sqrt(left.mean()) / loss.std()), float(np.sqrt(varies).mean() / loss.std())


def main(arguments: Sequence[str] | None = None) -> None:
    """Draw known labels from all sets and write ``audit_coverage.md``."""
    settings = read_settings("experiments.audit_coverage", __doc__, 1000, 1, arguments)
    rows, kept, ratios, missed, possible = [], [], [], [], []
    for name, space, votes, truth in track(list(populations(settings.quick)), description="audits"):
        model = fit_quietly(cs.LabelModel(space, random_state=0), votes)
        best = bounds(model, votes, truth)
        for known in SIZES:
            if known >= votes.observed.any(axis=1).sum():
                continue
            one = cs.testing.audit_coverage(model, votes, truth, known, settings.seeds, SEED)
            shorter = one.width_suggested / one.width_plain
            rows.append(
                [
                    name,
                    str(len(votes)),
                    str(known),
                    f"{one.loss:.3g}",
                    *(f"{share:.3f}" for share in (one.covered_plain, one.covered, one.covered_suggested)),
                    f"{one.width_plain:.3g}",
                    f"{one.width / one.width_plain:.2f}",
                    f"{shorter:.2f}",
                    *(f"{one:.2f}" for one in best),
                ]
            )
            ratios.append(shorter)
            possible.append(best)
            kept += [LOW <= share <= HIGH for share in (one.covered, one.covered_suggested)]
            missed += [
                f"{name}, {known}, {how}: {share:.3f}"
                for how, share in (("random", one.covered), ("suggested", one.covered_suggested))
                if not LOW <= share <= HIGH
            ]
    columns = [
        "data",
        "items",
        "known",
        "mean loss",
        "plain",
        "random",
        "suggested",
        "width",
        "random /",
        "suggested /",
        "best control /",
        "best draw /",
    ]
    best_control, best_draw = np.mean(possible, axis=0)
    error = np.sqrt(0.95 * 0.05 / settings.seeds)
    blocks = [
        f"Share of {settings.seeds:,} intervals that hold the mean loss of all labels (standard error {error:.3f}), "
        "and their mean width. *plain*: a random sample without the model. *random*: the same with the model's "
        "expected loss as control variate, and strata of items with the same label or with votes about as far apart. "
        '*suggested*: items drawn by `suggest(votes, k, "audit")`. The last four columns are widths over that of '
        "*plain*. *best control* and *best draw* need the true labels of **all** items: the first is what the best "
        "prediction of the losses from the votes reaches as control variate, the second also draws items in proportion "
        "to the standard deviation that is left. The prediction is a random forest (cross-validated) or the model's "
        "confidence or the distance of the votes, each calibrated by steps on all losses. "
        "Sets of at most as many items as known labels are left out. The form of the interval was chosen on other "
        "simulated sets and on other draws from the same real sets, and fixed before these draws were made.",
        markdown_table(columns, rows),
        "## Targets",
        QUICK
        if settings.quick
        else "\n".join(
            [
                verdict(
                    f"every interval covers {LOW:.0%} to {HIGH:.0%}",
                    not missed,
                    f"{sum(kept)} of {len(kept)}; outside: {'; '.join(missed) or 'none'}",
                ),
                verdict(
                    f"suggested: width at most {WIDTH} of plain, averaged over rows",
                    float(np.mean(ratios)) <= WIDTH,
                    f"{np.mean(ratios):.2f}; with the true labels of all items {best_control:.2f} by the best control "
                    f"variate and {best_draw:.2f} by the best draw",
                ),
                verdict(f"suggested: width never above {WORST} of plain", max(ratios) <= WORST, f"{max(ratios):.2f}"),
            ]
        ),
    ]
    write_results(
        settings.results / "audit_coverage.md",
        "Coverage of audits",
        settings.command,
        [f"{settings.seeds:,} draws, seed {SEED}", f"{ITEMS} simulated items"],
        blocks,
    )


if __name__ == "__main__":
    main()

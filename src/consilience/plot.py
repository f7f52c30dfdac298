"""Plots for papers and notebooks with matplotlib. Each function returns the axes it drew on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from consilience.arrays import FloatArray
from consilience.estimation.calibration import share_right
from consilience.exceptions import InvalidVotesError, needed
from consilience.label_model import LabelModel
from consilience.label_types.base import NORMAL_95
from consilience.report.evidence import Evidence, gather, relate

__all__ = ["agreement", "calibration", "compare", "confidence", "sources"]


def sources(model: LabelModel, ax: Any = None) -> Any:
    """Draw the quality of each source, in the unit of the label type, with its 95% interval; best source on top.

    A source of unknown quality (infinite standard error) is a hollow dot without an interval.

    Parameters
    ----------
    model
        A fitted model.
    ax
        Axes to draw on; new ones by default.

    Examples
    --------
    >>> from consilience.datasets import load_tickets
    >>> tickets = load_tickets()
    >>> axes = sources(LabelModel(tickets.space).fit(tickets.votes))
    >>> [label.get_text() for label in axes.get_yticklabels()][:2]
    ['keywords', 'judge_large']
    """
    columns, unit = model.sources_.columns, model.space.unit(model.source_model_.parameters)
    value, low, high = (np.array(columns[f"{unit.name}{end}"], float) for end in ("", "_low", "_high"))
    axes = _axes(ax, len(value))
    _intervals(axes, value, np.stack([value - low, high - value]), columns["source"])
    axes.set_xlabel(unit.name.replace("_", " "))
    return axes


def agreement(model: LabelModel, votes: Any, ax: Any = None) -> Any:
    """Draw the mean cost between the votes of each two sources, with a frame around dependent groups.

    Dark cells are sources that agree. The parameters are those of `confidence`.

    Examples
    --------
    >>> from consilience.datasets import load_products
    >>> products = load_products()
    >>> model = LabelModel(products.space, dependencies=[("shop_a", "shop_b")]).fit(products.votes)
    >>> axes = agreement(model, products.votes)
    >>> len(axes.patches)  # one frame, around the two shops
    1
    """
    found = relate(gather(model, votes))
    m = len(found.sources)
    axes = _axes(ax, m)
    image = axes.imshow(np.ma.masked_invalid(found.cost), cmap="Blues_r")
    for group in found.groups:
        low, size = min(group) - 0.5, max(group) - min(group) + 1
        patches = needed("matplotlib.patches", "A plot", "plot")
        axes.add_patch(patches.Rectangle((low, low), size, size, fill=False, color="tab:orange", linewidth=2))
    names = [_literal(name) for name in found.sources]
    axes.set_xticks(np.arange(m), names, rotation=90)
    axes.set_yticks(np.arange(m), names)
    axes.figure.colorbar(image, ax=axes, label="mean cost between votes")
    return axes


def confidence(model: LabelModel, votes: Any, ax: Any = None, *, bins: int = 20) -> Any:
    """Draw a histogram of the confidence of the labels; items without votes are left out.

    Parameters
    ----------
    model, votes
        As for `consilience.write_report`.
    ax
        Axes to draw on; new ones by default.
    bins
        Number of bars.

    Examples
    --------
    >>> votes = [[0, 0, 1], [1, 1, 1], [0, 0, 0], [1, 0, 1]] * 10
    >>> from consilience import Classes
    >>> axes = confidence(LabelModel(Classes(2)).fit(votes), votes)
    >>> int(sum(bar.get_height() for bar in axes.patches))
    40
    """
    axes = _axes(ax, 5)
    axes.hist(gather(model, votes).confidence, bins=bins, range=(0.0, 1.0))
    axes.set(xlim=(0.0, 1.0), xlabel="confidence", ylabel="items")
    return axes


def calibration(model: LabelModel, votes: Any, gold: Any, ax: Any = None, *, bins: int = 10) -> Any:
    """Draw the share of right labels against their stated confidence, with 95% intervals.

    Dots on the diagonal are calibrated; below it labels are less often right than stated. For label types without
    probabilities, "right" is the share of the chance cost that is removed. Each dot stands for the items of one bin.

    Parameters
    ----------
    model, votes, ax, bins
        As for `confidence`.
    gold
        Known labels of some items, as for `LabelModel.fit`. Use items the model did not learn from.

    Examples
    --------
    >>> from consilience.datasets import load_tickets
    >>> tickets = load_tickets()
    >>> model = LabelModel(tickets.space).fit(tickets.votes)
    >>> axes = calibration(model, tickets.votes, tickets.truth, bins=5)
    >>> axes.get_xlabel(), axes.get_ylabel()
    ('stated confidence', 'share right')
    """
    evidence, known = _with_known_labels(model, votes, gold)
    chosen = known.observed[evidence.rows, 0]
    rows = evidence.rows[chosen]
    belief = replace(evidence.belief, labels=evidence.best[chosen])
    right = share_right(evidence.space, evidence.space.law, belief, known.labels[rows, 0])
    stated = evidence.confidence[chosen]
    bin_of = np.minimum((stated * bins).astype(int), bins - 1)
    items = np.bincount(bin_of, minlength=bins)
    filled = items > 0
    items = items[filled]
    x, y = (np.bincount(bin_of, values, minlength=bins)[filled] / items for values in (stated, right))
    # Wilson's interval stays between 0 and 1, and has a positive width if every label of a bin is right.
    square = NORMAL_95**2
    center = (y + square / (2 * items)) / (1 + square / items)
    reach = NORMAL_95 * np.sqrt(y * (1 - y) / items + square / (4 * items**2)) / (1 + square / items)
    axes = _axes(ax, 8)
    axes.plot([0, 1], [0, 1], color="grey", linewidth=1, linestyle="--")
    axes.errorbar(x, y, yerr=np.stack([y - center + reach, center + reach - y]).clip(0.0), fmt="o", capsize=3)
    axes.set(xlim=(0.0, 1.02), ylim=(0.0, 1.02), xlabel="stated confidence", ylabel="share right")
    return axes


def compare(model: LabelModel, votes: Any, gold: Any, ax: Any = None) -> Any:
    """Draw the mean distance to known labels of the model's labels, of the plain vote, and of every source.

    Intervals are 95% intervals of the mean. A source is compared on the items it voted on. The parameters are those of
    `calibration`.

    Examples
    --------
    >>> from consilience.datasets import load_tickets
    >>> tickets = load_tickets()
    >>> axes = compare(LabelModel(tickets.space).fit(tickets.votes), tickets.votes, tickets.truth)
    >>> [label.get_text() for label in axes.get_yticklabels()][:2]
    ['labels of the model', 'plain vote']
    """
    evidence, _ = _with_known_labels(model, votes, gold)
    whose = zip(
        ["labels of the model", "plain vote", *evidence.votes.sources], evidence.distances_to_known(), strict=True
    )
    names, distances = zip(*((name, apart) for name, apart in whose if len(apart)), strict=True)
    means = [apart.mean() for apart in distances]
    errors = [apart.std() / np.sqrt(len(apart)) for apart in distances]
    axes = _axes(ax, len(names))
    order = [0, 1, *(2 + np.argsort(means[2:], kind="stable"))]
    values, spread = np.array(means)[order], NORMAL_95 * np.array(errors)[order]
    reach = np.stack([np.minimum(spread, values), spread])  # a distance is never negative
    _intervals(axes, values, reach, [names[place] for place in order])
    axes.axhline(1.5, color="grey", linewidth=1)
    axes.set_xlabel("mean distance to known labels")
    return axes


def _with_known_labels(model: LabelModel, votes: Any, gold: Any) -> tuple[Evidence, Any]:
    evidence = gather(model, votes, gold)
    if evidence.known is None or not evidence.known.observed[evidence.rows].any():
        raise InvalidVotesError(
            "gold has no label for any item with votes. Pass one label per item, None where it is unknown."
        )
    return evidence, evidence.known


def _intervals(axes: Any, values: FloatArray, reach: FloatArray, names: list[str]) -> None:
    """Draw values from top to bottom, with intervals of these lengths ``(2, n)`` below and above, if known."""
    places, known = np.arange(len(values)), np.isfinite(reach).all(axis=0)
    axes.errorbar(values[known], places[known], xerr=reach[:, known], fmt="o", capsize=3)
    axes.plot(values[~known], places[~known], "o", markerfacecolor="none", color="grey")
    axes.set_yticks(places, [_literal(name) for name in names])
    axes.invert_yaxis()
    axes.set_xlim(left=0.0)


def _axes(ax: Any, rows: int) -> Any:
    if ax is not None:
        return ax
    size = (6.0, 1.2 + 0.35 * rows)
    return needed("matplotlib.pyplot", "A plot", "plot").subplots(figsize=size, layout="constrained")[1]


def _literal(name: str) -> str:
    return name.replace("$", r"\$")  # matplotlib would read a formula

"""Pictures for papers and notebooks, drawn with matplotlib. Each function returns the axes it drew on."""

from __future__ import annotations

from typing import Any

import numpy as np

from consilience.exceptions import needed
from consilience.label_model import LabelModel

__all__ = ["confidence", "relations", "sources"]


def sources(model: LabelModel, ax: Any = None) -> Any:
    """Draw the expected cost of each source with its 95% interval, best source on top.

    A source about which nothing was learned (infinite standard error) is a hollow dot without an interval.
    """
    columns = model.sources_.columns
    axes = _axes(ax, 1.0 + 0.32 * len(model.sources_))
    cost = np.array(columns["expected_cost"], dtype=np.float64)
    error = np.array(columns["cost_standard_error"], dtype=np.float64)
    order = np.argsort(cost, kind="stable")
    names = [columns["source"][index] for index in order]
    cost, error = cost[order], error[order]
    places, known = np.arange(len(cost)), np.isfinite(error)
    spread = 1.96 * error[known]
    below = np.minimum(spread, cost[known])  # a cost is never negative
    axes.errorbar(cost[known], places[known], xerr=np.stack([below, spread]), fmt="o", capsize=3)
    axes.plot(cost[~known], places[~known], "o", markerfacecolor="none", color="grey")
    axes.set_yticks(places, [_literal(name) for name in names])
    axes.invert_yaxis()
    axes.set_xlim(left=0.0)
    axes.set_xlabel("expected cost")
    return axes


def confidence(model: LabelModel, votes: Any, ax: Any = None, *, bins: int = 20) -> Any:
    """Draw how many labels have which confidence; items nobody voted on are left out."""
    from consilience.report.evidence import gather

    axes = _axes(ax, 3.0)
    axes.hist(gather(model, votes).confidence, bins=bins, range=(0.0, 1.0))
    axes.set_xlim(0.0, 1.0)
    axes.set_xlabel("confidence")
    axes.set_ylabel("items")
    return axes


def relations(model: LabelModel, votes: Any, ax: Any = None) -> Any:
    """Draw the mean cost between the votes of any two sources; those of a dependent group are framed."""
    from consilience.report.evidence import gather, relate

    evidence = gather(model, votes)
    found = relate(evidence.space, evidence.model, evidence.encoded, evidence.best, evidence.voted)
    m = len(found.sources)
    axes = _axes(ax, 1.5 + 0.35 * m)
    image = axes.imshow(np.ma.masked_invalid(found.cost), cmap="Blues_r")
    for group in found.groups:
        low, size = min(group) - 0.5, max(group) - min(group) + 1
        patches = needed("matplotlib.patches", "A plot", "plot")
        axes.add_patch(patches.Rectangle((low, low), size, size, fill=False, color="tab:orange"))
    names = [_literal(name) for name in found.sources]
    axes.set_xticks(np.arange(m), names, rotation=90)
    axes.set_yticks(np.arange(m), names)
    axes.figure.colorbar(image, ax=axes, label="mean cost between votes")
    return axes


def _axes(ax: Any, height: float) -> Any:
    if ax is not None:
        return ax
    return needed("matplotlib.pyplot", "A plot", "plot").subplots(figsize=(6.0, height), layout="constrained")[1]


def _literal(name: str) -> str:
    return name.replace("$", r"\$")  # matplotlib would read a formula

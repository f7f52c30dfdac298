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
    order = np.argsort(columns["expected_cost"], kind="stable")
    cost, error = (np.array(columns[name], float)[order] for name in ("expected_cost", "cost_standard_error"))
    places, known = np.arange(len(cost)), np.isfinite(error)
    spread = 1.96 * error[known]
    below = np.minimum(spread, cost[known])  # a cost is never negative
    axes.errorbar(cost[known], places[known], xerr=np.stack([below, spread]), fmt="o", capsize=3)
    axes.plot(cost[~known], places[~known], "o", markerfacecolor="none", color="grey")
    axes.set_yticks(places, [_literal(columns["source"][index]) for index in order])
    axes.invert_yaxis()
    axes.set_xlim(left=0.0)
    axes.set_xlabel("expected cost")
    return axes


def confidence(model: LabelModel, votes: Any, ax: Any = None, *, bins: int = 20) -> Any:
    """Draw how many labels have which confidence; items nobody voted on are left out."""
    from consilience.report.evidence import gather

    axes = _axes(ax, 3.0)
    axes.hist(gather(model, votes).confidence, bins=bins, range=(0.0, 1.0))
    axes.set(xlim=(0.0, 1.0), xlabel="confidence", ylabel="items")
    return axes


def relations(model: LabelModel, votes: Any, ax: Any = None) -> Any:
    """Draw the mean cost between the votes of any two sources; those of a dependent group are framed."""
    from consilience.report.evidence import gather, relate

    found = relate(gather(model, votes))
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

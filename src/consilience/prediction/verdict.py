"""The verdict in two sentences: whom to trust, who adds nothing, how many labels are uncertain, what to do next."""

from __future__ import annotations

from collections.abc import Sequence

from consilience.arrays import FloatArray
from consilience.label_types.base import LabelSpace
from consilience.prediction.source_model import SourceModel
from consilience.tables.display import figure

#: Names in one clause before "and 5 more".
NAMED = 3


def uncertain_below(space: LabelSpace) -> float:
    """Return the confidence below which a label is called uncertain.

    Where confidence is the probability of being right, odds of less than four to one are uncertain. Elsewhere, a label
    is uncertain if the votes remove less than half of the chance cost.
    """
    return 0.5 if space.n_labels is None else 0.8


def verdict(model: SourceModel, space: LabelSpace, confidence: FloatArray | None = None) -> str:
    """Return the verdict on a model and on labels of this confidence (of the items with votes).

    Examples
    --------
    >>> from consilience import LabelModel
    >>> from consilience.datasets import load_tickets
    >>> tickets = load_tickets()
    >>> model = LabelModel(tickets.space).fit(tickets.votes)
    >>> print(verdict(model.source_model_, model.space))
    Trust keywords and judge_large (error rate 11% to 15%).
    """
    broken = [finding for finding in model.diagnostics if finding.severity == "error"]
    if broken:
        return f"Do not rely on these labels. {broken[0].message}"
    clauses = [_trusted(model, space)]
    for advice, one, several in (("drop", "adds nothing", "add nothing"), ("fix", "needs a check", "need a check")):
        named = [name for name in model.sources if model.advice.get(name) == advice]
        if named:
            clauses.append(f"{listing(named)} {one if len(named) == 1 else several}")
    text = "; ".join(filter(None, [clauses[0], *_leaning(model, space), *clauses[1:]]))
    return f"{text}. {_labels(space, confidence)}" if confidence is not None and len(confidence) else f"{text}."


def listing(names: Sequence[str]) -> str:
    """Return names as they stand in a sentence.

    >>> listing(["ann"]), listing(["ann", "bob"]), listing(["a", "b", "c", "d", "e"])
    ('ann', 'ann and bob', 'a, b, c and 2 more')
    """
    more = [f"{len(names) - NAMED} more"] if len(names) > NAMED + 1 else []
    shown = [*names[: NAMED if more else None], *more]
    return " and ".join(filter(None, [", ".join(shown[:-1]), shown[-1]]))


def _trusted(model: SourceModel, space: LabelSpace) -> str:
    """Return the clause about the best sources: those that may be as good as the best."""
    kept = [place for place in model.best_first() if model.votes[place] and model.sources[place] not in model.advice]
    if not kept:
        return "No source stands out"
    if len(model.sources) == 1:
        return f"Only {model.sources[0]} votes, so its quality cannot be estimated"
    unit = space.unit(model.parameters)
    low, high = unit.interval(model.summary.expected_cost, model.summary.cost_standard_error)
    best = kept[0]
    figures = unit.figure(model.summary.expected_cost)
    inside = (low <= figures[best]) & (figures[best] <= high) & (low[best] <= figures) & (figures <= high[best])
    peers = [place for place in kept if place == best or inside[place]]
    ends = sorted(figures[peers].tolist())
    shares = frozenset([unit.name] if unit.is_share else [])
    span = list(dict.fromkeys(figure(unit.name, end, shares) for end in (ends[0], ends[-1])))
    quality = f"({unit.name.replace('_', ' ')} {' to '.join(span)})"
    if len(peers) == len(kept) > 1:
        others = " other" if len(kept) < len(model.sources) else ""
        return f"The votes do not show that any{others} source is better than another {quality}"
    return f"Trust {listing([model.sources[place] for place in peers])} {quality}"


def _leaning(model: SourceModel, space: LabelSpace) -> list[str]:
    """Return the clause about judges whose bias is larger than the scatter of their votes."""
    bias = model.summary.columns.get("bias")
    if bias is None:
        return []
    error = space.unit(model.parameters).figure(model.summary.expected_cost)
    off = []
    for place in model.best_first():
        level = float(bias[place])
        if abs(level) > error[place] and model.sources[place] not in model.advice:
            off.append(f"{model.sources[place]} is {'lenient' if level > 0 else 'harsh'} by {figure('', abs(level))}")
    return [f"{listing(off)}, which is corrected"] if off else []


def _labels(space: LabelSpace, confidence: FloatArray) -> str:
    least = uncertain_below(space)
    doubtful = int((confidence < least).sum())
    if doubtful == 0:
        return (
            "No label is uncertain." if len(confidence) > 1 else f"The label has a confidence of {confidence[0]:.2f}."
        )
    are = f"{doubtful:,} of {len(confidence):,} labels {'is' if doubtful == 1 else 'are'} uncertain"
    why = f"less than {least:.0%} sure" if space.n_labels is not None else f"confidence below {least:g}"
    return f"{are} ({why}): check {'it' if doubtful == 1 else 'those'} first."

"""The page: sections put into the template, under a policy by which browsers load nothing and run no other script."""

from __future__ import annotations

from base64 import b64encode
from functools import cache, partial
from hashlib import sha256
from importlib.resources import files
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from consilience.arrays import Batch, FloatArray, IntArray
from consilience.label_model import LabelModel
from consilience.report.charts import NORMAL_95, Scale, bar, element, heat_map, histogram, interval, joined, source_map
from consilience.report.evidence import EQUAL, Evidence, contested_items, gather, relate
from consilience.report.labels import chip, item_picture, label_html
from consilience.report.words import wording
from consilience.tables.display import Cell, findings_fragment, table_fragment

TITLE = "Labels from many sources"
#: Rows of the table of sources; a page with more of them is slow to open.
MAX_SOURCES = 300
#: Fields of a record whose cost and weight have columns of their own.
MAX_FIELDS = 6
#: Items shown with all their votes: at most so many, and only until their pieces of the page have so many letters.
MAX_ITEMS, MAX_LETTERS = 50, 350_000
_SERIOUS = {"info": "note", "warning": "warning", "error": "error"}


def page_of(model: LabelModel, votes: Any, gold: Any = None, title: str | None = None) -> str:
    """Return the report as the text of one HTML page."""
    evidence = gather(model, votes, gold)
    folder = files("consilience.report") / "templates"
    style, script = ((folder / name).read_text(encoding="utf-8") for name in ("style.css", "script.js"))
    fingerprint = b64encode(sha256(script.encode()).digest()).decode()
    page = _environment().get_template("page.html")
    return page.render(
        title=TITLE if title is None else title,
        style=Markup(style),
        script=Markup(script),
        # User text is escaped; should that ever fail, the browser still runs nothing but this one script.
        policy=f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{fingerprint}'",
        model=evidence.model,
        overview=overview(evidence),
        sources=sources(evidence),
        relations=relations(evidence),
        items=items(evidence),
        comparison=compare(evidence),
    )


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("consilience.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def overview(evidence: Evidence) -> dict[str, Any]:
    """Return what was done, in words and numbers."""
    label, cost = wording(evidence.space)
    votes = int(evidence.encoded.observed.sum())
    return {
        "n_items": len(evidence.votes),
        "n_labelled": len(evidence.rows),
        "n_sources": evidence.votes.n_sources,
        "n_votes": votes,
        "share": votes / max(evidence.encoded.observed.size, 1),
        "label": label,
        "cost": cost,
        "confidence": float(evidence.confidence.mean()) if len(evidence.rows) else 0.0,
        "n_serious": sum(finding.severity != "info" for finding in evidence.model.diagnostics),
        "findings": Markup(findings_fragment(evidence.model.diagnostics, NEXT_STEPS)),
    }


def sources(evidence: Evidence) -> dict[str, Any]:
    """Return the table of sources, the first ones where there are very many."""
    model, count = evidence.model, evidence.encoded.observed.sum(axis=0)
    chosen = np.sort(np.argsort(-count, kind="stable")[:MAX_SOURCES])
    cost, error, weight = model.expected_cost, model.summary.cost_standard_error, model.weight
    reach = np.where(np.isfinite(error), cost + NORMAL_95 * error, cost)
    scale = Scale.around(np.append(reach, 0.0), 6.0, 114.0)
    flags = _flags(evidence)
    loudest = max(float(np.abs(weight).max(initial=0.0)), EQUAL)
    total, voted = np.nansum(evidence.apart, axis=0), np.isfinite(evidence.apart).sum(axis=0)
    apart = np.where(voted > 0, total / np.maximum(voted, 1), np.nan)

    def row(s: int) -> dict[str, Cell]:
        mine = flags.get(model.sources[s], [])
        sign = "bar" if weight[s] >= 0 else "bad"
        return {
            "source": Cell.text(model.sources[s]),
            "flags": Cell(str(joined(mine)), f"{9 - min(len(mine), 9)}"),  # those with most flags come first
            "votes": Cell.text(f"{count[s]:,}", int(count[s])),
            "coverage": _share(count[s] / max(len(evidence.votes), 1)),
            "expected cost": _cell(cost[s], interval(cost[s], error[s], scale)),
            "95% interval": _interval(cost[s], error[s]),
            "weight": _cell(weight[s], bar(abs(weight[s]) / loudest, sign)),
            "distance to labels": _cell(apart[s]),
            **{
                f"{name}: {what}": _cell(values[s])
                for name, part in list(model.summary.parts.items())[:MAX_FIELDS]
                for what, values in (("cost", part.expected_cost), ("weight", part.weight))
            },
        }

    rows = [row(s) for s in chosen]
    marked = [place for place, s in enumerate(chosen) if model.sources[s] in flags]
    names = [name for name in rows[0] if marked or name != "flags"]
    table = table_fragment([(name, [row[name] for row in rows]) for name in names], name="sources-table", marked=marked)
    return {"table": Markup(table), "n_shown": len(chosen), "any_flag": bool(marked)}


def _flags(evidence: Evidence) -> dict[str, list[Markup]]:
    """Return what was found about each source, as chips; not what is about all of them alike."""
    flags: dict[str, list[Markup]] = {}
    for finding in evidence.model.diagnostics:
        if finding.code == "method" or len(finding.sources) == len(evidence.model.sources) > 2:
            continue
        for source in finding.sources:
            shown = f"{finding.part}: {finding.code}" if finding.part else finding.code
            flags.setdefault(source, []).append(chip(shown, css=_SERIOUS[finding.severity], hover=finding.message))
    return flags


def relations(evidence: Evidence) -> dict[str, Any]:
    """Return the heat map and the map of sources; nothing where fewer than two vote."""
    found = relate(evidence)
    if len(found.sources) < 2:
        return {"n_shown": len(found.sources)}
    return {
        "n_shown": len(found.sources),
        "heat_map": heat_map(found),
        "map": source_map(found),
        "numbered": found.crowded,
        "groups": [", ".join(found.sources[index] for index in group) for group in found.groups],
    }


def items(evidence: Evidence) -> dict[str, Any]:
    """Return the histogram of confidence and the most contested items."""
    space, template = evidence.space, _environment().get_template("item.html")
    shown: list[Markup] = []
    letters = 0
    for item in contested_items(evidence, MAX_ITEMS):
        article = template.render(
            item=item,
            show=partial(label_html, space),
            figure=_figure,
            meter=bar(item.confidence),
            picture=item_picture(space, item),
            equal=EQUAL,
        )
        letters += len(article)
        if shown and letters > MAX_LETTERS:
            break
        shown.append(Markup(article))
    return {
        "histogram": histogram(evidence.confidence),
        "contested": shown,
        "low": float((evidence.confidence < 0.5).mean()) if len(evidence.rows) else 0.0,
    }


def compare(evidence: Evidence) -> dict[str, Any]:
    """Return how far the labels are from those of a plain vote, and everybody from the known labels."""
    space, encoded, rows = evidence.space, evidence.encoded, evidence.rows
    moved = space.distance(evidence.best, evidence.plain) if len(rows) else np.zeros(0)
    result: dict[str, Any] = {
        "same_method": evidence.model.method == "majority",
        "continuous": space.continuous,
        "n_moved": int((moved > EQUAL).sum()),
        "moved": float((moved > EQUAL).mean()) if len(moved) else 0.0,
        "distance": _figure(float(moved.mean())) if len(moved) else "0",
    }
    if evidence.known is None:
        return result
    is_known, truth = evidence.known.observed[:, 0], evidence.known.labels[:, 0]

    def to_truth(name: str, labels: Batch, rows: IntArray) -> dict[str, Cell]:
        known = is_known[rows]
        apart: FloatArray = space.distance(labels[known], truth[rows[known]]) if known.any() else np.zeros(0)
        cells = {
            "whose labels": Cell.text(name),
            "items compared": Cell.text(f"{len(apart):,}", len(apart)),
            "mean distance to known label": _cell(apart.mean() if len(apart) else np.nan),
        }
        right = {} if space.continuous else {"exactly right": _share((apart <= EQUAL).sum() / max(len(apart), 1))}
        return cells | right

    compared = [to_truth("labels of this model", evidence.best, rows), to_truth("plain vote", evidence.plain, rows)]
    for source in np.argsort(-encoded.observed.sum(axis=0), kind="stable")[:MAX_SOURCES]:
        seen = np.flatnonzero(encoded.observed[:, source])
        compared.append(to_truth(evidence.model.sources[source], encoded.labels[seen, source], seen))
    columns = [(name, [row[name] for row in compared]) for name in compared[0]]
    result["table"] = Markup(table_fragment(columns, name="gold-table", marked=[0]))
    result["n_known"] = int(is_known.sum())
    return result


def _cell(value: float, drawn: Markup | None = None) -> Cell:
    """Return a number, with a picture beside it if there is one."""
    key = float(value) if np.isfinite(value) else 1e308
    if drawn is None:
        return Cell.text(_figure(value), key)
    return Cell(str(element("span", _figure(value), class_="value") + drawn), key)


def _share(share: float) -> Cell:
    return Cell(str(element("span", f"{share:.0%}", class_="value") + bar(share)), float(share))


def _interval(cost: float, error: float) -> Cell:
    if not np.isfinite(error):
        return Cell.text("not known", 1e308)
    low, high = max(float(cost - NORMAL_95 * error), 0.0), float(cost + NORMAL_95 * error)
    return Cell.text(f"{_figure(low)} to {_figure(high)}", high - low)


def _figure(value: float) -> str:
    return f"{value:.3g}" if np.isfinite(value) else ("-" if np.isnan(value) else "∞")


NEXT_STEPS = {
    "method": "",
    "too-few-sources": "Next: add sources, remove a dependency, or pass gold= with a few known labels.",
    "weights-unsupported": "Next: nothing, or pass gold= with a few known labels.",
    "no-signal": "Next: check that a row means the same item for all sources; add better sources.",
    "never-votes": "Next: leave the source out, or check how its abstentions are coded.",
    "constant-source": "Next: leave it out; as a labeling function for one class it is fine.",
    "low-overlap": "Next: collect votes on common items, or pass gold=.",
    "adversarial-source": "Next: check how its labels are coded, or leave it out.",
    "dependent-pair": "Next: nothing; say dependencies='none' if they are independent.",
    "competing-groups": "Next: pass gold= with about ten known labels.",
    "poor-fit": "Next: check 30 items by hand and pass them as gold=.",
    "calibrated": "",
    "labeling-functions": "Next: pass gold= with 30 known labels.",
    "judges-not-compared": "Next: let several judges judge the same pairs.",
    "scale-not-identified": "Next: give mean= (and for Scores variance=) to the label type, or pass gold=.",
    "heavy-tails": "Next: look at the far votes; outliers were allowed for.",
    "bent-scales": "Next: nothing; say Scores(gauge='linear') to take votes as they are.",
    "disconnected-comparisons": "Next: collect comparisons between the parts.",
    "never-compared": "Next: collect comparisons with these items, or leave them out.",
    "order-not-random": "Next: show items in random order, or every pair in both orders.",
    "position-bias": "Next: nothing; or show every pair in both orders.",
    "unparsable-replies": "Next: look at the replies if they are many.",
    "repeated-runs": "",
    "judges-not-identified": "Next: collect more comparisons before you trust the qualities.",
    "disagrees-with-plain-vote": "Next: compare with predict_baseline(votes), and pass gold= with a known ranking.",
    "copied-source": "Next: if one copies the other, pass dependencies= with the pair.",
    "items-with-one-vote": "Next: nothing, or collect more votes.",
    "items-without-votes": "Next: collect votes on them, or predict(votes, fill='prior') where labels are finite.",
    "unused-labels": "Next: nothing, or leave these labels out of the space.",
    "not-converged": "Next: use the labels; more items would settle them.",
}

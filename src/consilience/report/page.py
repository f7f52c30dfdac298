"""The page: sections put into the template, under a policy by which browsers load nothing and run no other script."""

from __future__ import annotations

from base64 import b64encode
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from consilience.arrays import Batch, FloatArray, IntArray
from consilience.label_model import LabelModel
from consilience.report.charts import NORMAL_95, Scale, bar, element, heat_map, histogram, interval, joined, source_map
from consilience.report.evidence import EQUAL, Evidence, Item, contested_items, gather, relate
from consilience.report.labels import chip, item_picture, label_html
from consilience.report.words import wording
from consilience.tables.display import Cell, findings_fragment, table_fragment

__all__ = ["NEXT_STEPS", "page_of"]

TITLE = "Labels from many sources"


def page_of(model: LabelModel, votes: Any, gold: Any = None, title: str | None = None) -> str:
    """Return the report as the text of one HTML page."""
    evidence = gather(model, votes, gold)
    style, script = _own_file("style.css"), _own_file("script.js")
    page: str = (
        _environment()
        .get_template("page.html")
        .render(
            title=TITLE if title is None else title,
            style=Markup(style),
            script=Markup(script),
            # User text is escaped; should that ever fail, the browser still runs nothing but this one script.
            policy=f"default-src 'none'; style-src 'unsafe-inline'; script-src '{_fingerprint(script)}'",
            overview=overview(evidence),
            sources=sources(evidence),
            relations=relations(evidence),
            items=items(evidence),
            comparison=compare(evidence),
        )
    )
    return page


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("consilience.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _own_file(name: str) -> str:
    return (files("consilience.report") / "templates" / name).read_text(encoding="utf-8")


def _fingerprint(script: str) -> str:
    return f"sha256-{b64encode(sha256(script.encode()).digest()).decode()}"


#: Rows of the table of sources; a page with more of them is slow to open.
MAX_SOURCES = 300
#: Fields of a record whose cost and weight have columns of their own.
MAX_FIELDS = 6
#: Items shown with all their votes: at most so many, and only until their pieces of the page have so many letters.
MAX_ITEMS, MAX_LETTERS = 50, 350_000
_SERIOUS = {"info": "note", "warning": "warning", "error": "error"}


def overview(evidence: Evidence) -> dict[str, Any]:
    """Return what was done, in words and numbers."""
    words = wording(evidence.space)
    votes = int(evidence.encoded.observed.sum())
    serious = [finding for finding in evidence.model.diagnostics if finding.severity != "info"]
    return {
        "n_items": len(evidence.votes),
        "n_labelled": len(evidence.rows),
        "n_sources": evidence.votes.n_sources,
        "n_votes": votes,
        "share": votes / max(evidence.encoded.observed.size, 1),
        "label": words.label,
        "cost": words.cost,
        "method": evidence.model.method,
        "reason": evidence.model.reason,
        "dependencies": [" and ".join(pair) for pair in evidence.model.dependencies[:12]],
        "n_dependencies": len(evidence.model.dependencies),
        "confidence": float(evidence.confidence.mean()) if len(evidence.rows) else 0.0,
        "n_serious": len(serious),
        "n_fitted": evidence.model.n_items,
        "findings": Markup(findings_fragment(evidence.model.diagnostics, NEXT_STEPS)),
    }


def sources(evidence: Evidence) -> dict[str, Any]:
    """Return the table of sources, the first ones where there are very many."""
    model, count = evidence.model, evidence.encoded.observed.sum(axis=0)
    chosen = np.sort(np.argsort(-count, kind="stable")[:MAX_SOURCES])
    cost, error = model.expected_cost, model.summary.cost_standard_error
    reach = np.where(np.isfinite(error), cost + NORMAL_95 * error, cost)
    scale = Scale.around(np.append(reach[np.isfinite(reach)], 0.0), 6.0, 114.0)
    flags = _flags(evidence)
    loudest = max(float(np.abs(model.weight).max(initial=0.0)), EQUAL)
    total, voted = np.nansum(evidence.apart, axis=0), np.isfinite(evidence.apart).sum(axis=0)
    apart = np.where(voted > 0, total / np.maximum(voted, 1), np.nan)
    columns: dict[str, list[Cell]] = {
        "source": [Cell.text(model.sources[s]) for s in chosen],
        "flags": [_flag_cell(flags.get(model.sources[s], [])) for s in chosen],
        "votes": [Cell.text(f"{count[s]:,}", int(count[s])) for s in chosen],
        "coverage": [_share(count[s] / max(len(evidence.votes), 1)) for s in chosen],
        "expected cost": [_with_picture(cost[s], interval(cost[s], error[s], scale)) for s in chosen],
        "95% interval": [_interval(cost[s], error[s]) for s in chosen],
        "weight": [
            _with_picture(weight, bar(abs(weight) / loudest, "bar" if weight >= 0 else "bad"))
            for weight in model.weight[chosen].tolist()
        ],
        "distance to labels": [_cell(apart[s]) for s in chosen],
    }
    for name, part in list(model.summary.parts.items())[:MAX_FIELDS]:
        columns[f"{name}: cost"] = [_cell(part.expected_cost[s]) for s in chosen]
        columns[f"{name}: weight"] = [_cell(part.weight[s]) for s in chosen]
    marked = [place for place, s in enumerate(chosen) if model.sources[s] in flags]
    if not marked:
        del columns["flags"]
    table = table_fragment(columns.items(), name="sources-table", marked=marked)
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


def _flag_cell(flags: list[Markup]) -> Cell:
    return Cell(str(joined(flags)), f"{9 - min(len(flags), 9)}")  # those with most flags come first


def relations(evidence: Evidence) -> dict[str, Any]:
    """Return the heat map and the map of sources; nothing where fewer than two vote."""
    found = relate(evidence.space, evidence.model, evidence.encoded, evidence.best, evidence.voted)
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
    shown: list[dict[str, Any]] = []
    letters = 0
    for item in contested_items(evidence, MAX_ITEMS):
        card = _card(evidence, item)
        letters += _letters(card)
        if shown and letters > MAX_LETTERS:
            break
        shown.append(card)
    return {
        "histogram": histogram(evidence.confidence),
        "contested": shown,
        "low": float((evidence.confidence < 0.5).mean()) if len(evidence.rows) else 0.0,
    }


def _letters(card: dict[str, Any]) -> int:
    """Return about how many letters of the page an item takes."""
    pieces = ("name", "label", "picture", "plain", "known")
    rows = sum(len(escape(vote["source"])) + len(vote["label"]) + 150 for vote in card["votes"])
    return rows + 600 + sum(len(escape(card[piece] or "")) for piece in pieces)


def _card(evidence: Evidence, item: Item) -> dict[str, Any]:
    space = evidence.space
    return {
        "name": item.name,
        "label": label_html(space, item.label),
        "confidence": item.confidence,
        "meter": bar(item.confidence),
        "picture": item_picture(space, item),
        "plain": None if item.plain is None else label_html(space, item.plain, item.label),
        "known": None if item.known is None else label_html(space, item.known, item.label),
        "unlisted": item.unlisted,
        "votes": [
            {
                "number": vote.number,
                "source": vote.source,
                "weight": _figure(vote.weight),
                "label": label_html(space, vote.label, item.label),
                "distance": _figure(vote.distance),
                "agrees": vote.distance <= EQUAL,
            }
            for vote in item.votes
        ],
    }


def compare(evidence: Evidence) -> dict[str, Any]:
    """Return how far the labels are from those of a plain vote, and everybody from the known labels."""
    space = evidence.space
    moved = space.distance(evidence.best, evidence.plain) if len(evidence.rows) else np.zeros(0)
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

    def to_truth(labels: Batch, rows: IntArray) -> FloatArray:
        known = is_known[rows]
        return space.distance(labels[known], truth[rows[known]]) if known.any() else np.zeros(0)

    compared = [
        ("labels of this model", to_truth(evidence.best, evidence.rows)),
        ("plain vote", to_truth(evidence.plain, evidence.rows)),
    ]
    for source in np.argsort(-evidence.encoded.observed.sum(axis=0), kind="stable")[:MAX_SOURCES]:
        seen = np.flatnonzero(evidence.encoded.observed[:, source])
        compared.append((evidence.model.sources[source], to_truth(evidence.encoded.labels[seen, source], seen)))
    result["table"] = Markup(_gold_table(compared, space.continuous))
    result["n_known"] = int(is_known.sum())
    return result


def _gold_table(compared: list[tuple[str, FloatArray]], continuous: bool) -> str:
    columns: dict[str, list[Cell]] = {
        "whose labels": [Cell.text(name) for name, _ in compared],
        "items compared": [Cell.text(f"{len(apart):,}", len(apart)) for _, apart in compared],
        "mean distance to known label": [_cell(apart.mean() if len(apart) else np.nan) for _, apart in compared],
    }
    if not continuous:
        right = [float((apart <= EQUAL).mean()) if len(apart) else 0.0 for _, apart in compared]
        columns["exactly right"] = [_share(share) for share in right]
    return table_fragment(columns.items(), name="gold-table", marked=[0])


def _cell(value: float) -> Cell:
    return Cell.text(_figure(value), _key(value))


def _with_picture(value: float, drawn: Markup) -> Cell:
    return Cell(str(element("span", _figure(value), class_="value") + drawn), _key(value))


def _share(share: float) -> Cell:
    return Cell(str(element("span", f"{share:.0%}", class_="value") + bar(share)), float(share))


def _interval(cost: float, error: float) -> Cell:
    if not np.isfinite(error):
        return Cell.text("not known", 1e308)
    low, high = max(float(cost - NORMAL_95 * error), 0.0), float(cost + NORMAL_95 * error)
    return Cell.text(f"{_figure(low)} to {_figure(high)}", high - low)


def _figure(value: float) -> str:
    return f"{value:.3g}" if np.isfinite(value) else ("-" if np.isnan(value) else "∞")


def _key(value: float) -> float:
    return float(value) if np.isfinite(value) else 1e308


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

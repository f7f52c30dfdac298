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

from consilience.arrays import FloatArray
from consilience.label_model import LabelModel
from consilience.report.charts import NORMAL_95, Scale, bar, element, heat_map, histogram, interval, joined, source_map
from consilience.report.evidence import EQUAL, Evidence, Item, contested_items, gather, relate
from consilience.report.labels import chip, item_picture, label_html
from consilience.report.words import wording
from consilience.tables.display import Cell, findings_fragment, table_fragment

__all__ = ["NEXT_STEPS", "compare", "items", "overview", "page_of", "relations", "sources"]


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
    apart = _mean_distance(evidence)
    columns: dict[str, list[Cell]] = {
        "source": [Cell.text(model.sources[s]) for s in chosen],
        "flags": [_flag_cell(flags.get(model.sources[s], [])) for s in chosen],
        "votes": [Cell.text(f"{count[s]:,}", int(count[s])) for s in chosen],
        "coverage": [_share(count[s] / max(len(evidence.votes), 1)) for s in chosen],
        "expected cost": [
            Cell(
                str(element("span", _figure(cost[s]), class_="value") + interval(cost[s], error[s], scale)),
                _key(cost[s]),
            )
            for s in chosen
        ],
        "95% interval": [_interval(cost[s], error[s]) for s in chosen],
        "weight": [
            Cell(
                str(element("span", _figure(w), class_="value") + bar(abs(w) / loudest, "bar" if w >= 0 else "bad")),
                _key(w),
            )
            for w in model.weight[chosen].tolist()
        ],
        "distance to labels": [Cell.text(_figure(apart[s]), _key(apart[s])) for s in chosen],
    }
    for name, values in _fields(evidence).items():
        columns[name] = [Cell.text(_figure(values[s]), _key(values[s])) for s in chosen]
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


def _fields(evidence: Evidence) -> dict[str, FloatArray]:
    parts = evidence.model.summary.parts
    return {f"{name}: {what}": getattr(parts[name], kind) for name in list(parts)[:6] for what, kind in _FIELD_COLUMNS}


_FIELD_COLUMNS = (("cost", "expected_cost"), ("weight", "weight"))


def _mean_distance(evidence: Evidence) -> FloatArray:
    there = np.isfinite(evidence.apart)
    total = np.where(there, evidence.apart, 0.0).sum(axis=0)
    return np.where(there.any(axis=0), total / np.maximum(there.sum(axis=0), 1), np.nan)


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
    is_known = evidence.known.observed[:, 0]
    rows = evidence.rows[is_known[evidence.rows]]
    place = evidence.position[rows]
    truth = evidence.known.labels[:, 0]
    contestants: list[tuple[str, FloatArray]] = [("labels of this model", np.zeros(0)), ("plain vote", np.zeros(0))]
    if len(rows):
        contestants[0] = (contestants[0][0], space.distance(evidence.best[place], truth[rows]))
        contestants[1] = (contestants[1][0], space.distance(evidence.plain[place], truth[rows]))
    for source in np.argsort(-evidence.encoded.observed.sum(axis=0), kind="stable")[:MAX_SOURCES]:
        seen = np.flatnonzero(is_known & evidence.encoded.observed[:, source])
        apart = space.distance(evidence.encoded.labels[seen, source], truth[seen]) if len(seen) else np.zeros(0)
        contestants.append((evidence.model.sources[source], apart))
    result["table"] = Markup(_gold_table(contestants, space.continuous))
    result["n_known"] = int(is_known.sum())
    return result


def _gold_table(contestants: list[tuple[str, FloatArray]], continuous: bool) -> str:
    columns: dict[str, list[Cell]] = {
        "whose labels": [Cell.text(name) for name, _ in contestants],
        "items compared": [Cell.text(f"{len(apart):,}", len(apart)) for _, apart in contestants],
        "mean distance to known label": [_mean_cell(apart) for _, apart in contestants],
    }
    if not continuous:
        columns["exactly right"] = [
            _share(float((apart <= EQUAL).mean()) if len(apart) else 0.0) for _, apart in contestants
        ]
    return table_fragment(columns.items(), name="gold-table", marked=[0])


def _mean_cell(apart: FloatArray) -> Cell:
    mean = float(apart.mean()) if len(apart) else float("nan")
    return Cell.text(_figure(mean), _key(mean))


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

"""The page: sections put into the template, under a policy by which browsers load nothing and run no other script."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date
from functools import cache, partial
from hashlib import sha256
from importlib.metadata import version
from importlib.resources import files
from typing import Any
from urllib.parse import quote

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

import consilience.report.charts as draw
from consilience.arrays import FloatArray
from consilience.label_model import LabelModel
from consilience.label_types import Preferences, Scores
from consilience.prediction.verdict import uncertain_below, verdict
from consilience.preferences import leader, standings
from consilience.report.charts import Scale, element
from consilience.report.evidence import EQUAL, Evidence, Item, contested_items, gather, relate
from consilience.report.labels import chip, describe_label, item_picture, label_html, plain_text
from consilience.tables.display import Cell, figure, findings_fragment, table_fragment
from consilience.tables.files import csv_text

TITLE = "Labels from many sources"
#: Rows of the table of sources. A page with more rows is slow to open.
MAX_SOURCES = 250
#: Fields of a record whose cost and weight have columns of their own.
MAX_FIELDS = 6
#: Largest number of items shown with all their votes, and largest total number of characters of these items.
MAX_ITEMS, MAX_LETTERS = 50, 350_000
#: Number of them that are visible at first.
FIRST_ITEMS = 10
#: Number of sources with a plot of their votes, of dots for each, and of labels in a confusion matrix.
MAX_HABITS, MAX_POINTS, MAX_CONFUSED = 12, 150, 8
_ADVICE = {"keep": "good", "fix": "warning", "drop": "error"}
_SERIOUS = {"info": "note", "warning": "warning", "error": "error"}


def page_of(
    model: LabelModel,
    votes: Any,
    gold: Any = None,
    title: str | None = None,
    *,
    show: Any = None,
    command: str = "",
    words: Callable[[str], str] = str,
) -> str:
    """Return the report as the text of one HTML page; `words` puts messages in the words of the caller."""
    evidence = gather(model, votes, gold, show)
    folder = files("consilience.report") / "templates"
    style, script = ((folder / name).read_text(encoding="utf-8") for name in ("style.css", "script.js"))
    fingerprint = b64encode(sha256(script.encode()).digest()).decode()
    contested = contested_items(evidence, MAX_ITEMS)
    ranked = _ranked(model, evidence)
    page = _environment().get_template("page.html")
    return page.render(
        title=TITLE if title is None else title,
        style=Markup(style),
        script=Markup(script),
        # User text is escaped. If that ever failed, the browser would still run only this script.
        policy=f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{fingerprint}'",
        model=evidence.model,
        overview=overview(evidence, words, ranked),
        leaderboard=leaderboard(ranked),
        sources=sources(model, evidence),
        habits=habits(evidence),
        relations=relations(evidence),
        items=items(evidence, contested),
        comparison=compare(evidence),
        downloads=[
            ("sources.csv", _download(model.sources_.columns)),
            ("contested.csv", _download(_contested_columns(contested)))
            if ranked is None
            else ("leaderboard.csv", _download(ranked.to_pydict())),
        ],
        footer={
            "version": version("consilience"),
            "date": date.today().isoformat(),
            "command": command,
            "seed": 0 if model.random_state is None else model.random_state,
        },
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


def overview(evidence: Evidence, words: Callable[[str], str], ranked: Any = None) -> dict[str, Any]:
    """Return what to make of the labels, and what was done, in words and numbers; `ranked` is a leaderboard."""
    votes = int(evidence.encoded.observed.sum())
    findings = [replace(one, message=words(one.message)) for one in evidence.model.diagnostics if one.code != "method"]
    unit = evidence.space.unit(evidence.model.parameters)
    said = verdict(evidence.model, evidence.space, evidence.confidence if ranked is None else None)
    return {
        "verdict": words(said if ranked is None else f"{leader(ranked)} {said}"),
        "broken": any(finding.severity == "error" for finding in findings),
        "n_items": len(evidence.votes),
        "n_labelled": len(evidence.rows),
        "n_sources": evidence.votes.n_sources,
        "n_votes": votes,
        "compared": ranked is not None and int(sum(ranked.column("comparisons").to_pylist())) // 2,
        "share": votes / max(evidence.encoded.observed.size, 1),
        "label": describe_label(evidence.space),
        "unit": unit.name.replace("_", " "),
        "meaning": unit.meaning,
        "confidence": float(evidence.confidence.mean()) if len(evidence.rows) else 0.0,
        "n_uncertain": int((evidence.confidence < uncertain_below(evidence.space)).sum()),
        "findings": Markup(findings_fragment(findings)),
    }


def _ranked(model: LabelModel, evidence: Evidence) -> Any:
    """Return the standings where all comparisons are about one row; None otherwise."""
    if not isinstance(evidence.space, Preferences) or len(evidence.votes) != 1 or len(evidence.rows) != 1:
        return None
    return standings(model, evidence.votes)


def leaderboard(ranked: Any) -> Markup | None:
    """Return the table of candidates; None where there are no standings."""
    if ranked is None:
        return None
    rows = ranked.to_pylist()
    ends = np.array([[row["score_low"], row["score_high"]] for row in rows])
    scale = Scale.around(ends, 6.0, 154.0)
    cells = {
        "rank": [Cell.text(f"{row['rank']}", row["rank"]) for row in rows],
        "95% ranks": [Cell.text(f"{row['rank_low']}-{row['rank_high']}", row["rank_low"]) for row in rows],
        "candidate": [Cell.text(str(row["candidate"])) for row in rows],
        "score": [
            _with(
                f"{row['score']:+.2f}",
                draw.interval(row["score"], row["score_low"], row["score_high"], scale),
                row["score"],
            )
            for row in rows
        ],
        "win rate": [_share(row["win_rate"]) for row in rows],
        "comparisons": [Cell.text(f"{row['comparisons']:,}", row["comparisons"]) for row in rows],
        "rank if all judges were equal": [Cell.text(str(row["baseline_rank"]), row["baseline_rank"]) for row in rows],
    }
    return Markup(table_fragment(cells.items(), name="leaderboard-table"))


def sources(fitted: LabelModel, evidence: Evidence) -> dict[str, Any]:
    """Return the table of sources, best first; those with the most votes where there are very many."""
    model, count, table = evidence.model, evidence.encoded.observed.sum(axis=0), fitted.sources_
    listed = set(np.argsort(-count, kind="stable")[:MAX_SOURCES].tolist())
    order = [(place, s) for place, s in enumerate(model.best_first()) if s in listed]
    unit, weight = evidence.space.unit(model.parameters), model.summary.weight
    ends = np.array([table.columns[f"{unit.name}{end}"] for end in ("", "_low", "_high")], dtype=np.float64)
    scale = Scale.around(np.append(ends.ravel(), 0.0), 6.0, 114.0)
    texts = replace(table, optional=frozenset()).shown()
    flags = _flags(evidence)
    loudest = max(float(np.abs(weight).max(initial=0.0)), EQUAL)
    fields = [
        name for part in list(model.summary.parts)[:MAX_FIELDS] for name in table.columns if name.startswith(f"{part} ")
    ]
    constant = {name for name in table.optional if len({*map(str, table.columns[name])}) == 1 < len(order)}
    extra = [*model.summary.columns, *(name for name in fields if not name.endswith(("_low", "_high", "_error")))]

    def row(place: int, s: int) -> dict[str, Cell]:
        mine, name = flags.get(model.sources[s], []), model.sources[s]
        sign = "bar" if weight[s] >= 0 else "bad"
        advice = model.advice.get(name, "keep")
        value, low, high = ends[:, place].tolist()
        whisker = element("span", texts[unit.name][place], class_="value") + draw.interval(value, low, high, scale)
        return {
            "source": Cell(str(element("span", name, id=anchor("source", name))), name),
            "advice": Cell(str(chip(advice, css=_ADVICE[advice])), ("drop", "fix", "keep").index(advice)),
            unit.name: Cell(str(whisker), _key(value)),
            **{title: Cell.text(texts[title][place], _key(table.columns[title][place])) for title in extra},
            "weight": _with(texts["weight"][place], draw.bar(abs(weight[s]) / loudest, sign), float(weight[s])),
            "votes": Cell.text(f"{count[s]:,}", int(count[s])),
            "coverage": _share(count[s] / max(len(evidence.votes), 1)),
            "findings": Cell(str(draw.joined(mine)), f"{9 - min(len(mine), 9)}"),  # those with most findings come first
        }

    rows = [row(place, s) for place, s in order]
    marked = [at for at, (_, s) in enumerate(order) if model.sources[s] in flags]
    names = [name for name in rows[0] if (marked or name != "findings") and (name == "advice" or name not in constant)]
    columns = [(name.replace("_", " "), [row[name] for row in rows]) for name in names]
    return {
        "table": Markup(table_fragment(columns, name="sources-table", marked=marked)),
        "n_shown": len(order),
        "any_flag": bool(marked),
    }


def _key(value: float) -> float:
    """Return what a number is sorted by: one that is not known comes last."""
    return float(value) if np.isfinite(value) else 1e308


def anchor(kind: str, name: str) -> str:
    """Return the id under which a source or an item can be linked to."""
    return f"{kind}-{quote(name.encode('utf-8', 'replace'), safe='')}"


def habits(evidence: Evidence) -> dict[str, Any]:
    """Return how each source votes where the label is this or that: confusion matrices, or votes against labels."""
    space, encoded, rows = evidence.space, evidence.encoded, evidence.rows
    chosen = [s for s in evidence.model.best_first() if encoded.observed[rows, s].any()][:MAX_HABITS]
    if isinstance(space, Scores) and len(rows):
        some = slice(None, None, max(len(rows) // MAX_POINTS, 1))
        labels, observed = np.asarray(evidence.best, dtype=np.float64)[some], encoded.observed[rows[some]]
        votes = np.asarray(encoded.labels[rows[some]], dtype=np.float64)
        scale = Scale.around(np.append(space.range or (), [*votes[observed], *labels]), 0.0, 1.0)
        drawn = []
        for s in chosen:
            seen = observed[:, s]
            drawn.append(draw.scatter(encoded.sources[s], labels[seen], votes[seen, s], (scale.low, scale.high)))
        return {"kind": "scores", "pictures": drawn}
    share = evidence.belief.probabilities
    if share is None or encoded.labels.ndim != 2 or not 2 <= share.shape[1] <= MAX_CONFUSED:
        return {"kind": "", "pictures": []}
    k = share.shape[1]
    names = [str(name) for name in space.as_labels(np.arange(k), np.dtype(object)).tolist()]
    drawn = []
    for s in chosen:
        voted = np.flatnonzero(encoded.observed[:, s])
        together = share[voted].T @ np.eye(k)[encoded.labels[voted, s].astype(np.int64)]
        total = together.sum(axis=1, keepdims=True)
        drawn.append(draw.confusion(encoded.sources[s], names, together / np.where(total > 0, total, 1.0)))
    return {"kind": "classes", "pictures": drawn}


def _contested_columns(contested: list[Item]) -> dict[str, list[Any]]:
    shown = dict.fromkeys(name for item in contested for name in item.content)
    return {
        "item": [item.name for item in contested],
        "label": [plain_text(item.label) for item in contested],
        "confidence": [f"{item.confidence:.6g}" for item in contested],
        "plain_vote": ["" if item.plain is None else plain_text(item.plain) for item in contested],
        "n_votes": [len(item.votes) + item.unlisted for item in contested],
        **{name: [item.content.get(name, "") for item in contested] for name in shown},
    }


def _download(columns: Mapping[str, list[Any]]) -> str:
    """Return a table as the address of a CSV file inside the page."""
    cells = [[f"{value:.6g}" if isinstance(value, float) else value for value in values] for values in columns.values()]
    text = csv_text([list(columns), *zip(*cells, strict=True)])
    return f"data:text/csv;base64,{b64encode(text.encode('utf-8', 'replace')).decode()}"


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
        "heat_map": draw.heat_map(found),
        "map": draw.source_map(found),
        "numbered": found.crowded,
        "is_correlation": found.is_correlation,
        "groups": [", ".join(found.sources[index] for index in group) for group in found.groups],
    }


def items(evidence: Evidence, contested: list[Item]) -> dict[str, Any]:
    """Return the histogram of confidence, what a threshold would keep, and the most contested items."""
    space, template = evidence.space, _environment().get_template("item.html")
    shown: list[Markup] = []
    letters = 0
    for item in contested:
        article = template.render(
            item=item,
            anchor=anchor("item", item.name),
            show=partial(label_html, space),
            figure=lambda value: figure("", float(value)),
            meter=draw.bar(item.confidence),
            picture=item_picture(space, item),
            equal=EQUAL,
            nobody=space.n_labels is not None and not item.unlisted and all(one.distance > EQUAL for one in item.votes),
        )
        letters += len(article)
        if shown and letters > MAX_LETTERS:
            break
        shown.append(Markup(article))
    confidence = np.sort(evidence.confidence)
    kept = [confidence[np.searchsorted(confidence, level / 100) :] for level in range(101)]
    return {
        "histogram": draw.histogram(evidence.confidence),
        "first": shown[:FIRST_ITEMS],
        "more": shown[FIRST_ITEMS:],
        "low": int((confidence < 0.5).sum()),
        "kept": " ".join(f"{len(part) / max(len(confidence), 1):.4f}" for part in kept),
        "mean": " ".join(f"{part.mean() if len(part) else 1.0:.4f}" for part in kept),
        "level": round(100 * uncertain_below(space)),
        "means": "expected accuracy" if space.n_labels is not None else "mean confidence",
    }


def compare(evidence: Evidence) -> dict[str, Any]:
    """Return how far the labels are from those of a plain vote, and everybody from the known labels."""
    space, rows = evidence.space, evidence.rows
    moved = space.distance(evidence.best, evidence.plain) if len(rows) else np.zeros(0)
    result: dict[str, Any] = {
        "same_method": evidence.model.method == "majority",
        "continuous": space.continuous,
        "n_moved": int((moved > EQUAL).sum()),
        "moved": float((moved > EQUAL).mean()) if len(moved) else 0.0,
        "distance": _figure(float(moved.mean())) if len(moved) else "0",
        "graded": bool((moved > EQUAL).any()) and not np.isin(moved, (0.0, 1.0)).all(),  # labels are more or less wrong
    }
    if evidence.known is None:
        return result

    def row(name: str, apart: FloatArray) -> dict[str, Cell]:
        mean = float(apart.mean()) if len(apart) else float("nan")
        cells = {
            "method": Cell.text(name),
            "items compared": Cell.text(f"{len(apart):,}", len(apart)),
            "mean distance to known label": Cell.text(_figure(mean), _key(mean)),
        }
        right = {} if space.continuous else {"accuracy": _share((apart <= EQUAL).sum() / max(len(apart), 1))}
        return cells | right

    own, plain, *others = evidence.distances_to_known()
    compared = [row("consilience", own), row("majority vote" if space.n_labels is not None else "plain vote", plain)]
    most = np.argsort(-evidence.encoded.observed.sum(axis=0), kind="stable")[:MAX_SOURCES]
    compared += [row(evidence.model.sources[source], others[source]) for source in most]
    columns = [(name, [row[name] for row in compared]) for name in compared[0]]
    measure = "mean distance to known label" if space.continuous else "accuracy"
    result["measure"], result["known"] = measure, [Markup(row[measure].html) for row in compared[:2]]
    result["table"] = Markup(table_fragment(columns, name="gold-table", marked=[0]))
    result["n_known"] = int(evidence.known.observed.sum())
    return result


def _with(shown: str, drawn: Markup, key: float) -> Cell:
    return Cell(str(element("span", shown, class_="value") + drawn), key)


def _share(share: float) -> Cell:
    return _with(f"{share:.0%}", draw.bar(share), float(share))


def _figure(value: float) -> str:
    if not np.isfinite(value):
        return "-" if np.isnan(value) else "∞"
    return f"{value:.3g}" if abs(value) >= 0.001 else f"{round(value, 3) + 0.0:g}"

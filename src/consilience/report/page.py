"""The page: sections put into the template, under a policy by which browsers load nothing and run no other script."""

from __future__ import annotations

from base64 import b64encode
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from consilience.label_model import LabelModel
from consilience.report import sections
from consilience.report.evidence import gather

__all__ = ["page_of"]

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
            overview=sections.overview(evidence),
            sources=sections.sources(evidence),
            relations=sections.relations(evidence),
            items=sections.items(evidence),
            comparison=sections.compare(evidence),
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

"""The report: one HTML file that shows what was learned about sources and items, for any label type."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from consilience.label_model import LabelModel
from consilience.tables.files import write_text

__all__ = ["report_html", "write_report"]


def report_html(model: LabelModel, votes: Any, gold: Any = None, *, title: str | None = None, show: Any = None) -> str:
    """Return the report as the text of one HTML page, which loads nothing from elsewhere.

    Parameters
    ----------
    model
        A fitted model.
    votes
        Votes of the same sources: those it was fitted on, or others.
    gold
        Known labels of some items, as for `LabelModel.fit`; they are compared with, not learned from.
    title
        Heading of the page.
    show
        What the items are: a frame, or a mapping from names to columns, one row per item in the order of the votes. It
        is shown with the contested items; cells that are paths of pictures are embedded as small pictures.

    Examples
    --------
    >>> from consilience import Classes
    >>> votes = [[0, 0, 1], [1, 1, 1], [0, 0, 0], [1, 0, 1]] * 10
    >>> page = report_html(LabelModel(Classes(2)).fit(votes), votes)
    >>> page.startswith("<!doctype html>"), "source_2" in page
    (True, True)
    """
    from consilience.report.page import page_of

    return page_of(model, votes, gold, title, show=show)


def write_report(
    path: str | Path,
    model: LabelModel,
    votes: Any,
    gold: Any = None,
    *,
    title: str | None = None,
    show: Any = None,
    force: bool = False,
) -> None:
    """Write the report of a fitted model to one HTML file that opens in any browser, without a network.

    An interrupted run leaves the old file or none. An existing file is replaced only with `force`.
    The other parameters are those of `report_html`.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> from consilience import Classes
    >>> votes = [[0, 0, 1], [1, 1, 1], [0, 0, 0], [1, 0, 1]] * 10
    >>> path = Path(mkdtemp()) / "page.html"
    >>> write_report(path, LabelModel(Classes(2)).fit(votes), votes, title="Cats and dogs")
    >>> "Cats and dogs" in path.read_text(encoding="utf-8")
    True
    """
    write_text(path, report_html(model, votes, gold, title=title, show=show), force=force)

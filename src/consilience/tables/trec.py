"""Rankings of documents from TREC run files: one line per query and document, with rank, score and run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

from consilience.exceptions import FileFormatError
from consilience.tables.annotations import by_annotator
from consilience.tables.cleaning import with_unlisted
from consilience.tables.files import SHOWN, read_text
from consilience.votes import Votes

_FORM = "A line of a run file is: query Q0 document rank score run."


def read_trec(path: str | Path | Mapping[str, str | Path], *, unlisted: str | None = "below") -> Votes:
    r"""Return the rankings in run files as votes for ``Rankings(None)``: queries are the items, runs the sources.

    `path` is one file, whose last column names the runs; a folder of files; or a dict of a file per run. Documents
    are ordered by score, and equal ones from the last name to the first, as trec_eval does. What a run does not list
    is ranked `unlisted`: "below" its list, or "unseen".

    Examples
    --------
    >>> import tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "bm25.run"
    >>> _ = file.write_text("q1 Q0 d7 1 9.5 bm25\nq1 Q0 d2 2 8.1 bm25\n")
    >>> read_trec(file).labels.tolist()
    [[['d7', 'd2']]]
    """
    scores: dict[tuple[str, str], dict[str, float]] = {}
    for run, file in by_annotator(path).items():
        for number, line in enumerate(read_text(file).splitlines(), start=1):
            fields = line.split()
            if not fields:
                continue
            try:
                query, _, document, _, score, tag = fields
                value = float(score)
                if math.isnan(value):  # which has no place in an order
                    raise ValueError
            except ValueError:
                shown = line.strip()[:SHOWN]
                raise FileFormatError(f"{str(file)!r}, line {number}: {shown!r} does not fit. {_FORM}") from None
            own = scores.setdefault((query, run or tag), {})
            if document in own:
                raise FileFormatError(
                    f"{str(file)!r}, line {number}: {document!r} is listed twice for query {query!r}. Keep one of them."
                )
            own[document] = value
    if not scores:
        raise FileFormatError(f"{str(path)!r} contains no rankings. {_FORM}")
    rankings = [
        (query, run, [document for _, document in sorted(((score, name) for name, score in own.items()), reverse=True)])
        for (query, run), own in scores.items()
    ]
    return with_unlisted(Votes.from_long(rankings), unlisted)

"""What several annotators said about items, in whatever form their tool writes it: votes, and their label type.

Each reader of a tool's export turns it into answers; `gathered` makes votes of them. What the readers share is at the
end: files of several annotators, and the choice among several questions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from consilience.arrays import Batch, BoolArray, as_object_array, is_null
from consilience.exceptions import FileFormatError
from consilience.label_types import Boxes, Classes, FiniteMetric, LabelSpace, Scores, Spans, Tags, Texts
from consilience.tables.vote_tables import ranked_things
from consilience.votes import Votes

#: Between the steps of a path of a taxonomy.
PATH = " / "


class Answer(NamedTuple):
    """What one annotator or model said about one item, as the kind of question has it; None where it abstains."""

    item: Any
    source: str
    said: Any
    truth: bool = False


@dataclass(frozen=True, eq=False)
class Annotations:
    """Votes of annotators and models, from the export of an annotation tool.

    Examples
    --------
    >>> answers = [Answer(1, "ann", ("cat",)), Answer(1, "bob", ("dog",))]
    >>> gathered("choices", answers, {1: {"text": "Purr."}})
    Annotations('': choices, Votes(1 item, 2 sources, 100% observed), 0 known)
    """

    #: Several answers of one source about one item become runs, listed in ``votes.repeated_pairs``.
    votes: Votes
    #: Kind of the question, in the words of Label Studio: "choices", "number", "labels" (spans), "rectanglelabels", ...
    kind: str
    #: None if all annotators gave the same answer, or if labels need your own distance, such as rotated boxes: use
    #: `Metric`.
    space: LabelSpace | None
    #: Known labels, as ``fit(votes, gold=...)`` takes them. Annotators who marked them do not vote on these items.
    gold: tuple[Batch, BoolArray]
    #: The data of each item.
    data: tuple[Mapping[str, Any], ...]
    #: Name of the question, if the tool has names.
    field: str = ""
    #: The things to rank in each item, for ranking questions.
    candidates: tuple[tuple[str, ...], ...] | None = None
    #: Label Studio: the name of the object that the control annotates.
    to_name: str = ""
    #: COCO: the categories as in the files.
    categories: tuple[Mapping[str, Any], ...] = ()

    def __repr__(self) -> str:
        return f"Annotations({self.field!r}: {self.kind}, {self.votes!r}, {int(self.gold[1].sum())} known)"


def gathered(
    kind: str, answers: Sequence[Answer], data: Mapping[Any, Mapping[str, Any]], field: str = ""
) -> Annotations:
    """Return the votes that answers to one kind of question are, on items with these ids and data."""
    ids = list(data)
    row_of = {item: row for row, item in enumerate(ids)}
    rows = [row_of[answer.item] for answer in answers]
    labels, space, candidates = as_labels(kind, [answer.said for answer in answers], rows, len(ids))
    gold: list[Any] = [None] * len(ids)
    cells: dict[tuple[int, str], list[Any]] = {}
    for row, answer, label in zip(rows, answers, labels, strict=True):
        if not answer.truth:  # a task that was skipped and annotated later is one vote
            cells.setdefault((row, answer.source), []).extend([] if is_null(label) else [label])
        elif not is_null(label):
            gold[row] = label
    sources = list(dict.fromkeys(source for _, source in cells))
    if not sources:
        raise FileFormatError(
            "There are no votes: all annotations are ground truth. Export those of the annotators as well."
        )
    for row in set(range(len(ids))) - {row for row, _ in cells}:
        cells[row, sources[0]] = []
    order = sorted(cells, key=lambda cell: (cell[0], sources.index(cell[1])))
    records = [(ids[row], source, label) for row, source in order for label in cells[row, source] or [None]]
    known = np.array([label is not None for label in gold], dtype=bool)
    votes = Votes.from_long(records, repeats="separate")
    return Annotations(votes, kind, space, (as_object_array(gold), known), tuple(data.values()), field, candidates)


def as_labels(
    kind: str, labels: list[Any], rows: list[int], n_tasks: int
) -> tuple[list[Any], LabelSpace | None, tuple[tuple[str, ...], ...] | None]:
    """Return what was said as labels of one type, the type, and what is ranked in each task."""
    if kind in ("choices", "taxonomy"):
        names = sorted({name for label in labels for name in label or ()})
        if any(len(label or ()) > 1 for label in labels):
            return [label and frozenset(label) for label in labels], Tags(names), None
        single = [label and label[0] for label in labels]
        if kind == "taxonomy":
            return single, _tree(names), None
        return single, Classes(names) if len(names) > 1 else None, None
    if kind == "ranker":
        return labels, *ranked_things(zip(rows, labels, strict=True), n_tasks)
    elements = [element for label in labels if isinstance(label, list) for element in label]
    if kind == "rectanglelabels" and not any(box[4] for box in elements):
        corners = [label and [(x, y, x + w, y + h, name) for x, y, w, h, _, name in label] for label in labels]
        return *_named_elements(corners, Boxes), None
    if kind == "labels" and all(isinstance(span[0], int) for span in elements):
        return *_named_elements(labels, Spans), None
    spaces = {"pairwise": Classes(["left", "right"]), "rating": Scores(), "number": Scores(), "textarea": Texts()}
    return labels, spaces.get(kind), None


def _named_elements(labels: Sequence[Any], space: type[Boxes] | type[Spans]) -> tuple[list[Any], LabelSpace]:
    """Return labels and their type: with classes where elements have names, else without."""
    names = {element[-1] for label in labels for element in label or ()}
    if names <= {None}:
        return [label and [element[:-1] for element in label] for label in labels], space()
    shown = {name: "(none)" if name is None else name for name in names}
    named = [label and [(*element[:-1], shown[element[-1]]) for element in label] for label in labels]
    return named, space(sorted(map(str, shown.values())))


def _tree(paths: Sequence[str]) -> LabelSpace:
    """Return the taxonomy whose nodes are all steps of the paths."""
    steps = [path.split(PATH) for path in paths]
    edges = {(PATH.join(path[:depth]), PATH.join(path[: depth + 1])) for path in steps for depth in range(1, len(path))}
    tops = sorted({path[0] for path in steps})
    if len(tops) > 1 or not edges:
        edges |= {("(root)", top) for top in tops}
    return FiniteMetric(sorted(edges))


# --- what readers share --------------------------------------------------------------------------------------


def by_annotator(source: Any, ending: str = "") -> dict[Any, Any]:
    """Return one file per annotator, from a dict, a folder whose files are named after them, or one file of all."""
    if isinstance(source, Mapping):
        return dict(source)
    if isinstance(source, (str, Path)) and Path(source).is_dir():
        return {path.stem: path for path in sorted(Path(source).glob(f"*{ending}")) if path.is_file()}
    return {None: source}


def question(found: Mapping[str, Any], field: str | None) -> str:
    """Return the question that was asked for, or the only one; `found` has their names, and what each is."""
    if not found:
        raise FileFormatError("The export contains no answers. Export annotated items.")
    listed = ", ".join(f"{name!r} ({kind})" if isinstance(kind, str) else repr(name) for name, kind in found.items())
    if field is None and len(found) > 1:
        raise FileFormatError(f"There are several questions: {listed}. Choose one with field={next(iter(found))!r}.")
    if field is not None and field not in found:
        raise FileFormatError(f"There is no question {field!r}; there are {listed}. Use one of these as field=.")
    return field or next(iter(found))

"""Where votes come from: tables, replies of judges, and the exports of other tools."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from consilience.arrays import Batch
from consilience.cli.commands import BadInputError
from consilience.cli.options import Reading
from consilience.exceptions import FileFormatError
from consilience.json_text import parse_json
from consilience.label_model import LabelModel
from consilience.label_types import Rankings
from consilience.tables import (
    Annotations,
    read_argilla,
    read_coco,
    read_cvat,
    read_doccano,
    read_ground_truth,
    read_judges,
    read_label_studio,
    read_prodigy,
    read_trec,
    write_argilla,
    write_coco,
    write_doccano,
    write_label_studio,
    write_prodigy,
)
from consilience.tables.cleaning import RANKED_BELOW
from consilience.tables.files import read_table, read_text
from consilience.tables.notation import Declared
from consilience.tables.receipt import Receipt
from consilience.votes import Votes

#: Options that say how to read each kind of file; all others are for tables.
_USED = {
    "judges": ("item", "source", "label", "sources", "drop", "repeats", "decimal", "delimiter", "encoding"),
    **dict.fromkeys(("label-studio", "argilla", "cvat", "ground-truth"), ("field",)),
    "coco": ("outside",),
    "trec": ("unlisted",),
}
_ALWAYS = ("origin", "space", "sources", "drop", "strict", "engine", "gold_item", "gold_label", "to")


@dataclass(frozen=True)
class Loaded:
    """Votes as their label type has them, or the partitions of an engine, and one known label (or None) per item."""

    votes: Any
    space: Any
    gold: Batch | None = None
    #: What the reader of another tool's file returned: it knows the data of the items, for files that go back.
    export: Any = None
    #: What became of the cells of the table.
    receipt: Receipt | None = None

    @property
    def n_gold(self) -> int:
        """How many items have a known label."""
        return 0 if self.gold is None else sum(label is not None for label in self.gold.tolist())


def imported(path: Path, reading: Reading) -> Loaded | None:
    """Return the votes of a file that is not a plain table; None if it is one."""
    origin = origin_of(path, reading)
    if origin == "table":
        return None
    used = (*_ALWAYS, *_USED.get(origin, ()))
    for name in Reading.__dataclass_fields__:
        if name not in used and getattr(reading, name) != getattr(Reading(), name):
            raise BadInputError(f"--{name.replace('_', '-')} cannot be combined with --from {origin}. Leave it out.")
    export = _READERS[origin](path, reading)
    votes, space = (export, Rankings(None)) if isinstance(export, Votes) else (export.votes, export.space)
    if origin != "judges":
        cast = int(np.count_nonzero(votes.observed))
        empty = 0 if votes.receipt is None else votes.receipt.empty
        # A run file holds the top of longer lists.
        notes = (f"In run files, {RANKED_BELOW}",) if origin == "trec" and reading.unlisted is None else ()
        votes = replace(votes, receipt=Receipt(cast + empty, empty, unit="answers", notes=notes))
    labels, known = getattr(export, "gold", (None, np.zeros(0)))
    return Loaded(votes, space, labels if known.any() else None, export, votes.receipt)


def write_back(path: Path, tool: str, model: LabelModel, votes: Votes, export: Any) -> None:
    """Write labels in the form that a tool imports, with the data of the items from its export."""
    if not isinstance(export, Annotations) or not getattr(export, _OWN.get(tool, "data")):
        raise BadInputError(f"--to {tool} needs an export of that tool as VOTES, because it contains the items.")
    _WRITERS[tool](path, model, votes, export)


def origin_of(path: Path, reading: Reading) -> str:
    """Return what a file is, or seems to be."""
    return reading.origin or _seen(path)


def _judges(path: Path, reading: Reading) -> Any:
    table = read_table(path, delimiter=reading.delimiter, encoding=reading.encoding)
    repeats = "separate" if reading.repeats == "identical" else reading.repeats
    declared = Declared.by(reading.space)
    return read_judges(
        table,
        item=reading.item,
        judge=reading.source,
        answer=reading.label,
        labels=sorted(declared.labels) or None,
        scale=declared.scale,
        repeats=repeats,
        drop=reading.drop,
        decimal=reading.decimal,
    )


_READERS: dict[str, Callable[[Path, Reading], Any]] = {
    "judges": _judges,
    "label-studio": lambda path, reading: read_label_studio(path, field=reading.field),
    "coco": lambda path, reading: read_coco(path, outside=reading.outside),
    "argilla": lambda path, reading: read_argilla(path, field=reading.field),
    "prodigy": lambda path, _: read_prodigy(path),
    "doccano": lambda path, _: read_doccano(path),
    "cvat": lambda path, reading: read_cvat(path, field=reading.field),
    "ground-truth": lambda path, reading: read_ground_truth(path, field=reading.field),
    "trec": lambda path, reading: read_trec(path, unlisted=reading.unlisted or "below"),
}
#: What only the export of a tool knows that its writer needs.
_OWN = {"label-studio": "to_name", "coco": "categories"}
_WRITERS: dict[str, Callable[..., None]] = {
    "label-studio": write_label_studio,
    "coco": write_coco,
    "argilla": write_argilla,
    "prodigy": write_prodigy,
    "doccano": write_doccano,
}


def _seen(path: Path) -> str:
    """Return what a file seems to be, by its name and by the keys of its first record."""
    ending = path.suffix.lower()
    if ending in (".run", ".trec"):
        return "trec"
    if ending == ".xml":
        return "cvat"
    if ending == ".manifest":
        return "ground-truth"
    if ending not in (".json", ".jsonl", ".ndjson") or not path.is_file():
        return "table"
    try:
        text = read_text(path)
        document = parse_json(text if ending == ".json" else text.lstrip().split("\n", 1)[0])
    except (ValueError, FileFormatError):
        return "table"  # which says what is wrong with it
    if isinstance(document, dict) and {"images", "annotations"} <= document.keys():
        return "coco"
    first = document[0] if isinstance(document, list) and document else document
    keys = first.keys() if isinstance(first, dict) else set()
    if "datasetObjectId" in keys:
        return "ground-truth"
    if {"annotations", "completions", "predictions"} & keys and ending == ".json":
        return "label-studio"
    if {"text", "annotations"} <= keys:
        return "doccano"
    if "fields" in keys and {"responses", "suggestions"} & keys:
        return "argilla"
    return "prodigy" if {"_input_hash", "_task_hash"} & keys else "table"

"""What happens between a person and a file of answers: which item is next, and what the answers so far say."""

from __future__ import annotations

import logging
import threading
import time
import warnings
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from consilience.arrays import Batch, as_object_array
from consilience.estimation.protocol import Posterior
from consilience.exceptions import ConsilienceError, ConsilienceWarning, InvalidLabelError, InvalidVotesError
from consilience.label_model import LabelModel
from consilience.label_types.base import LabelSpace
from consilience.lazy import pyarrow as pa
from consilience.prediction.audit import Audit
from consilience.prediction.intervals import Estimate
from consilience.report import write_report
from consilience.report.labels import label_html
from consilience.review.gold_file import ANSWERED, CANNOT_TELL, SKIPPED, UNDONE, GoldFile, last_answers
from consilience.review.inputs import checked, input_of
from consilience.tables.files import csv_cell, typed_cells, write_table
from consilience.tables.writing import label_column, write_labels
from consilience.votes import Votes

#: Seconds for which an item shown in one tab is not offered in another.
LEASE = 300.0
_log = logging.getLogger(__name__)


class Session:
    """Items to label, in an order that an audit can be made of, and the file of answers.

    The order comes from the votes alone, so a session that is started again continues where it was.

    Parameters
    ----------
    shown
        For each item by id, what it is about: texts by name, and paths of images.
    show_votes
        Whether the votes are shown before the answer.
    within
        The precision that is wanted.
    """

    def __init__(
        self,
        model: LabelModel,
        votes: Votes,
        gold: GoldFile,
        labels: int,
        *,
        shown: Mapping[str, Mapping[str, str | Path]] | None = None,
        show_votes: bool = False,
        within: float = 0.02,
        person: str = "",
    ) -> None:
        self.space, self.votes, self.gold = model.space, votes, gold
        self.shown, self.show_votes, self.within, self.person = shown or {}, show_votes, within, person
        self.rows = {str(item): row for row, item in enumerate(votes.items.tolist())}
        with_votes = int(votes.observed.any(axis=1).sum())
        drawn = model.suggest(votes, min(labels, with_votes))
        self.queue = [str(item) for item in drawn.items.tolist()]
        self.probability = dict(zip(self.queue, drawn.probability.tolist(), strict=True))
        self.images = [path for about in self.shown.values() for path in about.values() if isinstance(path, Path)]
        gold.prepare()
        unknown = [item for item in last_answers(gold.records()) if item not in self.rows]
        if unknown:
            raise InvalidVotesError(
                f"{str(gold.path)!r} answers item {unknown[0]!r}, which is not among the votes. Give --gold the file "
                "of these votes, or a new one."
            )
        self._model, self._labels = model, model.predict(votes)
        self._leases: dict[str, tuple[str, float]] = {}
        self._lock = threading.Lock()
        self._worker = ThreadPoolExecutor(1)
        self._stale = self._busy = False
        self._live: dict[str, Any] = {"audit": None, "sources": [], "needed": None, "changed": "", "trouble": ""}
        self.refresh()

    # --- one item at a time -------------------------------------------------------------------------

    def next_item(self, tab: str) -> dict[str, Any] | None:
        """Return the next item for this tab, or None if all have been answered."""
        with self._lock:
            answers = last_answers(self.gold.records())
            now = time.monotonic()
            self._leases = {
                item: lease for item, lease in self._leases.items() if now - lease[1] < LEASE and lease[0] != tab
            }
            skipped = [item for item in answers if answers[item]["status"] == SKIPPED]
            unasked = [item for item in self.queue if item not in answers]
            waiting = unasked + [item for item in skipped if item in self.queue]
            free = [item for item in waiting if item not in self._leases] or waiting
            if not free:
                return None
            self._leases[free[0]] = (tab, now)
        return self.describe(free[0])

    def describe(self, item: str) -> dict[str, Any]:
        """Return an item as the page shows it."""
        row = self._row(item)
        one = self.votes[[row]]
        about = self.shown.get(item, {})
        asked = input_of(self.space, one)
        seen = self.show_votes or asked["kind"] == "pick"
        texts = {name: value for name, value in about.items() if not isinstance(value, Path)}
        return {
            "item": item,
            "texts": texts,
            "images": {name: self.images.index(path) for name, path in about.items() if isinstance(path, Path)},
            "input": asked,
            "votes": self.votes_on(item) if seen else None,
        }

    def votes_on(self, item: str) -> list[dict[str, str]]:
        """Return who said what about an item, as HTML that is already safe."""
        row = self._row(item)
        return [
            {"source": self.votes.sources[source], "html": str(label_html(self.space, self.votes.labels[row, source]))}
            for source in np.flatnonzero(self.votes.observed[row])
        ]

    def answer(self, item: str, status: str, answer: Any = None, comment: str = "") -> None:
        """Append an answer; it is on disk when this returns."""
        row = self._row(item)
        if status not in (ANSWERED, SKIPPED, CANNOT_TELL, UNDONE):
            raise InvalidVotesError(f"{status!r} is not a valid status of an answer. Reload the page.")
        cell: Any = ""
        if status == ANSWERED:
            cell = _cell_of(self.space, checked(self.space, self.votes[[row]], answer))
        probability = self.probability.get(item, float("nan"))
        self.gold.append(
            item=item,
            label=cell,
            probability="" if np.isnan(probability) else repr(probability),
            status=status,
            person=self.person,
            comment=comment,
        )
        with self._lock:
            self._leases.pop(item, None)
        self.refresh()

    def _row(self, item: str) -> int:
        if item not in self.rows:
            raise InvalidVotesError(f"There is no item {item!r} in the votes. Reload the page.")
        return self.rows[item]

    # --- what the answers say -----------------------------------------------------------------------

    def known(self) -> tuple[Batch, Any]:
        """Return one known label (or None) per item, and the weights of an audit."""
        labels, weights = np.full(len(self.votes), None, dtype=object), np.full(len(self.votes), np.nan)
        answers = {item: one for item, one in last_answers(self.gold.records()).items() if one["status"] == ANSWERED}
        rows = [self.rows[item] for item in answers]
        labels[rows] = _read_cells(self.space, [one["label"] for one in answers.values()])
        for item, one in answers.items():
            weights[self.rows[item]] = 1.0 / float(one["probability"]) if one["probability"] else np.nan
        return labels, weights

    def state(self) -> dict[str, Any]:
        """Return how far things are, and what the answers said when last looked at."""
        statuses = [one["status"] for one in last_answers(self.gold.records()).values()]
        counts = {"answered": statuses.count(ANSWERED), "cannot_tell": statuses.count(CANNOT_TELL)}
        return {**self._live, **counts, "asked": len(self.queue), "within": self.within, "busy": self._busy}

    def refresh(self) -> None:
        """Learn again in the background; while that is going on, answers are only noted."""
        with self._lock:
            self._stale = True
            if self._busy:
                return
            self._busy = True
        self._worker.submit(self._work)

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._stale:
                    self._busy = False
                    return
                self._stale = False
            try:
                self._learn()
            except Exception as error:  # the page continues without the numbers, and shows the reason
                _log.exception("cannot learn from the answers")
                self._live = {**self._live, "trouble": str(error)}

    def _learn(self) -> None:
        labels, weights = self.known()
        if all(label is None for label in labels):
            self._live = {"audit": None, "sources": [], "needed": None, "changed": "", "trouble": ""}
            return
        live: dict[str, Any] = {**self._live, "trouble": "", "audit": None, "sources": [], "needed": None}
        if any(label is not None and np.isfinite(weight) for label, weight in zip(labels, weights, strict=True)):
            found = self._model.audit(self.votes, labels, weights)
            live |= {
                "audit": {"measure": found.measure, **_numbers(found.labels)},
                "sources": [{"name": name, **_numbers(one)} for name, one in found.sources.items() if one.known],
                "needed": found.labels_needed(self.within),
            }
        self._live = live
        again = self._fitted(labels).predict(self.votes)
        moved = sum(repr(one) != repr(two) for one, two in zip(again, self._labels, strict=True))
        what = "value" if self.space.continuous else "label"
        live["changed"] = f"The last answers changed {moved} of {len(again)} {what}s."
        self._live, self._labels = live, again

    def _fitted(self, gold: Batch) -> LabelModel:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConsilienceWarning)
            return LabelModel(**self._model.get_params()).fit(self.votes, gold)

    def finish(self, folder: Path) -> dict[str, Any]:
        """Learn from all answers, write labels, report and audit, and return where they are."""
        gold, weights = self.known()
        if all(label is None for label in gold):
            raise InvalidVotesError("Nothing has been answered yet. Label at least one item.")
        paths = {name: folder / f"{name}.{ending}" for name, ending in
                 (("labels", "csv"), ("report", "html"), ("audit", "csv"))}  # fmt: skip
        folder.mkdir(parents=True, exist_ok=True)
        model = self._fitted(gold)
        write_labels(paths["labels"], model, self.votes, force=True)
        write_report(paths["report"], model, self.votes, gold, title=self.gold.path.stem, force=True)
        try:
            found: Audit | None = model.audit(self.votes, gold, weights)
        except ConsilienceError:  # nothing that was drawn at random has been answered
            found = None
        if found is None:
            del paths["audit"]
        else:
            write_table(paths["audit"], pa.table(found.columns()), force=True)
        return {"files": [str(path) for path in paths.values()], "summary": "" if found is None else str(found.labels)}

    def close(self) -> None:
        """Wait for what is being learned."""
        self._worker.shutdown(wait=True, cancel_futures=True)


def _numbers(estimate: Estimate) -> dict[str, float | None]:
    """Return an estimate as JSON has it, without infinite ends."""
    return {name: value if np.isfinite(value) else None for name, value in vars(estimate).items()}


def _cell_of(space: LabelSpace, label: Any) -> Any:
    """Return a label as the file of answers holds it: as a file of labels would."""
    spelled = space.as_labels(space.as_batch(as_object_array([label])), np.dtype(object))
    details = {"candidates": as_object_array([None])}
    try:
        column = label_column(space, Posterior(spelled, np.ones(1), details=details))
    except (TypeError, ValueError, AttributeError):
        raise InvalidLabelError(f"{label!r} is not a label that a file can hold. Answer in another way.") from None
    return csv_cell(column.to_pylist()[0])


def _read_cells(space: LabelSpace, cells: list[str]) -> Batch:
    """Return labels from the cells of the file of answers."""
    found = []
    for cell in cells:  # one by one: an answer must not change how another one is read
        [typed] = typed_cells([cell])
        # A number is text if the classes are texts such as '1'.
        found.append(cell if isinstance(typed, (int, float, bool)) and not space.contains(typed) else typed)
    return as_object_array(space.read_text(as_object_array(found)))

"""What suits a label type on the page: which input, and how what comes from it becomes a label.

One function per label type, found by its class. A label type without one lets people pick one of the votes.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import singledispatch
from typing import Any

import numpy as np

import consilience.label_types as types
from consilience.arrays import as_object_array
from consilience.exceptions import InvalidLabelError
from consilience.label_types.base import LabelSpace
from consilience.label_types.elements.space import ElementSpace
from consilience.votes import Votes

#: Up to this many labels are shown as buttons. With more, one of the votes is chosen.
MOST_BUTTONS = 60


@singledispatch
def input_of(space: LabelSpace, votes: Votes) -> dict[str, Any]:
    """Return what the page needs to ask for the label of the one item of these votes; by default, pick a vote."""
    n_labels = space.n_labels
    if n_labels is None or n_labels > MOST_BUTTONS:
        return {"kind": "pick"}
    return {"kind": "choice", "options": list(map(str, space.as_labels(np.arange(n_labels), _like(votes)).tolist()))}


@singledispatch
def label_of(space: LabelSpace, votes: Votes, answer: Any) -> Any:
    """Return the label that an answer of the page stands for."""
    n_labels = space.n_labels
    if n_labels is None:
        raise _refused(answer)
    return space.as_labels(np.arange(n_labels), _like(votes))[_place(answer, n_labels)]


def checked(space: LabelSpace, votes: Votes, answer: Any) -> Any:
    """Return the label that was picked among the votes or given, or say what is wrong with it."""
    if isinstance(answer, Mapping) and set(answer) == {"vote"}:
        seen = np.flatnonzero(votes.observed[0])
        label = votes.labels[0, seen[_place(answer["vote"], len(seen))]]
    elif isinstance(answer, Mapping) and set(answer) == {"label"}:
        label = label_of(space, votes, answer["label"])
    else:
        raise _refused(answer)
    space.as_batch(as_object_array([label]))
    return label


def _refused(answer: Any) -> InvalidLabelError:
    return InvalidLabelError(f"{answer!r} is not an answer of this page. Reload it and answer again.")


def _place(answer: Any, size: int) -> int:
    if not isinstance(answer, int) or isinstance(answer, bool) or not 0 <= answer < size:
        raise _refused(answer)
    return answer


def _like(votes: Votes) -> Any:
    return votes.spelling or votes.labels.dtype


@input_of.register
def _(space: types.Scores, votes: Votes) -> dict[str, Any]:
    said = np.asarray(votes.labels[0][votes.observed[0]], dtype=np.float64)
    low, high = space.range or (float(said.min(initial=0.0)), float(said.max(initial=1.0)))
    step = 1.0 if space.integer else 10.0 ** np.floor(np.log10(max(high - low, 1e-6)) - 2)
    return {"kind": "score", "low": low, "high": high, "step": float(step), "bounded": space.range is not None}


@label_of.register
def _(space: types.Scores, votes: Votes, answer: Any) -> Any:
    if not isinstance(answer, (int, float)) or isinstance(answer, bool) or not np.isfinite(answer):
        raise InvalidLabelError(f"{answer!r} is not a number. Type a number, for example 3.5.")
    if space.range is not None and not space.range[0] <= answer <= space.range[1]:
        raise InvalidLabelError(f"{answer!r} is not between {space.range[0]:g} and {space.range[1]:g}. Correct it.")
    return float(answer)


@input_of.register
def _(space: types.Rankings, votes: Votes) -> dict[str, Any]:
    if space.ragged or space.n_items is None:
        return {"kind": "pick"}
    names = [f"#{index}" for index in range(space.n_items)] if space.names is None else list(map(str, space.names))
    return {"kind": "ranking", "options": names}


@label_of.register
def _(space: types.Rankings, votes: Votes, answer: Any) -> Any:
    positions = _order(answer, space.n_items or 0)
    return space.as_labels(np.array([positions], dtype=np.int16), _like(votes))[0]


def _order(answer: Any, size: int) -> list[int]:
    """Return the position of each of some things, which the answer lists best first."""
    if not isinstance(answer, list) or sorted(map(str, answer)) != sorted(map(str, range(size))):
        raise _refused(answer)
    return [answer.index(index) for index in range(size)]


@input_of.register
def _(space: types.Preferences, votes: Votes) -> dict[str, Any]:
    names = _candidates(space, votes)
    return {"kind": "pair" if len(names) == 2 else "ranking", "options": list(map(str, names))}


@label_of.register
def _(space: types.Preferences, votes: Votes, answer: Any) -> Any:
    names = _candidates(space, votes)
    if answer == "tie" and len(names) == 2:
        return [tuple(names)]
    positions = _order(answer, len(names))
    return [names[index] for index in np.argsort(positions).tolist()]


def _candidates(space: types.Preferences, votes: Votes) -> list[Any]:
    said = space.as_batch(votes.labels[0][votes.observed[0]])
    return list(dict.fromkeys(name for one in said for name in one.items))


@input_of.register
def _(space: types.Tags, votes: Votes) -> dict[str, Any]:
    names = [f"tag {index}" for index in range(space.size)] if space.names is None else list(space.names)
    return {"kind": "tags", "options": names}


@label_of.register
def _(space: types.Tags, votes: Votes, answer: Any) -> Any:
    if not isinstance(answer, list):
        raise _refused(answer)
    chosen = {_place(index, space.size) for index in answer}
    return [int(index in chosen) for index in range(space.size)]


@input_of.register
def _(space: ElementSpace, votes: Votes) -> dict[str, Any]:
    cells = space.as_batch(votes.labels[0][votes.observed[0]])
    corners = len(space.reader.corners)
    reach = max((float(cell[:, :corners].max()) for cell in cells if len(cell)), default=100.0)
    return {
        "kind": "spans" if space.reader.whole else "boxes",
        "corners": list(space.reader.corners),
        "classes": None if space.classes is None else list(space.classes),
        "reach": reach,
    }


@label_of.register
def _(space: ElementSpace, votes: Votes, answer: Any) -> Any:
    if not isinstance(answer, list):
        raise _refused(answer)
    return answer


@input_of.register
def _(space: types.Texts, votes: Votes) -> dict[str, Any]:
    return {"kind": "text", "proposals": [str(one) for one in votes.labels[0][votes.observed[0]].tolist()]}


@label_of.register
def _(space: types.Texts, votes: Votes, answer: Any) -> Any:
    if not isinstance(answer, str) or not answer.strip():
        raise InvalidLabelError("The text is empty. Write one, or say that you cannot tell.")
    return answer


@input_of.register
def _(space: types.DependencyTrees, votes: Votes) -> dict[str, Any]:
    if space.relations is not None:
        return {"kind": "pick"}
    tokens = max((len(tree) for tree in votes.labels[0][votes.observed[0]]), default=0)
    return {"kind": "tree", "tokens": tokens}


@label_of.register
def _(space: types.DependencyTrees, votes: Votes, answer: Any) -> Any:
    if not isinstance(answer, list) or not all(isinstance(head, int) for head in answer):
        raise _refused(answer)
    return np.array(answer, dtype=np.int64)

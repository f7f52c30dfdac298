"""Dependency trees of sentences: one head per token."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from consilience.arrays import Batch, BoolArray, FloatArray, IntArray, as_object_array, is_null
from consilience.exceptions import InvalidLabelError
from consilience.label_types.base import LabelSpace, Unit
from consilience.label_types.codes import checked_names, first_few, is_listed, plain_value, read_each, read_rows
from consilience.label_types.trees.law import TreeLaw, cut
from consilience.label_types.trees.measures import las, uas
from consilience.lazy import pyarrow as pa

#: Numbers of tokens of random trees.
FEWEST, MOST = 3, 12
#: Strengths at which a vote is certain to be wrong or right.
WEAKEST, STRONGEST = -12.0, 25.0
STEPS = 30
#: The largest number of tokens whose heads fit the type.
MOST_TOKENS = 32_767
STEP = "Correct it, or leave the cell empty (None) where the source abstains."


@dataclass(frozen=True)
class DependencyTrees(LabelSpace):
    """Dependency trees; the cost is the share of tokens whose head differs. None abstains.

    A label is an array with the head of every token: tokens are counted from 1, and the root has head 0. All sources
    parse the same tokens of an item; sentences differ in length. The label of an item is the tree with the largest
    weight of votes on its edges (a maximum arborescence with one root), found exactly.

    Parameters
    ----------
    relations
        Names of the relations, if edges have relations. A label is then an ``(n_tokens, 2)`` array of heads and codes
        of relations, or a list of (head, name) pairs. The sources with an edge vote on its relation; distance and
        weights are about heads.
    plausible_heads
        The number K of plausible wrong heads of a token: two wrong votes coincide with probability 1 / K. The larger it
        is, the more two agreeing sources outvote a better third one. By default it is learned from the votes.

    Examples
    --------
    >>> from consilience import LabelModel
    >>> parses = [[[2, 0, 2], [2, 0, 2], [0, 1, 1]], [[0, 1], [0, 1], [2, 0]], [[2, 0, 2, 3], None, [2, 0, 2, 2]]]
    >>> LabelModel(DependencyTrees()).fit(parses * 20).predict(parses)[0]
    array([2, 0, 2])
    """

    relations: tuple[str, ...] | None = None
    plausible_heads: float | None = None

    def __post_init__(self) -> None:
        names = checked_names("relations", self.relations, "Relation", "['nsubj', 'obj']")
        object.__setattr__(self, "relations", names)
        count = self.plausible_heads
        if count is None:
            return
        if isinstance(count, bool) or not isinstance(count, (int, float, np.number)) or not 0 < float(count) < np.inf:
            raise InvalidLabelError(
                f"plausible_heads={count!r} is not a positive number. Give a positive number, or None to learn it."
            )
        object.__setattr__(self, "plausible_heads", float(count))

    @cached_property
    def law(self) -> TreeLaw:
        return TreeLaw(self.plausible_heads, len(self.relations or ()))

    def distance(self, left: Batch, right: Batch) -> FloatArray:
        """Return the share of tokens whose head differs, regardless of relations."""
        one, starts = flatten(list(left))
        two, others = flatten(list(right))
        uneven = np.flatnonzero(np.diff(starts) != np.diff(others))
        if len(uneven):
            row = int(uneven[0])
            raise InvalidLabelError(
                f"trees of {len(left[row])} and {len(right[row])} tokens have no distance. Compare parses of the same "
                "tokens.",
                row,
            )
        sizes = np.diff(starts)
        differ = np.bincount(np.repeat(np.arange(len(sizes)), sizes), one != two, minlength=len(sizes))
        return differ / np.maximum(sizes, 1)

    def embed(self, batch: Batch) -> FloatArray:
        """Return one indicator per edge."""
        heads, starts = flatten(list(batch))
        sizes = np.diff(starts)
        tokens = np.arange(len(heads)) - np.repeat(starts[:-1], sizes) + 1
        # Edges are numbered by the later of their two tokens, so that longer sentences only add coordinates.
        edges = np.where(tokens < heads, heads**2 + tokens, tokens**2 + tokens + heads)
        placed = np.zeros((len(sizes), int((sizes.max(initial=0) + 1) ** 2)))
        placed[np.repeat(np.arange(len(sizes)), sizes), edges] = 1.0
        return placed

    def random(self, n: int, rng: np.random.Generator) -> Batch:
        """Return `n` trees of 3 to 12 tokens, uniform among those of their length; row t always has the same length."""
        return self.random_trees(FEWEST + np.arange(n) % (MOST - FEWEST + 1), rng)

    def random_trees(self, lengths: npt.ArrayLike, rng: np.random.Generator) -> Batch:
        """Return one tree per length, uniform among all trees with one root."""
        sizes = np.asarray(lengths, dtype=np.int64)
        starts = np.concatenate([[0], np.cumsum(sizes)])
        chain = np.arange(starts[-1]) - np.repeat(starts[:-1], sizes)  # with weight zero, any tree is a center
        return self._drawn(chain, starts, np.ones(len(sizes)), rng, None)

    def sample_around(self, centers: Batch, weight: float, rng: np.random.Generator) -> Batch:
        """Return one vote per center, with a probability that grows exponentially with the number of right heads.

        The expected share of wrong heads is the same for every sentence. Relations are kept if the head is right, and
        random otherwise.
        """
        heads, starts = flatten(list(centers))
        error = float(self.law.expected_cost(np.array([weight]))[0])
        strength = np.zeros(len(centers))
        sizes = np.diff(starts)
        for length in np.unique(sizes):
            rows = np.flatnonzero(sizes == length)
            strength[rows] = strength_for_error(heads[starts[rows][:, None] + np.arange(length)], error)
        return self._drawn(heads, starts, np.exp(strength), rng, centers)

    def _drawn(
        self, heads: IntArray, starts: IntArray, boosts: FloatArray, rng: np.random.Generator, centers: Batch | None
    ) -> Batch:
        from consilience.label_types.trees.kernels import draw_trees

        drawn = draw_trees(heads, starts, boosts, rng)
        if self.relations is None:
            return cut(drawn, starts)
        codes = rng.integers(0, len(self.relations), len(drawn))
        if centers is not None and len(centers):
            codes = np.where(drawn == heads, np.concatenate(list(centers))[:, 1], codes)
        return cut(np.stack([drawn, codes], axis=1), starts)

    def weighted_mean(self, votes: Batch, weights: FloatArray) -> Batch:
        """Return the tree with the largest weight of votes on its edges; exact.

        Ties go to the nearer head, with the root as the farthest, so that the order of the sources does not matter.
        """
        counted = np.array(weights, dtype=np.float64)
        for row in np.flatnonzero(~(counted > 0).any(axis=1)):  # without weights, any vote is a label
            given = [column for column, cell in enumerate(votes[row]) if isinstance(cell, np.ndarray)]
            counted[row, given[:1]] = 1.0
        return self.law.weighted_trees(votes, counted)

    def as_batch(self, labels: Any) -> Batch:
        """Return an object array of integer arrays: ``(length,)``, or ``(length, 2)`` with relations."""
        from consilience.label_types.trees.kernels import tree_faults

        cells = list(labels)
        # Arrays of heads are ready: reading millions of them one by one takes longer than checking all at once.
        if self.relations is not None or not all(map(_is_heads, cells)):
            cells = read_each(cells, self._tree)
        flat, starts = flatten(cells)
        sizes = np.diff(starts)
        if sizes.max(initial=0) > MOST_TOKENS:
            longest = int(sizes.argmax())
            raise InvalidLabelError(f"the tree has {sizes[longest]} tokens, more than {MOST_TOKENS}. {STEP}", longest)
        tree, fault, token = tree_faults(flat, starts).tolist()
        if tree >= 0:
            raise InvalidLabelError(f"{_fault(flat[starts[tree] : starts[tree + 1]], fault, token)} {STEP}", tree)
        return as_object_array(cells)

    def as_cells(self, labels: Batch, observed: BoolArray) -> Batch | None:
        cells = np.empty(observed.shape, dtype=object)
        cells[observed] = read_rows(
            self.as_batch,
            labels,
            observed,
            lambda trees: [len(tree) for tree in trees],
            "the tree has {} tokens, that of the first source {}: token {} is only in one of them. Let all sources "
            "parse the same tokens.",
        )
        return cells

    def as_labels(self, batch: Batch, like: npt.DTypeLike | None = None) -> Batch:
        """Return trees as one array if the votes were one array, else one array per tree."""
        sizes = {len(tree) for tree in batch if len(tree)}
        if like is None or np.dtype(like).kind not in "iu" or len(sizes) != 1:
            return batch
        size = sizes.pop()
        shape = (size,) if self.relations is None else (size, 2)
        return np.stack([tree if len(tree) else np.full(shape, -1, dtype=np.int64) for tree in batch])

    def named(self, labels: Iterable[Any]) -> list[list[tuple[int, str]] | None]:
        """Return trees with relations as lists of (head, name) pairs; None for missing trees."""
        if self.relations is None:
            raise InvalidLabelError("These trees have no relations. Name them: DependencyTrees(relations=[...]).")
        names = self.relations
        return [
            None if is_null(tree) else [(int(head), names[code]) for head, code in self.as_batch([tree])[0].tolist()]
            for tree in labels
        ]

    def unit(self, parameters: Any) -> Unit:
        return Unit("error_rate", "the share of tokens with a wrong head")

    def score(self, predicted: Batch, gold: Batch) -> float:
        """Return the unlabeled attachment score, or with relations the labeled one."""
        if not len(gold):
            return float("nan")
        return uas(predicted, gold) if self.relations is None else las(predicted, gold)

    def to_arrow(self, batch: Batch) -> pa.Array:
        if self.relations is None:
            trees = [None if is_null(tree) else np.asarray(tree).tolist() for tree in batch]
            return pa.array(trees, type=pa.list_(pa.int16()))
        token = pa.struct([("head", pa.int16()), ("relation", pa.string())])
        rows = [
            None if tree is None else [{"head": head, "relation": name} for head, name in tree]
            for tree in self.named(batch)
        ]
        return pa.array(rows, type=pa.list_(token))

    def from_arrow(self, column: pa.Array) -> Batch:
        rows = column.to_pylist()
        if self.relations is None:
            return as_object_array(None if row is None else np.array(row, dtype=np.int64) for row in rows)
        return as_object_array(
            None if row is None else [(token["head"], token["relation"]) for token in row] for row in rows
        )

    @property
    def _expected(self) -> str:
        if self.relations is None:
            return "a list of heads such as [2, 0, 2], one per token, 0 for the root"
        return f"a list of (head, relation) pairs such as [(2, {self.relations[0]!r}), (0, 0)], one per token"

    def _tree(self, cell: Any) -> IntArray:
        width = 1 if self.relations is None else 2
        if isinstance(cell, np.ndarray) and cell.dtype == np.int64 and cell.ndim == width:
            return cell if self.relations is None else self._with_known_relations(cell)
        if not is_listed(cell):
            raise InvalidLabelError(f"label {plain_value(cell)!r} is not {self._expected}. {STEP}")
        if self.relations is None:
            return self._heads(cell)
        pairs = cell.tolist() if isinstance(cell, np.ndarray) else list(cell)
        for token, pair in enumerate(pairs, start=1):
            if not is_listed(pair) or len(pair) != 2:
                raise InvalidLabelError(f"token {token} is {pair!r}; the label is not {self._expected}. {STEP}")
        heads = self._heads([pair[0] for pair in pairs])
        codes = [self._code(pair[1], token) for token, pair in enumerate(pairs, start=1)]
        return self._with_known_relations(np.column_stack([heads, np.array(codes, dtype=np.int64)]))

    def _heads(self, cell: Any) -> IntArray:
        array = cell if isinstance(cell, np.ndarray) else as_object_array(cell)
        if array.ndim != 1:
            raise InvalidLabelError(
                f"a label of shape {array.shape} is not {self._expected}. "
                "For heads with relations name them: DependencyTrees(relations=[...])."
            )
        if array.dtype.kind in "iu":
            return array.astype(np.int64)
        for token, value in enumerate(array.tolist(), start=1):
            number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
            if not number or not float(value).is_integer() or abs(value) > MOST_TOKENS:
                raise InvalidLabelError(f"token {token} has head {value!r}, not the number of a token. {STEP}")
        return array.astype(np.int64)

    def _code(self, value: Any, token: int) -> int:
        names = self.relations or ()
        if isinstance(value, str):
            if value not in names:
                raise InvalidLabelError(
                    f"token {token} has relation {value!r}, which is not one of {first_few(names)}. "
                    "Name it in DependencyTrees(relations=[...])."
                )
            return names.index(value)
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
            raise InvalidLabelError(f"token {token} has relation {value!r}, neither a name nor a code. {STEP}")
        return int(value)

    def _with_known_relations(self, cell: IntArray) -> IntArray:
        count = len(self.relations or ())
        if cell.shape[1] != 2:
            raise InvalidLabelError(f"a label of shape {cell.shape} is not {self._expected}. {STEP}")
        wrong = np.flatnonzero((cell[:, 1] < 0) | (cell[:, 1] >= count))
        if len(wrong):
            token = int(wrong[0])
            raise InvalidLabelError(
                f"token {token + 1} has relation {cell[token, 1]}; codes are 0 .. {count - 1}. {STEP}"
            )
        return cell


def expected_share_right(heads: IntArray, strength: FloatArray) -> FloatArray:
    """Return the expected share of heads that a random tree has in common with each of some trees ``(b, n)``.

    P(tree) is proportional to ``exp(strength * heads in common)``. Over all trees with one root the normalizer is a
    determinant, and the probability of an edge is an entry of an inverse (the matrix-tree theorem for a single root,
    Koo et al. 2007). Two tokens have two trees without a common head: the odds are exp(2 strength) to 1.

    >>> float(expected_share_right(np.array([[0, 1]]), np.array([np.log(3.0) / 2.0]))[0])
    0.75
    """
    batch, n = heads.shape
    rows, tokens = np.arange(batch)[:, None], np.arange(n)[None, :]
    weight = np.ones((batch, n + 1, n))
    weight[rows, heads, tokens] = np.exp(strength)[:, None]
    root, between = weight[:, 0, :], weight[:, 1:, :]
    between[:, np.arange(n), np.arange(n)] = 0.0
    laplacian = -between
    laplacian[:, np.arange(n), np.arange(n)] = between.sum(axis=1)
    laplacian[:, 0, :] = root
    inverse = np.linalg.inv(laplacian)
    own = inverse[:, np.arange(n), np.arange(n)]
    below_root = root * inverse[:, :, 0]
    edge = np.where(np.arange(n) > 0, own, 0.0)[:, None, :] - np.swapaxes(inverse, 1, 2) * (np.arange(n) > 0)[:, None]
    matched = np.where(
        heads == 0, below_root, (between * edge)[rows, np.maximum(heads, 1) - 1, np.broadcast_to(tokens, heads.shape)]
    )
    return np.clip(matched.mean(axis=1), 0.0, 1.0)


def strength_for_error(heads: IntArray, error: float) -> FloatArray:
    """Return the strength with which each of some trees ``(b, n)`` has this expected share of wrong heads."""
    batch, n = heads.shape
    error = float(np.clip(error, 1e-6, 1.0 - 1e-6))
    target = np.log((1.0 - error) / error)
    strength = np.full(batch, np.clip(target + np.log(max(n - 1, 1)), WEAKEST, STRONGEST))
    for _ in range(STEPS if n > 1 else 0):
        share = np.clip(expected_share_right(heads, strength), 1e-9, 1.0 - 1e-9)
        gap = target - np.log(share / (1.0 - share))
        if np.abs(gap).max() < 1e-4:
            break
        # The log-odds of a right head rise a little faster than the strength, because right heads are correlated.
        strength = np.clip(strength + 0.8 * gap, WEAKEST, STRONGEST)
    return strength


def flatten(cells: Sequence[IntArray]) -> tuple[IntArray, IntArray]:
    """Return the heads of all trees in one array, and the start of each tree."""
    sizes = np.fromiter(map(len, cells), dtype=np.int64, count=len(cells))
    flat: npt.NDArray[Any] = np.concatenate(list(cells)) if len(cells) else np.zeros(0, dtype=np.int64)
    heads = flat if flat.ndim == 1 else np.ascontiguousarray(flat[:, 0])
    return heads, np.concatenate([[0], np.cumsum(sizes)])


def _is_heads(cell: object) -> bool:
    return isinstance(cell, np.ndarray) and cell.ndim == 1 and cell.dtype == np.int64


def _fault(heads: IntArray, fault: int, token: int) -> str:
    if fault == 1:
        hint = " Sentences of different lengths go into an object array, without padding." if heads[-1] < 0 else ""
        return (
            f"token {token} has head {heads[token - 1]}; with {len(heads)} tokens a head is 0 (the root) to "
            f"{len(heads)}.{hint}"
        )
    if fault == 2:
        return f"token {token} is its own head."
    if fault == 3:
        return f"none of the {len(heads)} tokens has head 0; exactly one token must be the root."
    if fault == 4:
        first = int(np.flatnonzero(heads == 0)[0]) + 1
        return f"tokens {first} and {token} both have head 0; a tree has one root."
    if fault == 5:
        cycle = [token]
        while len(cycle) < 2 or cycle[-1] != token:
            cycle.append(int(heads[cycle[-1] - 1]))
        shown = " -> ".join(map(str, cycle[:8])) + (" ..." if len(cycle) > 8 else "")
        return f"token {token} lies on a cycle ({shown}), so this is not a tree."
    return "there are no tokens in it."

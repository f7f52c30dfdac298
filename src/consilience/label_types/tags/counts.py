"""Counting answers and adding up what they say, and first-order chains: forward-backward and Viterbi.

Questions, or the positions of sequences, come one after the other, item by item: those of item i are from
``starts[i]`` to ``starts[i + 1]``. Codes ``(questions, m)`` are the answers of m sources, negative where there is none.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from consilience.arrays import Batch, BoolArray, FloatArray, IntArray


def count_pairs(codes: Batch, starts: IntArray) -> FloatArray:
    """Return how often each two sources answer alike, item by item.

    With T the questions of an item that both answer and S those that they answer alike, these are the ``(6, m, m)``
    sums over items of [T > 0], T, S, T T, T S and S S.
    """
    m = codes.shape[1]
    sums, answers = np.zeros((6, m, m)), np.ascontiguousarray(codes.T)
    given = answers >= 0

    def by_item(flags: BoolArray) -> FloatArray:
        total = np.zeros((len(flags), flags.shape[1] + 1), dtype=np.int32)
        np.cumsum(flags, axis=1, out=total[:, 1:])
        return np.diff(total[:, starts]).astype(np.float64)

    for a in range(m):
        asked, same = by_item(given[a] & given[a:]), by_item(given[a] & (answers[a] == answers[a:]))
        products = [np.einsum("an,an->a", *pair) for pair in ((asked, asked), (asked, same), (same, same))]
        sums[:, a, a:] = (asked > 0).sum(axis=1), asked.sum(axis=1), same.sum(axis=1), *products
    return sums + np.triu(sums, 1).transpose(0, 2, 1)


def joint_answers(codes: Batch, kind: IntArray, kinds: int, k: int) -> IntArray:
    """Return ``(kinds, m, k, m, k)`` how often two sources give each two answers to the same question of a kind."""
    m, width = codes.shape[1], k + 1
    joint = np.zeros((kinds, m, k, m, k), dtype=np.int64)
    answers = np.ascontiguousarray(np.where(codes >= 0, codes, k).T, dtype=np.int64)  # "no answer" is one more answer
    for a in range(m):
        first = (kind * width + answers[a]) * width
        for b in range(a, m):
            table = np.bincount(first + answers[b], minlength=kinds * width**2).reshape(kinds, width, width)
            joint[:, a, :, b], joint[:, b, :, a] = table[:, :k, :k], table[:, :k, :k].swapaxes(1, 2)
    return joint


def add_evidence(codes: Batch, kind: IntArray, share: FloatArray, evidence: FloatArray) -> FloatArray:
    """Return ``(questions, k)`` what the answers given say about each true answer.

    An answer counts by its share ``(questions, m)``; the evidence ``(m, kinds, k, k)`` holds log probabilities by
    source, kind, true answer and answer given.
    """
    scores = np.zeros((len(codes), evidence.shape[2]))
    for own, weight, said in zip(codes.T, share.T, evidence.swapaxes(2, 3), strict=True):
        # A source without an answer has no share.
        scores += weight[:, None] * said[kind, np.maximum(own, 0)]
    return scores


def count_answers(codes: Batch, kind: IntArray, belief: FloatArray, kinds: int, k: int) -> FloatArray:
    """Return the expected numbers of answers, ``(m, kinds, c, k)`` by source, kind, true answer and answer given."""
    m, truths = codes.shape[1], belief.shape[1]
    counts = np.zeros((m, kinds, truths, k))
    for a, own in enumerate(codes.T):
        rows = np.flatnonzero(own >= 0)
        cell = kind[rows] * k + own[rows]
        for c in range(truths):
            counts[a, :, c] = np.bincount(cell, belief[rows, c], minlength=kinds * k).reshape(kinds, k)
    return counts


# --- chains ---------------------------------------------------------------------------------------------------


def _places(starts: IntArray) -> Iterator[IntArray]:
    """Yield the first positions of all sequences, then the second ones, ...; longer sequences come first."""
    lengths = np.diff(starts)
    order = np.argsort(-lengths, kind="stable")
    for place in range(int(lengths.max(initial=0))):
        yield starts[order[: int((lengths > place).sum())]] + place


def chain_round(
    scores: FloatArray, starts: IntArray, initial: FloatArray, transition: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Run forward-backward on every sequence, all side by side.

    `scores` are the ``(positions, k)`` log-likelihoods of the votes; `initial` and `transition` are probabilities, rows
    the tag before. Returns the ``(positions, k)`` marginals, and the expected numbers of first tags and of steps from
    one tag to the next. Where the past rules out all that the evidence allows, the chain starts anew.
    """
    evidence = np.exp(scores - scores.max(axis=1, keepdims=True, initial=-np.inf))
    forward, backward, places = np.zeros_like(scores), np.ones_like(scores), list(_places(starts))
    for place, here in enumerate(places):
        mass = (forward[here - 1] @ transition if place else initial) * evidence[here]
        mass = np.where(mass.sum(axis=1, keepdims=True) > 0.0, mass, evidence[here])
        forward[here] = mass / mass.sum(axis=1, keepdims=True)
    steps = np.zeros_like(transition)
    for here in places[:0:-1]:
        before, onward = forward[here - 1], evidence[here] * backward[here]
        reach = onward @ transition.T
        mass = (reach * before).sum(axis=1, keepdims=True)
        possible = mass > 0.0
        mass = np.where(possible, mass, 1.0)
        backward[here - 1] = np.where(possible, reach / mass, 1.0)
        steps += transition * ((before * possible / mass).T @ onward)
    both = forward * backward
    total = both.sum(axis=1, keepdims=True)
    marginals = np.where(total > 0.0, both / np.where(total > 0.0, total, 1.0), forward)
    return marginals, marginals[places[0]].sum(axis=0) if places else np.zeros_like(initial), steps


def best_paths(
    scores: FloatArray, starts: IntArray, initial: FloatArray, transition: FloatArray
) -> npt.NDArray[np.int64]:
    """Return for each sequence the tags of the largest sum of scores and log probabilities (Viterbi)."""
    with np.errstate(divide="ignore"):
        initial, transition = np.log(initial), np.log(transition)
    came, best, places = np.zeros(scores.shape, np.int64), np.zeros_like(scores), list(_places(starts))
    for place, here in enumerate(places):
        reached = initial
        if place:
            paths = best[here - 1][:, :, None] + transition
            came[here] = paths.argmax(axis=1)
            reached = paths.max(axis=1)
        best[here] = reached + scores[here]
    chosen = best.argmax(axis=1)  # at the last positions; those before follow
    for here in places[:0:-1]:
        chosen[here - 1] = came[here, chosen[here]]
    return chosen

"""Counting answers and adding up what they say, and first-order chains: forward-backward and Viterbi."""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

from consilience.arrays import Batch, FloatArray, IntArray

__all__ = ["add_evidence", "best_paths", "chain_round", "count_answers", "count_pairs"]


@numba.njit(cache=True, nogil=True)
def count_pairs(
    codes: Batch, kind: IntArray, starts: IntArray, joint: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    """Count what each two sources answer together, question by question and item by item.

    `codes`, `kind` and `starts` are those of `Questions`; numbers of joint answers are added to the
    ``(kinds, m, k, m, k)`` table `joint`, unless it is empty. With T the questions of an item that both answer and S
    those that they answer alike, the ``(6, m, m)`` sums over items of [T > 0], T, S, T T, T S and S S are returned.
    """
    m = codes.shape[1]
    sums = np.zeros((6, m, m))
    who = np.empty(m, np.int64)
    alike = np.zeros((m, m))
    asked = np.zeros((m, m))
    for i in range(starts.shape[0] - 1):
        seen = 0
        for a in range(m):
            for u in range(starts[i], starts[i + 1]):
                if codes[u, a] >= 0:
                    who[seen] = a
                    seen += 1
                    break
        for u in range(starts[i], starts[i + 1]):
            for x in range(seen):
                a = who[x]
                if codes[u, a] < 0:
                    continue
                for y in range(seen):
                    b = who[y]
                    if codes[u, b] < 0:
                        continue
                    asked[x, y] += 1.0
                    if codes[u, a] == codes[u, b]:
                        alike[x, y] += 1.0
                    if joint.shape[0] > 0:
                        joint[kind[u], a, codes[u, a], b, codes[u, b]] += 1
        for x in range(seen):
            for y in range(seen):
                a, b, both, same = who[x], who[y], asked[x, y], alike[x, y]
                if both > 0.0:
                    sums[0, a, b] += 1.0
                    sums[1, a, b] += both
                    sums[2, a, b] += same
                    sums[3, a, b] += both * both
                    sums[4, a, b] += both * same
                    sums[5, a, b] += same * same
                asked[x, y] = 0.0
                alike[x, y] = 0.0
    return sums


@numba.njit(cache=True, nogil=True)
def add_evidence(codes: Batch, kind: IntArray, share: FloatArray, evidence: FloatArray, scores: FloatArray) -> None:
    """Add to the ``(questions, k)`` scores of each true answer what the answers given say about it.

    An answer counts by its share ``(questions, m)``; the evidence ``(m, kinds, k, k)`` holds log probabilities by
    source, kind, true answer and answer given.
    """
    k = scores.shape[1]
    for u in range(codes.shape[0]):
        for a in range(codes.shape[1]):
            code = codes[u, a]
            if code >= 0:
                for c in range(k):
                    scores[u, c] += share[u, a] * evidence[a, kind[u], c, code]


@numba.njit(cache=True, nogil=True)
def count_answers(codes: Batch, kind: IntArray, belief: FloatArray, counts: FloatArray) -> None:
    """Add the expected numbers of answers, ``(m, kinds, k, k)`` by source, kind, true answer and answer given."""
    k = belief.shape[1]
    for u in range(codes.shape[0]):
        for a in range(codes.shape[1]):
            code = codes[u, a]
            if code >= 0:
                for c in range(k):
                    counts[a, kind[u], c, code] += belief[u, c]


@numba.njit(cache=True, nogil=True)
def chain_round(
    scores: FloatArray,
    starts: IntArray,
    initial: FloatArray,
    transition: FloatArray,
    marginals: FloatArray,
    first: FloatArray,
    steps: FloatArray,
) -> None:
    """Run forward-backward on every sequence.

    `scores` are the ``(positions, k)`` log-likelihoods of the votes, of all sequences one after the other; `initial`
    and `transition` are probabilities, rows the tag before. Writes the ``(positions, k)`` `marginals`, and adds the
    expected numbers of first tags to `first` and of steps from one tag to the next to `steps`. Where the past rules out
    all that the evidence allows, the chain starts anew.
    """
    k = initial.shape[0]
    for i in range(starts.shape[0] - 1):
        begin, length = starts[i], starts[i + 1] - starts[i]
        evidence, forward, backward = np.empty((length, k)), np.empty((length, k)), np.ones((length, k))
        for t in range(length):
            evidence[t] = np.exp(scores[begin + t] - scores[begin + t].max())
            forward[t] = (initial if t == 0 else forward[t - 1] @ transition) * evidence[t]
            if forward[t].sum() <= 0.0:
                forward[t] = evidence[t]
            forward[t] /= forward[t].sum()
        for t in range(length - 2, -1, -1):
            reach = transition @ (evidence[t + 1] * backward[t + 1])
            mass = (reach * forward[t]).sum()
            if mass > 0.0:
                backward[t] = reach / mass
        for t in range(length):
            both = forward[t] * backward[t]
            marginals[begin + t] = both / both.sum() if both.sum() > 0.0 else forward[t]
            if t == 0:
                first += marginals[begin]
                continue
            joint = np.outer(forward[t - 1], evidence[t] * backward[t]) * transition
            if joint.sum() > 0.0:
                steps += joint / joint.sum()


@numba.njit(cache=True, nogil=True)
def best_paths(scores: FloatArray, starts: IntArray, initial: FloatArray, transition: FloatArray) -> IntArray:
    """Return for each sequence the tags of the largest sum of scores (Viterbi); minus infinity is impossible."""
    k = initial.shape[0]
    chosen = np.zeros(scores.shape[0], np.int64)
    for i in range(starts.shape[0] - 1):
        begin, end = starts[i], starts[i + 1]
        came = np.zeros((end - begin, k), np.int64)
        best = initial
        for t in range(begin, end):
            if t > begin:
                before = best
                best = np.empty(k)
                for c in range(k):
                    came[t - begin, c] = np.argmax(before + transition[:, c])
                    best[c] = before[came[t - begin, c]] + transition[came[t - begin, c], c]
            best = best + scores[t]
        for t in range(end - 1, begin - 1, -1):
            chosen[t] = np.argmax(best) if t == end - 1 else came[t + 1 - begin, chosen[t + 1]]
    return chosen

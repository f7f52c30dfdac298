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

    Parameters
    ----------
    codes
        ``(questions, m)`` answers, below 0 where there is none.
    kind
        ``(questions,)`` which of the kinds of questions each one is.
    starts
        ``(n + 1,)`` first question of each item, and the end of the last.
    joint
        ``(kinds, m, k, m, k)``; numbers of joint answers are added to it, unless it is empty.

    Returns
    -------
    array of shape (6, m, m)
        With T the questions of an item that both answer and S those that they answer alike, the sums over items of
        [T > 0], T, S, T T, T S and S S.
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

    Parameters
    ----------
    share
        ``(questions, m)`` by how much each answer counts.
    evidence
        ``(m, kinds, k, k)`` log probabilities by source, kind, true answer and answer given.
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
def _forward_backward(
    evidence: FloatArray, initial: FloatArray, transition: FloatArray, forward: FloatArray, backward: FloatArray
) -> float:
    """Fill in scaled forward and backward messages of one sequence; return the log-likelihood.

    Rows of `evidence` are likelihoods up to a factor. Where the past rules out everything that the evidence allows,
    the chain starts anew.
    """
    length, k = evidence.shape
    total = 0.0
    for t in range(length):
        mass = 0.0
        for c in range(k):
            if t == 0:
                reach = initial[c]
            else:
                reach = 0.0
                for b in range(k):
                    reach += forward[t - 1, b] * transition[b, c]
            forward[t, c] = reach * evidence[t, c]
            mass += forward[t, c]
        if mass <= 0.0:
            for c in range(k):
                forward[t, c] = evidence[t, c]
                mass += evidence[t, c]
        for c in range(k):
            forward[t, c] /= mass
        total += np.log(mass)
    for c in range(k):
        backward[length - 1, c] = 1.0
    for t in range(length - 2, -1, -1):
        mass = 0.0
        for b in range(k):
            value = 0.0
            for c in range(k):
                value += transition[b, c] * evidence[t + 1, c] * backward[t + 1, c]
            backward[t, b] = value
            mass += value * forward[t, b]
        if mass <= 0.0:
            for b in range(k):
                backward[t, b] = 1.0
        else:
            for b in range(k):
                backward[t, b] /= mass
    return total


@numba.njit(cache=True, nogil=True)
def chain_round(
    scores: FloatArray,
    starts: IntArray,
    initial: FloatArray,
    transition: FloatArray,
    marginals: FloatArray,
    first: FloatArray,
    steps: FloatArray,
) -> float:
    """Run forward-backward on every sequence; return the log-likelihood.

    Writes ``(positions, k)`` `marginals`, and adds the expected numbers of first tags to `first` and of steps from one
    tag to the next to `steps`.
    """
    k = initial.shape[0]
    likelihood = 0.0
    for i in range(starts.shape[0] - 1):
        begin, end = starts[i], starts[i + 1]
        length = end - begin
        if length == 0:
            continue
        evidence = np.empty((length, k))
        for t in range(length):
            top = scores[begin + t, 0]
            for c in range(1, k):
                top = max(top, scores[begin + t, c])
            likelihood += top
            for c in range(k):
                evidence[t, c] = np.exp(scores[begin + t, c] - top)
        forward = np.empty((length, k))
        backward = np.empty((length, k))
        likelihood += _forward_backward(evidence, initial, transition, forward, backward)
        for t in range(length):
            mass = 0.0
            for c in range(k):
                marginals[begin + t, c] = forward[t, c] * backward[t, c]
                mass += marginals[begin + t, c]
            for c in range(k):
                if mass > 0.0:
                    marginals[begin + t, c] /= mass
                else:
                    marginals[begin + t, c] = forward[t, c]
        for c in range(k):
            first[c] += marginals[begin, c]
        for t in range(1, length):
            mass = 0.0
            for b in range(k):
                for c in range(k):
                    mass += forward[t - 1, b] * transition[b, c] * evidence[t, c] * backward[t, c]
            if mass > 0.0:
                for b in range(k):
                    for c in range(k):
                        joint = forward[t - 1, b] * transition[b, c] * evidence[t, c] * backward[t, c]
                        steps[b, c] += joint / mass
    return likelihood


@numba.njit(cache=True, nogil=True)
def best_paths(scores: FloatArray, starts: IntArray, initial: FloatArray, transition: FloatArray) -> IntArray:
    """Return for each sequence the tags of the largest sum of scores (Viterbi).

    Parameters
    ----------
    scores
        ``(positions, k)``.
    initial, transition
        Scores of a first tag ``(k,)`` and of a step ``(k, k)``; minus infinity is impossible.
    """
    k = initial.shape[0]
    chosen = np.zeros(scores.shape[0], np.int64)
    for i in range(starts.shape[0] - 1):
        begin, end = starts[i], starts[i + 1]
        if begin == end:
            continue
        came = np.zeros((end - begin, k), np.int64)
        best = initial + scores[begin]
        for t in range(begin + 1, end):
            reached = np.empty(k)
            for c in range(k):
                top, source = best[0] + transition[0, c], 0
                for b in range(1, k):
                    value = best[b] + transition[b, c]
                    if value > top:
                        top, source = value, b
                reached[c] = top + scores[t, c]
                came[t - begin, c] = source
            best = reached
        chosen[end - 1] = np.argmax(best)
        for t in range(end - 1, begin, -1):
            chosen[t - 1] = came[t - begin, chosen[t]]
    return chosen

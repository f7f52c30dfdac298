"""First-order chains over the positions of sequences: forward-backward, expected counts, Viterbi."""

from __future__ import annotations

import numba
import numpy as np

from consilience.arrays import FloatArray, IntArray

__all__ = ["best_paths", "chain_marginals", "chain_round"]


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
def chain_marginals(scores: FloatArray, starts: IntArray, initial: FloatArray, transition: FloatArray) -> FloatArray:
    """Return ``(positions, k)`` probabilities of the tags given all votes of the sequence.

    Parameters
    ----------
    scores
        ``(positions, k)`` log-likelihoods of the votes at every position, of all sequences one after the other.
    starts
        ``(n + 1,)`` first position of each sequence, and the end of the last.
    initial, transition
        ``(k,)`` and ``(k, k)``, rows the tag before.
    """
    counts = np.zeros(scores.shape)
    first = np.zeros(initial.shape)
    steps = np.zeros(transition.shape)
    chain_round(scores, starts, initial, transition, counts, first, steps)
    return counts


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

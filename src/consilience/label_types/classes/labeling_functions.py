"""Labeling functions: sources that vote for some classes only, and abstain where they have nothing to say.

A vote is an *event*. A confusion table would collapse here, because a source that always votes for the same class has
no variance; one number per table says how good votes are, from how often two of them on the same item agree. Careful
authors make functions of one precision P(class | vote), whatever the class. The score of class c is then

    log p_c + sum over the votes of log(precision[vote, c] / p_c),     p: class shares of the items with a vote,

and EM learns p. Where the balance is told, it is the first p, and the p that votes are measured against is such that
labels have the told balance on average. If votes for rare classes are less often right, which pairs of votes show
(`precision_is_common`), one error rate P(vote | class) is common instead, and p counts once: ``log p_c + sum log P(vote
| c)``. Known labels replace the common number event by event, as far as their evidence goes.
"""

from __future__ import annotations

import numpy as np

from consilience.arrays import BoolArray, FloatArray
from consilience.label_types.dirichlet import shrink_counts

#: Sources are judges if they use more than this share of the vocabulary: halfway between half of it (of two classes,
#: one) and all of it.
WHOLE_VOCABULARY = 0.75
#: Quality before any two votes were compared, as the trust engine has it, and the items that this guess is worth.
USUAL_QUALITY, GUESS_ITEMS = 0.5, 50.0
#: Precisions outside are not believed: below, functions would be of no use; above, agreement is shared error.
PRECISION_RANGE = (0.6, 0.95)
#: Functions that give the same vote on this share of the items where either votes repeat each other; any value between
#: .6 and .9 gives the same labels on real functions.
SAME_VOTES = 0.8
#: Fewer votes may be the same by accident.
MIN_VOTES = 10
#: Rounds of EM for a class balance and one error rate.
ROUNDS = 100


def vote_only_some_classes(votes: FloatArray) -> bool:
    """Return whether sources are labeling functions, which leave out classes that other sources vote for.

    Compared is the number of (source, class) cells with a vote with the number that chance would fill if everybody
    voted for every class that occurs, so that few votes or rare classes do not make a judge a labeling function.

    >>> vote_only_some_classes(np.array([[30, 0], [0, 20], [25, 0]]))
    True
    """
    cast = votes.sum(axis=1, keepdims=True)
    share = votes.sum(axis=0) / max(float(votes.sum()), 1.0)
    if (share > 0).sum() < 2:
        return False
    by_chance = -np.expm1(-cast * share)
    return bool((votes > 0).sum() < WHOLE_VOCABULARY * by_chance.sum())


def common_precision(agree: FloatArray, both: FloatArray, votes: FloatArray, apart: BoolArray) -> float:
    """Return the precision of a vote from how often each two sources agree, and on how many items both vote.

    Two functions of one class always agree, however good they are, so that what counts is how much more often votes on
    one item agree than votes on different items do. If classes are equally frequent and a vote is right with
    probability ``(1 + (k - 1) q) / k``, the odds of agreement are ``(1 + (k - 1) q^2) / (1 - q^2)`` times those of
    chance. `votes` ``(m, k)`` are counted by source and class; only pairs that are `apart` are compared.
    """
    k = votes.shape[1]
    cast, skill = votes.sum(axis=1), USUAL_QUALITY
    share = votes.sum(axis=0) / max(float(cast.sum()), 1.0)
    alike = np.einsum("ac,bc,ab->c", votes, votes, apart)
    others = float((np.outer(cast, cast) * apart).sum()) - float(alike.sum())
    if alike.any() and others > 0.0:  # otherwise no quality could change who agrees
        gain = float(alike @ (1.0 / np.maximum(share, 1e-12) - 1.0))
        odds = (alike.sum() + skill**2 * gain) / (others * (1.0 - skill**2))
        agreed, compared = (float((pairs * apart).sum()) / 2.0 for pairs in (agree, both))
        agreement = (agreed + GUESS_ITEMS * odds / (1.0 + odds)) / (compared + GUESS_ITEMS)
        odds = agreement / max(1.0 - agreement, 1e-12) * others
        skill = float(np.sqrt(max(odds - alike.sum(), 0.0) / (odds + gain)))
    return float(np.clip((1.0 + (k - 1) * skill) / k, *PRECISION_RANGE))


def event_tables(precision: float, gold: FloatArray) -> FloatArray:
    """Return P(class | vote) of every event, as ``[source, vote, class]`` like the votes `gold` on known items.

    First all functions that vote for a class are compared with the common precision, then each with the others.
    """
    k = gold.shape[1]
    wrong = (1.0 - precision) / (k - 1)
    anchor = np.full((k, k), wrong) + (precision - wrong) * np.eye(k)
    if not gold.any():
        return np.tile(anchor, (len(gold), 1, 1))
    of_vote = shrink_counts(gold.sum(axis=0), anchor)
    return shrink_counts(gold, np.broadcast_to(of_vote, gold.shape))


def within_balance(table: FloatArray, fired: FloatArray, balance: FloatArray) -> FloatArray:
    """Return P(class | vote) with which no function is right more often than there are items of the class.

    `fired` has the votes per item of each event, `balance` the class shares of all items.
    """
    k = len(balance)
    own = np.einsum("avv->av", table)
    limit = np.minimum(own, balance / np.maximum(fired, 1e-12))
    others = np.where(np.eye(k, dtype=bool), 0.0, np.broadcast_to(balance, (k, k)))
    others = others / np.maximum(others.sum(axis=1, keepdims=True), 1e-12)
    capped = (1.0 - limit)[:, :, None] * others + limit[:, :, None] * np.eye(k)
    return np.where((limit < own)[:, :, None], capped, table)


def precision_is_common(pairs: FloatArray) -> bool:
    """Return whether votes for a rare class are as often right as those for a frequent one.

    Two votes on one item are compared with what either assumption makes of them, each at its most likely parameters:
    one precision ``P(class | vote)`` for all votes, or one error rate ``P(vote | class)`` for all classes. The second
    is that of the plain vote, so the first has to be twenty times as likely. Pairs of votes on two classes never tell;
    there, as in the real sets of functions with more classes, precision is taken as common. `pairs` says how often two
    functions vote for these classes on one item, each pair once in either order.
    """
    from scipy.optimize import minimize_scalar

    counts = (pairs + pairs.T) / 4.0
    total, k = float(counts.sum()), len(counts)
    if total == 0.0 or k < 3:
        return k < 3
    share = counts.sum(axis=1) / total

    def by_precision(right: float) -> float:
        precision = np.full((k, k), (1.0 - right) / (k - 1)) + (right - (1.0 - right) / (k - 1)) * np.eye(k)
        meant = share[:, None] * precision
        joint = (meant / np.maximum(meant.sum(axis=0), 1e-12)) @ meant.T
        return -float((counts * np.log(np.maximum(joint, 1e-12))).sum())

    best = minimize_scalar(by_precision, bounds=(1.0 / k, 0.995), method="bounded").fun
    balance, wrong = share + 1e-6, 0.2
    for _ in range(ROUNDS):
        right, other = 1.0 - wrong, wrong / (k - 1)
        joint = right * other * (balance[:, None] + balance) + other**2 * (1.0 - balance[:, None] - balance)
        np.fill_diagonal(joint, right**2 * balance + other**2 * (1.0 - balance))
        ratio = counts / np.maximum(joint, 1e-12)
        one, two = 2.0 * (ratio.sum(axis=1) - np.diag(ratio)), np.diag(ratio)
        of_class = right**2 * two, right * other * one, other**2 * (ratio.sum() - one - two)
        belief = balance * np.sum(of_class, axis=0)
        wrong = float(balance @ (0.5 * of_class[1] + of_class[2])) / max(float(belief.sum()), 1e-12)
        balance = belief / max(float(belief.sum()), 1e-12)
        wrong = min(max(wrong, 1e-6), 1.0 - 1.0 / k)
    by_rate = -float((counts * np.log(np.maximum(joint, 1e-12))).sum())
    return by_rate - best > np.log(20.0)


def repeated_votes(agree: FloatArray, both: FloatArray) -> tuple[FloatArray, BoolArray]:
    """Return the share of common votes of each two functions, and who repeats whom, each ``(m, m)``.

    Two functions may well agree for good reasons; only who votes on the same items is a copy.
    """
    count = np.diag(both)
    union = np.maximum(count[:, None] + count[None, :] - both, 1.0)
    share = agree / union
    np.fill_diagonal(share, 0.0)
    enough = np.minimum(count[:, None], count[None, :]) >= MIN_VOTES
    return share, (share >= SAME_VOTES) & enough


def covered_balance(
    balance: FloatArray, fired: FloatArray, table: FloatArray, coverage: float
) -> tuple[FloatArray, FloatArray]:
    """Return the class shares of the items with a vote and of those without, from the balance of all items.

    Functions that look for a rare class cover it far more often. An item of class c has on average
    ``sum over events of rate * P(c | event) / balance_c`` votes, so that it has at least one with probability
    ``1 - exp(-clumping * that)``; the clumping of votes makes the coverage of all items the observed one. `fired` has
    the votes per item of each event.
    """
    balance = np.maximum(balance, 1e-6)
    votes = np.einsum("av,avc->c", fired, table) / balance
    low, high = 0.0, 1e6
    for _ in range(100):
        clumping = (low + high) / 2.0
        if float(balance @ -np.expm1(-clumping * votes)) < coverage:
            low = clumping
        else:
            high = clumping
    covered = balance * -np.expm1(-low * votes)
    left = np.maximum(balance - covered, 1e-9)
    return covered / max(float(covered.sum()), 1e-12), left / left.sum()

"""Labeling functions: sources that vote for some classes only, and abstain where they have nothing to say.

A vote is an *event*. What it says is its precision P(class | vote), which is about the same for all events of careful
authors: one number per table, from how often two votes on the same item agree. A confusion table would collapse here,
because a source that always votes for the same class has no variance. The score of class c is

    log p_c + sum over the votes of log(precision[vote, c] / p_c),     p: class shares of the items with a vote,

and EM learns p. Known labels replace the common precision event by event, as far as their evidence goes.

Where functions fire independently given the class, as real ones hardly do, abstaining is evidence, too, and is treated
as one more vote of a judge. How often each two events fire together shows whether they do (`firing_rates`).
"""

from __future__ import annotations

import numpy as np

from consilience.arrays import BoolArray, FloatArray
from consilience.label_types.dirichlet import shrink_counts

__all__ = [
    "common_precision",
    "covered_balance",
    "event_tables",
    "firing_rates",
    "repeated_votes",
    "vote_only_some_classes",
    "within_balance",
]

#: Sources are judges if they use more than this share of the vocabulary: halfway between half of it (of two classes,
#: one) and all of it.
WHOLE_VOCABULARY = 0.75
#: Precision before any two votes were compared, and the items that this guess is worth.
USUAL_PRECISION, GUESS_ITEMS = 0.8, 50.0
#: Precisions outside are not believed: below, functions would be of no use; above, agreement is shared error.
PRECISION_RANGE = (0.6, 0.95)
#: Functions that give the same vote on this share of the items where either votes repeat each other; any value between
#: .6 and .9 gives the same labels on real functions.
SAME_VOTES = 0.8
#: Fewer votes may be the same by accident.
MIN_VOTES = 10
#: Chi-square per degree of freedom up to which functions fire independently given the class: simulated ones have .3 to
#: 1.3, real ones 10 and more; any limit between 1.5 and 3 gives the same labels.
INDEPENDENT = 1.5
#: Pairs of events that are expected to fire together so often are compared, and so many more of them than parameters.
MIN_EXPECTED, MIN_FREEDOM = 3.0, 10
#: Beyond so many events the comparison is left out.
MAX_EVENTS = 256


def vote_only_some_classes(votes: FloatArray) -> bool:
    """Return whether sources are labeling functions, which leave out classes that other sources vote for.

    Compared is the number of (source, class) cells with a vote with the number that chance would fill if everybody
    voted for every class that occurs, so that few votes or rare classes do not make a judge a labeling function.

    Parameters
    ----------
    votes
        ``(m, k)`` how often each source votes for each class.

    Examples
    --------
    >>> vote_only_some_classes(np.array([[30, 0], [0, 20], [25, 0]]))
    True
    >>> vote_only_some_classes(np.array([[30, 10], [20, 20], [25, 1]]))
    False
    """
    cast = votes.sum(axis=1, keepdims=True)
    share = votes.sum(axis=0) / max(float(votes.sum()), 1.0)
    if (share > 0).sum() < 2:
        return False
    by_chance = -np.expm1(-cast * share)
    return bool((votes > 0).sum() < WHOLE_VOCABULARY * by_chance.sum())


def common_precision(agree: FloatArray, both: FloatArray, k: int) -> float:
    """Return the precision of a vote from how often two votes on the same item agree.

    Two votes that are right with probability A agree with probability ``A^2 + (1 - A)^2 / (k - 1)``.

    Parameters
    ----------
    agree, both
        ``(m, m)`` how often two sources agree, and on how many items both vote.
    """
    off = ~np.eye(len(both), dtype=bool)
    usual = USUAL_PRECISION**2 + (1 - USUAL_PRECISION) ** 2 / (k - 1)
    agreement = (agree[off].sum() / 2 + GUESS_ITEMS * usual) / (both[off].sum() / 2 + GUESS_ITEMS)
    skill = np.sqrt(max(agreement - 1.0 / k, 0.0) / (1.0 - 1.0 / k))
    return float(np.clip((1.0 + (k - 1) * skill) / k, *PRECISION_RANGE))


def event_tables(precision: float, gold: FloatArray) -> FloatArray:
    """Return P(class | vote) of every event, ``(m, k, k)`` as ``[source, vote, class]``.

    Parameters
    ----------
    precision
        Common to all events.
    gold
        ``(m, k, k)`` votes on items whose class is known; first all functions that vote for a class are compared with
        the common precision, then each of them with the others.
    """
    k = gold.shape[1]
    wrong = (1.0 - precision) / (k - 1)
    anchor = np.full((k, k), wrong) + (precision - wrong) * np.eye(k)
    if not gold.any():
        return np.tile(anchor, (len(gold), 1, 1))
    of_vote = shrink_counts(gold.sum(axis=0), anchor)
    return shrink_counts(gold, np.broadcast_to(of_vote, gold.shape))


def within_balance(table: FloatArray, fired: FloatArray, balance: FloatArray) -> FloatArray:
    """Return precisions with which no function is right more often than there are items of the class.

    Parameters
    ----------
    table
        ``(m, k, k)`` P(class | vote).
    fired
        ``(m, k)`` votes per item.
    balance
        ``(k,)`` class shares of all items.
    """
    k = len(balance)
    own = np.einsum("avv->av", table)
    limit = np.minimum(own, balance / np.maximum(fired, 1e-12))
    others = np.where(np.eye(k, dtype=bool), 0.0, np.broadcast_to(balance, (k, k)))
    others = others / np.maximum(others.sum(axis=1, keepdims=True), 1e-12)
    capped = (1.0 - limit)[:, :, None] * others + limit[:, :, None] * np.eye(k)
    return np.where((limit < own)[:, :, None], capped, table)


def firing_rates(
    pairs: FloatArray, votes: FloatArray, n_items: float, precision: float
) -> tuple[FloatArray, FloatArray] | None:
    """Return P(vote | class) of functions that fire independently given the class, and the class shares; or None.

    The joint counts of events are then ``sum over classes of n p_c P(x | c) P(y | c)``, which multiplicative updates
    fit under the Poisson likelihood; an event that always fires carries the margins. None where pairs contradict that
    form, or are too few to tell.

    Parameters
    ----------
    pairs
        ``(m * k, m * k)`` how often two events fire together.
    votes
        ``(m, k)``.

    Returns
    -------
    rates
        ``(m, k, k)`` as ``[source, vote, class]``.
    shares
        ``(k,)`` class shares of all items.
    """
    m, k = votes.shape
    alive = np.flatnonzero(votes.ravel() > 0)
    if len(alive) > MAX_EVENTS:
        return None
    source, count = np.repeat(np.arange(m), k)[alive], votes.ravel()[alive]
    size = len(alive) + 1
    joint = np.full((size, size), n_items)
    joint[1:, 1:] = pairs[np.ix_(alive, alive)]
    joint[0, 1:] = joint[1:, 0] = count
    told = np.ones((size, size))
    told[1:, 1:] = source[:, None] != source[None, :]
    wrong = (1.0 - precision) / (k - 1)
    claimed = np.tile(np.arange(k), m)[alive]
    factor = np.empty((size, k))
    factor[0] = np.sqrt(n_items / k)
    factor[1:] = count[:, None] * np.where(claimed[:, None] == np.arange(k), precision, wrong) / factor[0]
    for _ in range(300):
        ratio = told * joint / np.maximum(factor @ factor.T, 1e-12)
        factor = factor * np.sqrt((ratio @ factor) / np.maximum(told @ factor, 1e-12))
    expected = (factor @ factor.T)[1:, 1:]
    compared = np.triu(told[1:, 1:] > 0, 1) & (expected >= MIN_EXPECTED)
    freedom = int(compared.sum()) - len(alive) * (k - 1)
    if freedom < MIN_FREEDOM:
        return None
    misfit = ((joint[1:, 1:] - expected) ** 2 / np.maximum(expected, 1e-12))[compared].sum() / freedom
    if misfit > INDEPENDENT:
        return None
    rates = np.zeros((m * k, k))
    rates[alive] = np.clip(factor[1:] / factor[0], 0.0, 1.0)
    return rates.reshape(m, k, k), factor[0] ** 2 / float((factor[0] ** 2).sum())


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
    ``1 - exp(-clumping * that)``; the clumping of votes makes the coverage of all items the observed one.

    Parameters
    ----------
    balance
        ``(k,)`` told by the user.
    fired
        ``(m, k)`` votes per item.
    table
        ``(m, k, k)`` P(class | vote).
    coverage
        Share of the items with a vote.
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

"""The trust engine: from a table of pairwise agreements to weighted explanations of it.

It knows no label type and no votes. With ``q_a = tanh(u_a)`` the correlation of a source's votes with the truth, and
``k_a^2`` the share of its error variance that it has in common with its group,

    y_ab  = phi(u_a) . phi(u_b) + [one group] k_a k_b sqrt((1 - q_a^2)(1 - q_b^2)) + error_ab
    u     ~ t(mu 1, tau^2 R),    R_ab = k_a k_b in a group: who repeats another is as good as that one;
             or 0, for a share of the sources ~ Beta(1, USELESS)
             or, where nobody shares errors, in kinds of about equally good sources: R_ab = PEERS in a kind
    mu    ~ N(MEAN, SPREAD^2)
    copies:  k_a^2 ~ U(0, 1) for every member
    schools: members vote around their own version of the truth, of squared quality v^2 ~ U(0, 1) for every group, so
             that k_a k_b sqrt(...) = q_a q_b (1 / v^2 - 1)
    var error_ab = s_ab^2 + omega^2,   s_ab from the table, omega the misfit of the whole explanation
    groups ~ none but those given, with probability INDEPENDENT; among these, with probability SORTED,
             kinds: everyone is of one of two to four, whose shares are uniform on the simplex; otherwise
             copies: one group more is half as probable; all numbers of members, then all choices of them, are alike
             schools: everyone belongs to one of two to four, whose shares are uniform on the simplex

At most half of the sources follow the same error, and most sources do not oppose the truth. This assumption is a
probability (`_majority`), which known labels can overrule. Nothing else separates the truth from other things that
sources share.

Errors of pairs with a source in common are correlated. A vote is ``q_a t + e_a``, so that with ``r_a = 1 - q_a^2``

    var y_ab = [r_a q_b^2 + r_b q_a^2 + r_a r_b] unit / n_ab = s_ab^2
    of the pair alone:  s_ab^2 r_a r_b / (1 - (1 - r_a)(1 - r_b))
    luck of a source:   var u~_a = unit / (n_a r_a),   u~ the quality realized on these items, u the lasting one

and inside a group ``r`` is ``r (1 - k^2)``, luck is correlated by ``k_a k_b``, and the error of a pair with an outsider
is shared by the group in the part ``k^2``. Luck counts as far as the items are the same: of a source's luck a pair sees
the part ``n_ab / n_a``. The likelihood of the pairs has the power ``1 / (1 + m / n)``: m sources on n items agree by
chance in clusters. Known labels are one more source, of quality one and without misfit. Where the table has the scatter
of agreement, it tells who repeats others word for word (`consilience.estimation.scatter`).

A hypothesis (partition, form, tau, omega, sign) is fitted by Levenberg-Marquardt and weighed by its Laplace evidence
(`consilience.estimation.hypotheses`), many of them at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import exp, lgamma, log

import numpy as np

from consilience.arrays import BoolArray, FloatArray, IntArray
from consilience.estimation.hypotheses import (
    CONTRARY,
    COPIES,
    HALF,
    KINDS,
    SCHOOLS,
    Problem,
    beliefs,
    fit,
    mean_sign,
    normal_below,
)
from consilience.estimation.pair_table import LIMIT, Forward, PairTable
from consilience.estimation.protocol import SHARED_ERROR, Hypothesis, Trust

__all__ = ["trust"]

#: Spread of u between sources: octaves from "no table shows a difference" to "some perfect, some useless".
TAUS = (0.03, 0.1, 0.2, 0.4, 0.8)
#: Spread at which the variances are taken, for all of them: the middle one.
REFERENCE = 0.2
#: Prior probability of the first spread, that all sources are alike: gain and loss on 30 items are equal around it.
SPIKE = 0.35
#: Misfit in units of agreement: octaves, from none to so much that any table fits.
OMEGAS = (0.0, 0.02, 0.05, 0.1, 0.2, 0.4)
#: Each further octave of misfit is about a third as probable as the one before.
OMEGA_DECAY = 0.35
#: Probability that nobody shares errors beyond the links that were given.
INDEPENDENT = 0.7
#: Among dependent sources, the probability that everyone belongs to a school; otherwise some repeat others.
SCHOOLED = 0.02
#: Among independent sources, the probability that they come in kinds, such as a few experts among many others.
SORTED = 0.5
#: Numbers of schools or kinds that are considered, all equally probable.
NUMBERS = (2, 3, 4)
#: A mean quality below this does not count as a signal: 52.5% right of two classes.
NO_SIGNAL = 0.05
#: Hypotheses handed on, and how far below the best one they may be, in nats: a thousandth.
KEPT, NATS = 6, 7.0
#: Posterior draws: 90% limits are known to about a tenth of a standard deviation.
DRAWS = 400
#: Search: spreads and misfits at which partitions are compared, copies first, then schools.
COARSE = ((0.2, 0.02, COPIES), (0.6, 0.02, COPIES), (0.4, 0.02, SCHOOLS), (0.4, 0.1, SCHOOLS))
#: Rounds of a fit: in the search, of what it found, and of either with many sources.
ROUNDS = (6, 8, 4)
#: Up to so many sources every candidate is fitted, and up to so many more than one step is looked ahead.
FEW, MANY = 25, 200

Partition = tuple[int, ...]
_Setting = tuple[Partition, float, float, int]  # with spread, misfit and form


def trust(
    table: PairTable,
    forward: Forward = Forward(),  # noqa: B008 - immutable
    *,
    linked: BoolArray | None = None,
    learn: bool = True,
    seed: int = 0,
) -> Trust:
    """Return what the agreements of the sources say about their qualities and shared errors.

    The `linked` pairs certainly share errors, as do those of the table. Unless groups are looked for (`learn`), they
    are the connected components of these pairs. The seed is that of the posterior draws.

    Examples
    --------
    >>> value = np.array([[1.0, 0.48, 0.40], [0.48, 1.0, 0.30], [0.40, 0.30, 1.0]])
    >>> table = PairTable(value, np.full((3, 3), 0.005), np.full((3, 3), 40_000.0))
    >>> np.tanh(trust(table).u).round(1).tolist()
    [0.8, 0.6, 0.5]
    """
    m = table.n_sources
    certain = np.eye(m, dtype=bool)
    for given in (linked, table.linked):
        if given is not None:
            certain |= np.asarray(given, dtype=bool)
    silent = np.diag(table.both) == 0
    if silent.any() and not silent.all():
        heard = np.flatnonzero(~silent)
        found = trust(table.of_sources(heard), forward, linked=certain[np.ix_(heard, heard)], learn=learn, seed=seed)
        return _with_silent(found, heard, m, seed)
    order = _canonical_order(table)
    problem = Problem.of(table, forward, order)
    search = _Search(problem, _components((certain | certain.T)[np.ix_(order, order)]))
    if learn and m > 3 and problem.usable.any():
        search.run()
    layouts = [(partition, form) for partition in search.best() for form in (COPIES, SCHOOLS)]
    if m <= MANY and problem.usable.any():
        layouts += [(partition, KINDS) for partition in search.kinds()]
    return _summarize(problem, _all_rows(search, layouts), np.argsort(order), seed)


def _components(linked: BoolArray) -> Partition:
    """Return who is linked, directly or through others; everyone is linked with itself."""
    label = np.arange(len(linked))
    while True:
        lowest = np.where(linked, label, len(label)).min(axis=1)
        if (lowest == label).all():
            return _canonical(label.tolist())
        label = lowest


def _partition_prior(partition: Partition, base: Partition, form: int) -> float:
    """Return the log probability of a partition in one of its forms: nothing but the links, kinds, copies, schools."""
    m = len(partition)
    sizes = [0] * (max(partition) + 1)
    for group in partition:
        sizes[group] += 1
    blocks = len(sizes)
    linked = max(base) + 1 < m
    if form != COPIES:
        # Everyone belongs to a school, or is of some kind; kinds are looked for where nobody is known to share errors.
        numbers = [number for number in NUMBERS if number >= blocks]
        if blocks == m or not numbers or (form == KINDS and (linked or blocks == 1)):
            return -np.inf
        grouped = log(sum(exp(_uniform_sizes(sizes, number)) for number in numbers) / len(NUMBERS))
        if form == KINDS:
            return grouped + log(INDEPENDENT * SORTED)
    else:
        large = [size for size in sizes if size > 1]
        inside, number = sum(large), len(large)
        # Half as many partitions have one more group; then how many sources are in groups, which, and in which one.
        grouped = -(number + 1) * log(2.0)
        if number:
            grouped -= log(m - 2 * number + 1) + lgamma(m + 1) - lgamma(inside + 1) - lgamma(m - inside + 1)
            grouped += _uniform_sizes(large, number)
    grouped += log((1.0 - INDEPENDENT) * (SCHOOLED if form == SCHOOLS else 1.0 - SCHOOLED))
    if partition != base:
        return grouped
    # Without any group the two forms are one.
    alone = INDEPENDENT / 2.0 if linked else INDEPENDENT * (1.0 - SORTED)
    return float(np.logaddexp(grouped, log(alone)))


def _uniform_sizes(sizes: list[int], number: int) -> float:
    """Return the log probability of these groups if sources choose one of `number`, all shares being as probable."""
    ways = lgamma(number + 1.0) - lgamma(number - len(sizes) + 1.0) + lgamma(number) - lgamma(number + sum(sizes))
    return ways + sum(lgamma(size + 1.0) for size in sizes)


def _canonical(partition: Iterable[int]) -> Partition:
    """Return the partition with groups numbered in the order of their first members."""
    seen: dict[int, int] = {}
    return tuple([seen.setdefault(group, len(seen)) for group in partition])


def _canonical_order(table: PairTable) -> IntArray:
    """Return an order of the sources that does not depend on the order of the columns."""
    value = np.sort(np.where(table.usable, table.value, 0.0), axis=1)
    error = np.sort(np.where(table.usable, table.error, 0.0), axis=1)
    keys = [error.sum(axis=1), (value**3).sum(axis=1), (value**2).sum(axis=1), value.sum(axis=1), np.diag(table.both)]
    if table.has_gold and table.gold_value is not None and table.gold_error is not None:
        keys.insert(0, np.where(np.isfinite(table.gold_error), table.gold_value, 0.0))
    return np.lexsort(keys).astype(np.int64)


class _Search:
    """Looks for the partitions that explain the table best; every one contains the linked pairs."""

    def __init__(self, problem: Problem, base: Partition) -> None:
        self.problem = problem
        self.base = base
        self.score: dict[Partition, float] = {}
        #: Where partitions have their maximum in a form, at the spread and misfit at which variances are taken.
        self.points: dict[tuple[Partition, int], FloatArray] = {}
        groups = [np.flatnonzero(np.array(base) == group) for group in range(max(base) + 1)]
        self.blocks = [block for block in groups if len(block) > 1]
        # With them two looks at the sources as they are without further groups: for `run`, and for `kinds`.
        alone = (tuple(range(problem.m)), TAUS[-1], OMEGAS[1], COPIES)
        *_, self.usual, self.unlike = self.evaluate([base], (base, 0.4, 0.05, SCHOOLS), alone)[:, 0]

    def best(self) -> list[Partition]:
        """Return the best partitions, at most `KEPT`."""
        ranked = sorted(self.score, key=lambda partition: (-self.score[partition], partition))
        top = self.score[ranked[0]]
        return [partition for partition in ranked[:KEPT] if self.score[partition] >= top - NATS]

    def fit(self, settings: Sequence[_Setting]) -> tuple[FloatArray, FloatArray]:
        """Return maxima and evidences of partitions at a spread and a misfit, in a form."""
        partition, tau, omega, form = (np.array(column) for column in zip(*settings, strict=True))
        point, evidence = fit(self.problem, partition, form, tau, omega, rounds=ROUNDS[2 * (self.problem.m > MANY)])
        for index in np.flatnonzero((tau == REFERENCE) & (omega == OMEGAS[1])).tolist():
            self.points[settings[index][0], settings[index][3]] = point[index]
        return point, evidence

    def evaluate(self, partitions: Iterable[Partition], *others: _Setting) -> FloatArray:
        """Score partitions that were not seen before, fit `others` with them, and return all maxima."""
        settings, before = [], []
        for partition in dict.fromkeys(partitions):
            # What all sources have in common is taken to be the truth, unless known labels decide.
            everyone = max(partition) == 0 and partition != self.base and self.problem.gold is None
            if partition in self.score or everyone:
                continue
            prior = {form: _partition_prior(partition, self.base, form) for form in (COPIES, SCHOOLS)}
            for tau, omega, form in COARSE if self.problem.m <= FEW else (COARSE[0], COARSE[2]):
                if prior[form] > -np.inf:
                    settings.append((partition, tau, omega, form))
                    before.append(prior[form])
        if not settings:
            return np.zeros((0, 2, self.problem.m))
        point, evidence = self.fit([*settings, *others])
        for (partition, *_), score in zip(settings, evidence[: len(before)] + before, strict=True):
            self.score[partition] = max(float(score), self.score.get(partition, -np.inf))
        return point

    def closed(self, label: Iterable[int]) -> Partition:
        """Return the partition with all that are linked together."""
        if self.blocks:
            labels = np.array(label)
            for block in self.blocks:
                for other in set(labels[block].tolist()):
                    labels[labels == other] = labels[block[0]]
            label = labels.tolist()
        return _canonical(label)

    def join(self, partition: Sequence[int], members: Iterable[int], group: int | None = None) -> Partition:
        """Return the partition in which these are in a group, by default one of their own."""
        label = list(partition)
        for source in members:
            label[source] = len(label) + 1 if group is None else group
        return self.closed(label)

    def run(self) -> None:
        """Begin with the clusters and cuts of three dendrograms, then move sources until nothing improves."""
        problem, m = self.problem, self.problem.m
        residual = np.where(problem.usable, problem.value - problem.agreement(self.usual), 0.0)
        surprise = residual / np.sqrt(problem.variance + 0.02**2)
        filled = problem.value + np.diag(np.maximum(np.where(problem.usable, problem.value, -1.0).max(axis=1), 0.0))
        with np.errstate(invalid="ignore", divide="ignore"):
            profile: FloatArray = np.asarray(np.nan_to_num(np.corrcoef(filled)))
        clusters: dict[tuple[int, ...], None] = {}
        cuts: dict[Partition, None] = {}
        for similarity in (problem.value, surprise, profile):
            _dendrogram(similarity, clusters, cuts)
        found = [members for members in clusters if len(members) < m]
        if m > FEW:
            found = self._conspicuous(found, residual)
        else:
            self.evaluate([self.join(self.base, members) for members in found] + [self.closed(cut) for cut in cuts])
        done: set[Partition] = set()
        for _ in range(2 * m if m <= FEW else 0 if m > MANY else 3):
            top = [partition for partition in self.best()[: 3 if m <= FEW else 1] if partition not in done]
            if not top:
                break
            done.update(top)
            self.evaluate([move for partition in top for move in self._moves(partition, surprise, found)])

    def _conspicuous(self, found: list[tuple[int, ...]], residual: FloatArray) -> list[tuple[int, ...]]:
        """Return clusters of at most half of the sources, by what a common error of theirs would gain.

        Scores partitions with one, four, sixteen, ... of the first ones that do not overlap.
        """
        problem, m = self.problem, self.problem.m
        rest = np.sqrt(np.maximum(1.0 - np.tanh(self.usual) ** 2, 0.05))
        shape = np.outer(rest, rest)
        weight = np.where(problem.usable, 1.0 / (problem.variance + 0.02**2), 0.0)
        gains = {}
        for members in found:
            if len(members) <= m // 2:
                inside = np.ix_(members, members)
                above = (weight[inside] * residual[inside] * shape[inside]).sum() / 2.0
                below = (weight[inside] * shape[inside] ** 2).sum() / 2.0
                gains[members] = float(max(above, 0.0) ** 2 / max(below, 1e-12) / 2.0)
        found = sorted(gains, key=lambda members: (-gains[members], members))
        label, taken = list(self.base), np.zeros(m, dtype=bool)
        path: list[Partition] = []
        alone = _partition_prior(self.base, self.base, COPIES)
        for members in found:
            worth = gains[members] - 0.5 * log(len(members)) - alone
            worth += _partition_prior(self.join(self.base, members), self.base, COPIES)
            if (worth > 0.0 or not path) and not taken[list(members)].any():
                for source in members:
                    label[source] = m + len(path)
                taken[list(members)] = True
                path.append(self.closed(label))
        steps = range(len(path).bit_length() // 2 + 2) if path else range(0)
        self.evaluate([path[min(4**step, len(path)) - 1] for step in steps])
        return found

    def _moves(self, partition: Partition, surprise: FloatArray, found: list[tuple[int, ...]]) -> list[Partition]:
        """Return the neighbors of a partition: a source moved, groups joined, a cluster added.

        With many sources only the moves that the residuals of the independent fit suggest most.
        """
        m = self.problem.m
        few = m <= FEW
        label = np.array(partition)
        sizes = np.bincount(label)
        groups = np.flatnonzero(sizes > 1).tolist()
        loose = np.flatnonzero(sizes[label] == 1).tolist()
        moves = []
        for group in groups if few else groups[:4]:
            inside = label == group
            near = np.arange(m)
            if not few:
                near = np.argsort(-surprise[:, inside].sum(axis=1), kind="stable")
                near = np.concatenate([near[~inside[near]][:2], near[inside[near]][-1:]])
            moves += [self.join(partition, [source], None if inside[source] else group) for source in near.tolist()]
            others = [other for other in groups if other > group] if few else []
            moves += [self.closed([group if one == other else one for one in partition]) for other in others]
        if len(loose) > 1:
            if few:
                moves.append(self.join(partition, loose))
            pairs = [(-surprise[a, b], a, b) for a in loose for b in loose if a < b]
            moves += [self.join(partition, (a, b)) for _, a, b in sorted(pairs)[: min(m, 10) if few else 2]]
        free = set(loose)
        moves += [self.join(partition, members) for members in found if free.issuperset(members)][: 2 * m if few else 4]
        return moves

    def kinds(self) -> list[Partition]:
        """Return the best partition into two, three and four kinds, as far as it is near the best score so far.

        Sources are sorted by their quality as independent ones, and cut where the parts have the least squares.
        """
        m, u = self.problem.m, self.unlike
        order = np.argsort(u, kind="stable")
        ends = np.arange(m + 1)
        total, square = (np.concatenate([[0.0], np.cumsum(u[order] ** power)]) for power in (1, 2))
        size = np.maximum(ends - ends[:, None], 1)
        cost = np.where(ends > ends[:, None], square - square[:, None] - (total - total[:, None]) ** 2 / size, np.inf)
        reached, cuts = cost[0], np.zeros((max(NUMBERS) + 1, m + 1), dtype=np.int64)
        settings = []
        for number in range(2, min(max(NUMBERS), m - 1) + 1):
            options = reached[:, None] + cost
            cuts[number], reached = options.argmin(axis=0), options.min(axis=0)
            label, end = np.zeros(m, dtype=np.int64), m
            for part in range(number, 1, -1):
                label[order[cuts[part, end] : end]] = part
                end = cuts[part, end]
            settings += [(_canonical(label.tolist()), tau, OMEGAS[1], KINDS) for tau in TAUS[-3:]]
        before = [_partition_prior(partition, self.base, KINDS) for partition, *_ in settings]
        if not settings or max(before) == -np.inf:
            return []
        score = self.fit(settings)[1] + before
        near = score > max(self.score.values()) - NATS
        return list(dict.fromkeys(setting[0] for setting, one in zip(settings, near, strict=True) if one))


def _dendrogram(similarity: FloatArray, clusters: dict[tuple[int, ...], None], cuts: dict[Partition, None]) -> None:
    """Add every cluster of average linkage, and every partition that cutting the tree gives.

    Two clusters that are nearest to each other are joined, which chains of nearest neighbors find.
    """
    m = len(similarity)
    distance = np.maximum(similarity.max() - (similarity + similarity.T) / 2.0, 0.0)
    np.fill_diagonal(distance, np.inf)
    size = np.ones(m)
    chain: list[int] = []
    merges: list[tuple[float, int, int]] = []
    while len(merges) < m - 1:
        if not chain:
            chain.append(int(size.argmax()))
        row = distance[chain[-1]]
        nearest = int(row.argmin())
        if len(chain) < 2 or row[nearest] < row[chain[-2]]:
            chain.append(nearest)
            continue
        one, two = sorted((chain.pop(), chain.pop()))
        merges.append((float(distance[one, two]), one, two))
        distance[two] = (size[one] * distance[one] + size[two] * distance[two]) / (size[one] + size[two])
        distance[one] = np.inf
        distance[:, one], distance[:, two] = distance[one], distance[two]
        size[two], size[one] = size[two] + size[one], 0.0
    label = np.arange(m)
    for index, (_, one, two) in enumerate(sorted(merges, key=lambda merge: merge[0])):
        joined = np.flatnonzero((label == label[one]) | (label == label[two]))
        label[joined] = m + index
        clusters[tuple(joined.tolist())] = None
        if m <= FEW:
            cuts[_canonical(label.tolist())] = None


@dataclass(frozen=True)
class _Explanations:
    """Hypotheses with their log posterior; all arrays have a row for each."""

    group: IntArray
    form: IntArray
    tau: FloatArray
    omega: FloatArray
    point: FloatArray
    reference: FloatArray
    turned: BoolArray
    score: FloatArray


def _all_rows(search: _Search, layouts: list[tuple[Partition, int]]) -> _Explanations:
    """Fit the best partitions with every spread and misfit, in their forms and, where it is in doubt, turned around."""
    problem = search.problem
    many, taus = problem.m > MANY, np.array(TAUS)
    omegas = np.array(OMEGAS if problem.usable.any() else OMEGAS[:1])
    prior = {layout: _partition_prior(layout[0], search.base, layout[1]) for layout in layouts}
    layouts = [layout for layout in layouts if prior[layout] > -np.inf]
    group, form = (np.array(column) for column in zip(*layouts, strict=True))
    spread = np.where(taus == TAUS[0], SPIKE, (1.0 - SPIKE) / (len(TAUS) - 1))
    misfit = OMEGA_DECAY ** np.arange(len(omegas))
    before = np.add.outer([prior[layout] for layout in layouts], np.log(np.outer(spread, misfit / misfit.sum())))
    # All spreads and misfits are compared with the variances of one fit: a quality that is taken for high makes its own
    # pairs look exact, which would favor unlike sources.
    if missing := [layout for layout in layouts if layout not in search.points]:
        search.fit([(partition, REFERENCE, OMEGAS[1], form) for partition, form in missing])
    reference = np.array([search.points[layout] for layout in layouts])
    rounds = ROUNDS[2 if many else 1]
    # As they are and turned around, by layout, spread and misfit.
    score = np.full((2, *before.shape), -np.inf)
    point = np.tile(reference[:, None, None], (2, 1, *before.shape[1:], 1, 1))

    def look(which: BoolArray) -> None:
        _, own, tau, omega = np.nonzero(which)
        point[which], evidence = fit(
            problem, group[own], form[own], taus[tau], omegas[omega], point[which], reference[own], rounds
        )
        score[which] = evidence + before[own, tau, omega]

    # Two misfits at a time, as long as the last one is not far below. With many sources at one spread only, and then
    # the other spreads at the best misfit.
    going = np.ones(before.shape[:2], dtype=bool) & ((taus == 0.4) | (not many))
    for first in range(0, len(omegas), 2):
        which, last = np.zeros(score.shape, dtype=bool), min(first + 1, len(omegas) - 1)
        which[0, :, :, first : last + 1] = going[:, :, None]
        look(which)
        point[:, :, :, last + 1 :] = point[:, :, :, last, None]
        falls = score[0, :, :, last] < score[0, :, :, first]
        going &= ~falls | (score[0, :, :, last] > score.max() - NATS - 2.0)
    if many:
        best = score[0].max(axis=1, keepdims=True)
        which = np.zeros(score.shape, dtype=bool)
        which[0] = (best == best.max(axis=2, keepdims=True)) & (taus != 0.4)[:, None]
        look(which)
    # The same hypotheses with the qualities reversed, where that is another maximum.
    flat = score[0].reshape(len(group), -1).argmax(axis=1)
    sign = mean_sign(problem, point[0].reshape(len(group), -1, *point.shape[-2:])[np.arange(len(group)), flat, 0])
    doubtful = (normal_below(-sign / (2.0 * HALF)) > CONTRARY) | (problem.gold is not None)
    near = score[0] > score.max() - NATS
    which = np.zeros(score.shape, dtype=bool)
    which[1] = (near | (taus == TAUS[-1])[:, None]) & (score[0] > -np.inf)
    which[1] &= (doubtful & near.any(axis=(1, 2)))[:, None, None]
    if which.any():
        point[1] = point[0] * np.array([[-1.0], [1.0]])
        look(which)
        score[1, np.abs(point[1] - point[0])[..., 0, :].max(axis=-1) < 0.05] = -np.inf
    rows = score > -np.inf
    turned, own, tau, omega = np.nonzero(rows)
    return _Explanations(
        group[own], form[own], taus[tau], omegas[omega], point[rows], reference[own], turned == 1, score[rows]
    )


def _summarize(problem: Problem, rows: _Explanations, back: IntArray, seed: int) -> Trust:
    """Turn rows into hypotheses, draws and probabilities, in the order of the columns."""
    m = problem.m
    mass = np.exp(rows.score - rows.score.max())
    mass /= mass.sum()
    chosen = np.argsort(-mass, kind="stable")
    chosen = chosen[mass[chosen] > exp(-NATS)][: len(mass) if m <= MANY else KEPT]
    share = mass[chosen] / mass[chosen].sum()
    group, form, tau, omega = rows.group[chosen], rows.form[chosen], rows.tau[chosen], rows.omega[chosen]
    found = beliefs(problem, group, form, tau, omega, rows.point[chosen], rows.reference[chosen])
    variances = np.maximum(np.einsum("hii->hi", found.covariance), 1e-12)
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(DRAWS, share)
    drawn = np.flatnonzero(counts)
    values, vectors = np.linalg.eigh(found.covariance[drawn])
    roots = vectors * np.sqrt(np.maximum(values, 0.0))[:, None]
    parts = np.split(rng.standard_normal((DRAWS, m)), np.cumsum(counts[drawn])[:-1])
    draws = np.concatenate(
        [found.mean[index] + part @ root.T for index, part, root in zip(drawn, parts, roots, strict=True)]
    )
    at = np.stack([np.zeros(len(chosen)), np.full(len(chosen), NO_SIGNAL)]) - found.middle
    zero, low = (normal_below(one) for one in at / found.middle_spread)
    no_signal = share @ np.clip((low - zero) / np.maximum(1.0 - zero, 1e-12), 0.0, 1.0)
    # Nobody shares errors among kinds.
    errors = np.where((form == KINDS)[:, None], np.arange(m), group)
    alike: dict[tuple[Partition, bool, bool], list[int]] = {}
    for index, partition in enumerate(errors.tolist()):
        key = (tuple(partition), bool(form[index] == SCHOOLS), bool(rows.turned[chosen[index]]))
        alike.setdefault(key, []).append(index)
    hypotheses = []
    together = np.zeros((m, m))
    for (partition, _, _), own in alike.items():
        weight = share[own] / share[own].sum()
        u = weight @ found.mean[own]
        variance = weight @ (variances[own] + found.mean[own] ** 2) - u**2
        label = np.array(partition)
        same = (label[:, None] == label) & ~np.eye(m, dtype=bool)
        together += share[own].sum() * same
        common = np.where(same, (weight[:, None] * found.k[own]).T @ found.k[own], 0.0)
        hypotheses.append(
            Hypothesis(
                float(share[own].sum()),
                _renumbered(label[back]),
                u[back],
                _correlation(common, u, float(weight @ omega[own]))[np.ix_(back, back)],
                np.sqrt(np.maximum(variance, 1e-12))[back],
            )
        )
    hypotheses = sorted(hypotheses, key=lambda hypothesis: -hypothesis.probability)[:KEPT]
    total = sum(hypothesis.probability for hypothesis in hypotheses)
    u = share @ found.mean
    variance = share @ (variances + found.mean**2) - u**2
    return Trust(
        tuple(replace(one, probability=one.probability / total) for one in hypotheses),
        u[back],
        np.sqrt(np.maximum(variance, 1e-12))[back],
        np.clip(draws, -LIMIT, LIMIT)[:, back],
        together[np.ix_(back, back)],
        float(share @ (errors.max(axis=1) == m - 1)),
        float(share @ (tau == TAUS[0])),
        float(no_signal),
        float(share @ omega),
    )


def _with_silent(found: Trust, heard: IntArray, m: int, seed: int) -> Trust:
    """Add sources without a vote: about as good as the others, and sharing errors with nobody."""
    silent = np.setdiff1d(np.arange(m), heard)

    def vector(values: FloatArray, filler: float) -> FloatArray:
        out = np.full(m, filler)
        out[heard] = values
        return out

    def matrix(values: FloatArray) -> FloatArray:
        out = np.zeros((m, m))
        out[np.ix_(heard, heard)] = values
        return out

    def spread(u: FloatArray, errors: FloatArray) -> FloatArray:
        return vector(errors, float(np.sqrt(np.mean(errors**2) + np.var(u))))

    hypotheses = []
    for one in found.hypotheses:
        groups = np.arange(m) + m
        groups[heard] = one.groups
        u = vector(one.u, float(one.u.mean()))
        hypotheses.append(
            Hypothesis(one.probability, _renumbered(groups), u, matrix(one.correlation), spread(one.u, one.spread))
        )
    draws = np.zeros((len(found.draws), m))
    draws[:, heard] = found.draws
    chosen = np.random.default_rng(seed).integers(len(heard), size=(len(draws), len(silent)))
    draws[:, silent] = np.take_along_axis(found.draws, chosen, axis=1)
    return replace(
        found,
        hypotheses=tuple(hypotheses),
        u=vector(found.u, float(found.u.mean())),
        spread=spread(found.u, found.spread),
        draws=draws,
        together=matrix(found.together),
    )


def _renumbered(group: IntArray) -> IntArray:
    return np.array(_canonical(group.tolist()), dtype=np.int64)


def _correlation(common: FloatArray, u: FloatArray, omega: float) -> FloatArray:
    """Return the error correlations: that of the groups, and what any two sources may have in common.

    Misfit is read as shared error, ``omega = rho sqrt(r_a r_b)``; before any table there is `SHARED_ERROR`.
    """
    rest = np.sqrt(np.maximum(1.0 - np.tanh(u) ** 2, 0.1))
    any_two = np.minimum(SHARED_ERROR + omega / np.outer(rest, rest), 1.0)
    correlation: FloatArray = np.clip(common + (1.0 - common) * any_two, 0.0, 0.99)
    np.fill_diagonal(correlation, 0.0)
    return correlation

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

No single error is what more than half of the sources follow, and most do not oppose the truth. That is a probability
(`_majority`), which known labels can overrule; nothing else tells the truth from any other thing that sources share.

Errors of pairs with a source in common are correlated. A vote is ``q_a t + e_a``, so that with ``r_a = 1 - q_a^2``

    var y_ab = [r_a q_b^2 + r_b q_a^2 + r_a r_b] unit / n_ab = s_ab^2
    of the pair alone:  s_ab^2 r_a r_b / (1 - (1 - r_a)(1 - r_b))
    luck of a source:   var u~_a = unit / (n_a r_a),   u~ the quality realised on these items, u the lasting one

and inside a group ``r`` is ``r (1 - k^2)``, luck is correlated by ``k_a k_b``, and the error of a pair with an outsider
is shared by the group in the part ``k^2``. Luck counts as far as the items are the same: of a source's luck a pair sees
the part ``n_ab / n_a``. The likelihood of the pairs has the power ``1 / (1 + m / n)``: m sources on n items agree by
chance in clusters. Known labels are one more source, of quality one and without misfit.

A hypothesis (partition, form, tau, omega, sign) is fitted by Levenberg-Marquardt and weighed by its Laplace evidence.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.cluster.hierarchy import linkage
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import squareform
from scipy.special import gammaln, log_ndtr, ndtr

from consilience.arrays import BoolArray, FloatArray, IntArray
from consilience.estimation.kernels import COPIES, KINDS, SCHOOLS, SLOPE, Map, fit_hypothesis, start_point
from consilience.estimation.pair_table import LIMIT, Forward, PairTable
from consilience.estimation.protocol import Hypothesis, Trust

__all__ = ["MEAN", "SPREAD", "trust"]

#: Prior of the mean quality: q = .5, which is 75% right of two classes; chance is one standard deviation below.
MEAN, SPREAD = 0.55, 0.5
#: Spread of u between sources: octaves from "no table shows a difference" to "some perfect, some useless".
TAUS = (0.03, 0.1, 0.2, 0.4, 0.8)
#: Spread at which the variances are taken, for all of them: the middle one.
REFERENCE = 0.2
#: Degrees of freedom of the t distribution of u: a few good sources among many poor ones are no surprise.
TAILS = 3.0
#: Prior probability of the first spread, that all sources are alike: gain and loss on 30 items are equal around it.
SPIKE = 0.35
#: The share of sources that know nothing at all is Beta(1, this): one in five, give or take.
USELESS = 4.0
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
#: Numbers of schools or kinds that are thought of, all equally probable.
NUMBERS = (2, 3, 4)
#: Softness of "more than half of the sources": one source of twenty.
HALF = 0.05
#: With known labels, probability that most sources follow one error, or oppose the truth; without, it is ruled out.
CONTRARY = 0.001
#: Error correlation of any two sources before anything is known about them.
SHARED_ERROR = 0.007
#: A mean quality below this is no signal: 52.5% right of two classes.
NO_SIGNAL = 0.05
#: Hypotheses handed on, and how far below the best one they may be, in nats: a thousandth.
KEPT, NATS = 6, 7.0
#: Posterior draws: 90% limits are known to about a tenth of a standard deviation.
DRAWS = 400
#: Search: spreads and misfits at which partitions are compared, copies first, then schools.
COARSE = ((0.2, 0.02, COPIES), (0.6, 0.02, COPIES), (0.4, 0.02, SCHOOLS), (0.4, 0.1, SCHOOLS))
#: Up to so many sources every candidate is fitted, and up to so many more than one step is looked ahead.
FEW, MANY = 25, 200

Partition = tuple[int, ...]


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
    certain = np.zeros((m, m), dtype=bool)
    for given in (linked, table.linked):
        if given is not None:
            certain |= np.asarray(given, dtype=bool)
    silent = np.diag(table.both) == 0
    if silent.any() and not silent.all():
        heard = np.flatnonzero(~silent)
        found = trust(table.of_sources(heard), forward, linked=certain[np.ix_(heard, heard)], learn=learn, seed=seed)
        return _with_silent(found, heard, m, seed)
    order = _canonical_order(table)
    back = np.argsort(order)
    problem = _Problem.of(table, forward, order)
    base = _canonical(connected_components((certain | certain.T)[np.ix_(order, order)], directed=False)[1])
    search = _Search(problem, base)
    if learn and m > 3 and problem.usable.any():
        search.run()
    layouts = [(partition, form) for partition in search.best() for form in (COPIES, SCHOOLS)]
    if m <= MANY and problem.usable.any():
        layouts += [(partition, KINDS) for partition in _kinds(problem, base, max(search.score.values()))]
    rows = _all_rows(problem, layouts, base)
    return _summarize(problem, rows, back, seed)


@dataclass(frozen=True)
class _Problem:
    """The table in canonical order, ready for the kernel."""

    value: FloatArray
    usable: BoolArray
    variance: FloatArray
    weight: FloatArray
    overlap: FloatArray
    power: float
    follows: float
    luck: FloatArray
    gold: FloatArray
    forward: Forward
    features: Map

    @classmethod
    def of(cls, table: PairTable, forward: Forward, order: IntArray) -> _Problem:
        m = table.n_sources
        pick = np.ix_(order, order)
        usable = (table.usable & np.isfinite(table.value))[pick]
        both = np.maximum(np.asarray(table.both, dtype=np.float64)[pick], 1.0)
        value = np.where(usable, table.value[pick], 0.0)
        # Sources that never disagree might on one of the next items.
        error = np.maximum(np.where(usable, table.error[pick], 1.0), 1.0 / (both + 1.0))
        overlap = np.minimum(both / np.diag(both)[:, None], 1.0)
        # Many sources on few items agree by chance in whole clusters: by Marchenko and Pastur, the spectrum of a table
        # of m sources on n items is wider by m / n than independent errors of its pairs would make it.
        crowded = float(np.mean(overlap.sum(axis=1) / np.diag(both)))
        # A source follows something if its squared quality, or share in an error, is beyond two standard errors.
        follows = float(np.sqrt(2.0 * np.median(error[usable]) / np.sqrt(m - 1.0))) if usable.any() else 1.0
        single = error**2 * both / (1.0 - np.clip(value, -0.95, 0.95) ** 2)
        unit = float(np.median(single[usable])) if usable.any() else 1.0
        rank = 1 if forward.sign is None else len(forward.sign)
        gold = np.zeros((0, 0))
        if table.has_gold and table.gold_value is not None and table.gold_error is not None:
            gold = np.zeros((3, max(m, rank)))
            known = (np.isfinite(table.gold_error) & np.isfinite(table.gold_value))[order]
            gold[0, :m] = np.where(known, table.gold_value[order], 0.0)
            votes = np.maximum(np.diag(both), 1.0)
            gold[1, :m] = np.where(known, 1.0 / np.maximum(table.gold_error[order], 1.0 / (votes + 1.0)) ** 2, 0.0)
            gold[2, :rank] = forward.features(np.array([LIMIT]))[0][0]
        features: Map = (np.zeros(0), np.zeros((0, 1)), np.ones(1))
        if forward.grid is not None and forward.phi is not None and forward.sign is not None:
            features = (
                np.ascontiguousarray(forward.grid, dtype=np.float64),
                np.ascontiguousarray(forward.phi, dtype=np.float64),
                np.ascontiguousarray(forward.sign, dtype=np.float64),
            )
        return cls(
            np.ascontiguousarray(value),
            np.ascontiguousarray(usable),
            np.ascontiguousarray(error**2),
            np.where(usable, 1.0 / (error**2 + (np.median(error[usable] ** 2) if usable.any() else 1.0)), 0.0),
            overlap,
            1.0 / (1.0 + crowded),
            follows,
            unit / np.diag(both),
            gold,
            forward,
            features,
        )

    @property
    def m(self) -> int:
        return len(self.value)

    @property
    def has_gold(self) -> bool:
        return bool(self.gold.size)

    def fit(
        self,
        layout: _Layout,
        tau: float,
        omega: float,
        begin: FloatArray | None = None,
        reference: FloatArray | None = None,
        rounds: int = 25,
    ) -> _Fit:
        """Return the maximum of one hypothesis, with many sources roughly."""
        groups = (layout.group, layout.size, layout.slot, layout.form)
        if begin is None:
            begin = np.zeros(layout.length)
            start_point(self.value, self.weight, groups, begin)
        point, evidence, hessian, quad, inside, scale = fit_hypothesis(
            (self.value, self.usable, self.variance, self.overlap, self.power, self.luck),
            groups,
            self.features,
            self.gold,
            (tau, TAILS, MEAN, SPREAD, LIMIT, USELESS),
            (self.follows, HALF, CONTRARY if self.has_gold else 0.0),
            omega,
            begin,
            np.zeros(0) if reference is None else reference,
            rounds if self.m <= MANY else min(rounds, 4),
        )
        u, k = point[: self.m], np.zeros(self.m)
        member = layout.slot >= 0
        odds = np.exp(SLOPE * point[layout.slot[member]])
        if layout.form == SCHOOLS:
            k[member] = np.minimum(np.sqrt(odds) * np.abs(np.sinh(u[member])), 0.995)
        else:
            k[member] = np.sqrt(odds / (1.0 + odds))
        return _Fit(layout, tau, omega, point, u, k, evidence, hessian, quad, inside, scale)


@dataclass(frozen=True)
class _Layout:
    """A partition in one of its forms: a share of every member (copies), a version of the truth (schools), or none."""

    partition: Partition
    form: int
    group: IntArray
    size: IntArray
    slot: IntArray
    length: int

    @classmethod
    def of(cls, partition: Partition, form: int) -> _Layout:
        group = np.array(partition, dtype=np.int64)
        m, size = len(group), np.bincount(group)
        member = (size[group] > 1) & (form != KINDS)
        slot = np.full(m, -1, dtype=np.int64)
        if form == SCHOOLS:
            slot[member] = m + np.unique(group[member], return_inverse=True)[1]
        else:
            slot[member] = m + np.arange(member.sum())
        return cls(partition, form, group, size, slot, max(m, int(slot.max(initial=-1)) + 1))

    @property
    def errors(self) -> Partition:
        """Who shares errors with whom: nobody among kinds."""
        return tuple(range(len(self.partition))) if self.form == KINDS else self.partition


@dataclass(frozen=True)
class _Fit:
    """A maximum: realised u, shares k, log evidence; Hessian and prior precision there."""

    layout: _Layout
    tau: float
    omega: float
    point: FloatArray
    u: FloatArray
    k: FloatArray
    evidence: float
    hessian: FloatArray
    quad: FloatArray
    inside: FloatArray
    scale: FloatArray

    @property
    def _regular(self) -> FloatArray:
        """The Hessian; exact copies on few items leave directions that nothing determines, hence a tiny ridge."""
        regular: FloatArray = self.hessian + 1e-9 * np.trace(self.hessian) * np.eye(len(self.hessian))
        return regular

    def posterior(self) -> tuple[FloatArray, FloatArray]:
        """Return mean and covariance of the lasting u."""
        m, group = len(self.u), self.layout.group
        alike = np.where(group[:, None] == group, np.outer(self.inside, self.inside), 0.0)
        np.fill_diagonal(alike, self.scale**2)
        lasting = alike + SPREAD**2  # its prior covariance
        keep = lasting @ self.quad
        mean = MEAN + keep @ (self.u - MEAN)
        spread = keep @ np.linalg.inv(self._regular)[:m, :m] @ keep.T + lasting - keep @ lasting
        return mean, (spread + spread.T) / 2.0

    def mean_quality(self) -> tuple[float, float]:
        """Return mean and standard deviation of mu."""
        m = len(self.u)
        pull = SPREAD**2 * self.quad.sum(axis=0)
        mean = MEAN + float(pull @ (self.u - MEAN))
        seen = np.linalg.solve(self._regular, np.concatenate([pull, np.zeros(len(self.point) - m)]))[:m]
        return mean, float(np.sqrt(max(SPREAD**2 * (1.0 - pull.sum()) + pull @ seen, 1e-12)))


def _partition_prior(partition: Partition, base: Partition, form: int) -> float:
    """Return the log probability of a partition in one of its forms: nothing but the links, kinds, copies, schools."""
    m = len(partition)
    sizes = np.bincount(partition)
    blocks = len(sizes)
    linked = max(base, default=-1) + 1 < m
    if form != COPIES:
        # Everyone belongs to a school, or is of some kind; kinds are looked for where nobody is known to share errors.
        numbers = [number for number in NUMBERS if number >= blocks]
        if blocks == m or not numbers or (form == KINDS and (linked or blocks == 1)):
            return -np.inf
        grouped = np.logaddexp.reduce([_uniform_sizes(sizes, number) for number in numbers]) - np.log(len(NUMBERS))
        if form == KINDS:
            return float(grouped + np.log(INDEPENDENT * SORTED))
    else:
        large = sizes[sizes > 1]
        inside, number = int(large.sum()), len(large)
        # Half as many partitions have one more group; then how many sources are in groups, which, and in which one.
        grouped = -(number + 1) * np.log(2.0)
        if number:
            grouped -= np.log(m - 2 * number + 1) + gammaln(m + 1) - gammaln(inside + 1) - gammaln(m - inside + 1)
            grouped += _uniform_sizes(large, number)
    grouped += np.log((1.0 - INDEPENDENT) * (SCHOOLED if form == SCHOOLS else 1.0 - SCHOOLED))
    if partition != base:
        return float(grouped)
    # Without any group the two forms are one.
    alone = INDEPENDENT / 2.0 if linked else INDEPENDENT * (1.0 - SORTED)
    return float(np.logaddexp(grouped, np.log(alone)))


def _uniform_sizes(sizes: IntArray, number: int) -> float:
    """Return the log probability of these groups if sources choose one of `number`, all shares being as probable."""
    ways = gammaln(number + 1.0) - gammaln(number - len(sizes) + 1.0) + gammaln(number) - gammaln(number + sizes.sum())
    return float(ways + gammaln(sizes + 1.0).sum())


def _canonical(partition: Iterable[int]) -> Partition:
    """Return the partition with groups numbered in the order of their first members."""
    seen: dict[int, int] = {}
    return tuple(seen.setdefault(int(group), len(seen)) for group in partition)


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

    def __init__(self, problem: _Problem, base: Partition) -> None:
        self.problem = problem
        self.base = base
        self.score: dict[Partition, float] = {}
        self.blocks = [np.flatnonzero(np.array(base) == group) for group in range(max(base, default=-1) + 1)]
        self.evaluate([base])

    def best(self) -> list[Partition]:
        """Return the best partitions, at most `KEPT`."""
        ranked = sorted(self.score, key=lambda partition: (-self.score[partition], partition))
        top = self.score[ranked[0]]
        return [partition for partition in ranked[:KEPT] if self.score[partition] >= top - NATS]

    def evaluate(self, partitions: Iterable[Partition]) -> None:
        """Score partitions that were not seen before."""
        for partition in partitions:
            # What all sources have in common is the truth, unless known labels can tell.
            everyone = max(partition) == 0 and partition != self.base and not self.problem.has_gold
            if partition not in self.score and not everyone:
                scores = []
                for tau, omega, form in COARSE if self.problem.m <= FEW else (COARSE[0], COARSE[2]):
                    before = _partition_prior(partition, self.base, form)
                    if np.isfinite(before):
                        fit = self.problem.fit(_Layout.of(partition, form), tau, omega, rounds=8)
                        scores.append(fit.evidence + before)
                self.score[partition] = max(scores)

    def closed(self, label: IntArray) -> Partition:
        """Return the partition with all that are linked together."""
        for block in self.blocks:
            if len(block) > 1:
                for other in set(label[block].tolist()):
                    label[label == other] = label[block[0]]
        return _canonical(label.tolist())

    def join(self, partition: Partition, members: Sequence[int]) -> Partition:
        """Return the partition in which these are a group of their own."""
        label = np.array(partition)
        label[list(members)] = len(label) + 1
        return self.closed(label)

    def run(self) -> None:
        """Begin with the clusters and cuts of three dendrograms, then move sources until nothing improves."""
        problem, m = self.problem, self.problem.m
        fit = problem.fit(_Layout.of(self.base, SCHOOLS), 0.4, 0.05)
        quality = np.tanh(fit.u)
        expected = problem.forward.agreement(fit.u)
        residual = np.where(problem.usable, problem.value - expected, 0.0)
        surprise = residual / np.sqrt(problem.variance + 0.02**2)
        filled = problem.value + np.diag(np.maximum(np.where(problem.usable, problem.value, -1.0).max(axis=1), 0.0))
        with np.errstate(invalid="ignore", divide="ignore"):
            profile: FloatArray = np.asarray(np.nan_to_num(np.corrcoef(filled)))
        clusters: dict[tuple[int, ...], None] = {}
        cuts: dict[Partition, None] = {}
        for similarity in (problem.value, surprise, profile):
            _dendrogram(similarity, clusters, cuts)
        rest = np.sqrt(np.maximum(1.0 - quality**2, 0.05))
        shape = np.outer(rest, rest)
        weight = np.where(problem.usable, 1.0 / (problem.variance + 0.02**2), 0.0)

        def gain(members: tuple[int, ...]) -> float:
            inside = np.ix_(members, members)
            above = (weight[inside] * residual[inside] * shape[inside]).sum() / 2.0
            below = (weight[inside] * shape[inside] ** 2).sum() / 2.0
            return float(max(above, 0.0) ** 2 / max(below, 1e-12) / 2.0)

        found = [members for members in clusters if len(members) < m]
        if m > FEW:
            gains = {members: gain(members) for members in found if len(members) <= m // 2}
            found = sorted(gains, key=lambda members: (-gains[members], members))
            self.evaluate(self._path(found, gains))
            rounds = 0 if m > MANY else 3
        else:
            self.evaluate(self.join(self.base, members) for members in found)
            self.evaluate(self.closed(np.array(cut)) for cut in cuts)
            rounds = 2 * m
        done: set[Partition] = set()
        for _ in range(rounds):
            top = [partition for partition in self.best()[: 3 if m <= FEW else 1] if partition not in done]
            if not top:
                break
            for partition in top:
                done.add(partition)
                self.evaluate(self._moves(partition, surprise, found))

    def _path(self, found: list[tuple[int, ...]], gains: dict[tuple[int, ...], float]) -> list[Partition]:
        """Return partitions with one, four, sixteen, ... of the most conspicuous clusters that do not overlap."""
        m = self.problem.m
        label, taken = np.array(self.base), np.zeros(m, dtype=bool)
        path: list[Partition] = []
        alone = _partition_prior(self.base, self.base, COPIES)
        for members in found:
            worth = gains[members] - 0.5 * np.log(len(members)) - alone
            worth += _partition_prior(self.join(self.base, members), self.base, COPIES)
            if (worth > 0.0 or not path) and not taken[list(members)].any():
                label[list(members)] = m + len(path)
                taken[list(members)] = True
                path.append(self.closed(label.copy()))
        return [path[min(4**step, len(path)) - 1] for step in range(len(path).bit_length() // 2 + 2)] if path else []

    def _moves(self, partition: Partition, surprise: FloatArray, found: list[tuple[int, ...]]) -> list[Partition]:
        """Return the neighbors of a partition: a source moved, groups joined, a cluster added.

        With many sources only the moves that the residuals of the independent fit suggest most.
        """
        m = self.problem.m
        few = m <= FEW
        label = np.array(partition)
        sizes = np.bincount(label)
        groups = np.flatnonzero(sizes > 1)
        loose = np.flatnonzero(sizes[label] == 1)
        moves = []
        for group in groups if few else groups[:4]:
            inside = label == group
            attraction = surprise[:, inside].sum(axis=1)
            near = np.argsort(-attraction, kind="stable")
            if not few:
                near = np.concatenate([near[~inside[near]][:2], near[inside[near]][-1:]])
            for source in near:
                changed = label.copy()
                changed[source] = m + 1 if inside[source] else group
                moves.append(self.closed(changed))
            moves += [self.closed(np.where(label == other, group, label)) for other in groups if other > group and few]
        if len(loose) > 1:
            if few:
                moves.append(self.join(partition, loose.tolist()))
            pairs = [(-surprise[a, b], a, b) for a in loose for b in loose if a < b]
            moves += [self.join(partition, (int(a), int(b))) for _, a, b in sorted(pairs)[: min(m, 10) if few else 2]]
        free = set(loose.tolist())
        moves += [self.join(partition, members) for members in found if free.issuperset(members)][: 2 * m if few else 4]
        return moves


def _dendrogram(similarity: FloatArray, clusters: dict[tuple[int, ...], None], cuts: dict[Partition, None]) -> None:
    """Add every cluster of average linkage, and every partition that cutting the tree gives."""
    m = len(similarity)
    distance = similarity.max() - (similarity + similarity.T) / 2.0
    np.fill_diagonal(distance, 0.0)
    members = {index: [index] for index in range(m)}
    label = np.arange(m)
    for index, merge in enumerate(linkage(squareform(np.maximum(distance, 0.0), checks=False), "average")):
        joined = members[int(merge[0])] + members[int(merge[1])]
        members[m + index] = joined
        clusters[tuple(sorted(joined))] = None
        label[joined] = m + index
        if m <= FEW:
            cuts[_canonical(label.tolist())] = None


def _kinds(problem: _Problem, base: Partition, best: float) -> list[Partition]:
    """Return the best partition into two, three and four kinds, as far as it is near the `best` score of the search.

    Sources are sorted by their quality as independent ones, and cut where the parts have the least squares.
    """
    m = problem.m
    u = problem.fit(_Layout.of(tuple(range(m)), COPIES), TAUS[-1], OMEGAS[1], rounds=8).u
    order = np.argsort(u, kind="stable")
    ends = np.arange(m + 1)
    total, square = (np.concatenate([[0.0], np.cumsum(u[order] ** power)]) for power in (1, 2))
    size = np.maximum(ends - ends[:, None], 1)
    cost = np.where(ends > ends[:, None], square - square[:, None] - (total - total[:, None]) ** 2 / size, np.inf)
    reached, cuts = cost[0], np.zeros((max(NUMBERS) + 1, m + 1), dtype=np.int64)
    found = []
    for number in range(2, min(max(NUMBERS), m - 1) + 1):
        options = reached[:, None] + cost
        cuts[number], reached = options.argmin(axis=0), options.min(axis=0)
        label, end = np.zeros(m, dtype=np.int64), m
        for part in range(number, 1, -1):
            label[order[cuts[part, end] : end]] = part
            end = cuts[part, end]
        partition = _canonical(label.tolist())
        before = _partition_prior(partition, base, KINDS)
        if np.isfinite(before):
            layout = _Layout.of(partition, KINDS)
            scores = [problem.fit(layout, tau, OMEGAS[1], rounds=8).evidence for tau in TAUS[-3:]]
            if max(scores) + before > best - NATS:
                found.append(partition)
    return found


@dataclass(frozen=True)
class _Row:
    """One hypothesis with its log posterior."""

    layout: _Layout
    turned: bool
    tau: float
    omega: float
    point: FloatArray
    reference: FloatArray
    score: float


def _all_rows(problem: _Problem, layouts: list[tuple[Partition, int]], base: Partition) -> list[_Row]:
    """Fit the best partitions with every spread and misfit, in their forms and, where it is in doubt, turned around."""
    omegas = OMEGAS if problem.usable.any() else OMEGAS[:1]
    decay = np.array([OMEGA_DECAY ** max(i, 0) for i in range(len(omegas))])
    log_omega = np.log(decay / decay.sum())
    log_tau = np.log([SPIKE] + [(1.0 - SPIKE) / (len(TAUS) - 1)] * (len(TAUS) - 1))
    rows: list[_Row] = []
    best = -np.inf
    for partition, form in layouts:
        layout = _Layout.of(partition, form)
        before = _partition_prior(partition, base, form)
        if not np.isfinite(before):
            continue
        straight: list[_Row] = []
        # All spreads and misfits are compared with the variances of one fit: a quality that is taken for high makes
        # its own pairs look exact, which would favor unlike sources.
        reference = problem.fit(layout, REFERENCE, OMEGAS[1]).point
        begin: FloatArray | None = None
        for index in np.argsort([abs(tau - 0.4) for tau in TAUS]):
            tau, previous, start = TAUS[index], -np.inf, begin
            # With many sources the table decides about misfit and spread, one after the other.
            alone = problem.m > MANY and bool(straight)
            best_omega = max(straight, key=lambda row: row.score).omega if straight else 0.0
            for place, omega in enumerate(omegas):
                if alone and omega != best_omega:
                    continue
                fit = problem.fit(layout, tau, omega, start, reference)
                score = fit.evidence + before + log_tau[index] + log_omega[place]
                straight.append(_Row(layout, False, tau, omega, fit.point, reference, score))
                start = fit.point
                begin = fit.point if begin is None else begin
                best = max(best, score)
                if score < previous and score < best - NATS - 2.0:
                    break
                previous = score
        rows += straight
        top = max(straight, key=lambda row: row.score)
        quality = np.tanh(top.point[: problem.m])
        sign = quality / np.sqrt(quality**2 + problem.follows**2)
        doubtful = problem.has_gold or log_ndtr(-sign.mean() / (2.0 * HALF)) > np.log(CONTRARY)
        if top.score > best - NATS and doubtful:
            rows += _turned(problem, straight, best)
    return rows


def _turned(problem: _Problem, straight: list[_Row], best: float) -> list[_Row]:
    """Return the same hypotheses with the qualities reversed, where that is another maximum."""
    rows = []
    for row in straight:
        if row.score > best - NATS or row.tau == TAUS[-1]:
            begin = row.point.copy()
            begin[: problem.m] *= -1.0
            fit = problem.fit(row.layout, row.tau, row.omega, begin, row.reference)
            if np.abs(fit.u - row.point[: problem.m]).max() > 0.05:
                own = problem.fit(row.layout, row.tau, row.omega, row.point, row.reference, rounds=1).evidence
                rows.append(replace(row, turned=True, point=fit.point, score=fit.evidence + (row.score - own)))
    return rows


def _summarize(problem: _Problem, rows: list[_Row], back: IntArray, seed: int) -> Trust:
    """Turn rows into hypotheses, draws and probabilities, in the order of the columns."""
    m = problem.m
    score = np.array([row.score for row in rows])
    mass = np.exp(score - score.max())
    mass /= mass.sum()
    chosen = [int(index) for index in np.argsort(-mass, kind="stable") if mass[index] > np.exp(-NATS)]
    chosen = chosen if m <= MANY else chosen[:KEPT]
    share = mass[chosen] / mass[chosen].sum()
    kept = [rows[index] for index in chosen]
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(DRAWS, share)
    means, variances, shares, draws = np.zeros((len(kept), m)), np.zeros((len(kept), m)), np.zeros((len(kept), m)), []
    no_signal = 0.0
    for index, row in enumerate(kept):
        fit = problem.fit(row.layout, row.tau, row.omega, row.point, row.reference, rounds=1)
        mean, covariance = fit.posterior()
        means[index], variances[index], shares[index] = mean, np.maximum(np.diag(covariance), 1e-12), fit.k
        if counts[index]:
            values, vectors = np.linalg.eigh(covariance)
            normal = rng.standard_normal((counts[index], m)) * np.sqrt(np.maximum(values, 0.0))
            draws.append(mean + normal @ vectors.T)
        middle, scale = fit.mean_quality()
        positive = max(float(ndtr(middle / scale)), 1e-12)
        below = float(ndtr((NO_SIGNAL - middle) / scale) - ndtr(-middle / scale))
        no_signal += float(share[index]) * min(max(below / positive, 0.0), 1.0)
    alike: dict[tuple[Partition, bool, bool], list[int]] = {}
    for index, row in enumerate(kept):
        alike.setdefault((row.layout.errors, row.layout.form == SCHOOLS, row.turned), []).append(index)
    hypotheses = []
    together = np.zeros((m, m))
    for (partition, _, _), own in alike.items():
        weight = share[own] / share[own].sum()
        u = weight @ means[own]
        variance = weight @ (variances[own] + means[own] ** 2) - u**2
        group = np.array(partition)
        same = (group[:, None] == group) & ~np.eye(m, dtype=bool)
        together += share[own].sum() * same
        common = np.where(same, np.einsum("h,ha,hb->ab", weight, shares[own], shares[own]), 0.0)
        omega = float(weight @ [kept[index].omega for index in own])
        hypotheses.append(
            Hypothesis(
                float(share[own].sum()),
                _renumbered(group[back]),
                u[back],
                _correlation(common, u, omega)[np.ix_(back, back)],
                np.sqrt(np.maximum(variance, 1e-12))[back],
            )
        )
    hypotheses = sorted(hypotheses, key=lambda hypothesis: -hypothesis.probability)[:KEPT]
    total = sum(hypothesis.probability for hypothesis in hypotheses)
    u = share @ means
    variance = share @ (variances + means**2) - u**2
    return Trust(
        tuple(replace(one, probability=one.probability / total) for one in hypotheses),
        u[back],
        np.sqrt(np.maximum(variance, 1e-12))[back],
        np.clip(np.concatenate(draws) if draws else np.zeros((0, m)), -LIMIT, LIMIT)[:, back],
        together[np.ix_(back, back)],
        float(share @ [max(row.layout.errors) == m - 1 for row in kept]),
        float(share @ [row.tau == TAUS[0] for row in kept]),
        no_signal,
        float(share @ [row.omega for row in kept]),
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

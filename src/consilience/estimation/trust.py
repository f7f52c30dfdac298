"""The trust engine: from a table of pairwise agreements to qualities, groups and their probabilities.

It knows nothing of labels. In: `PairTable`, `Forward`. Out: `Trust`, a short list of weighted hypotheses.
The model, with q = tanh(u) the correlation of a source with the truth:

    y_ab ~ N(phi(u_a) . phi(u_b), s_ab^2 + omega^2)                a, b in different groups
    ... + k_a k_b sqrt((1 - q_a^2)(1 - q_b^2)), k ~ U(0, 1)        a, b in one group: a second factor of the errors
    u_a ~ N(mu, tau^2), mu ~ N(MEAN, SPREAD^2), mu > 0;            partition ~ copying tree with probability COPIES
"""

from dataclasses import dataclass

import numpy as np
from scipy.cluster.hierarchy import linkage
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import squareform
from scipy.special import betaln, gammaln, log_ndtr, ndtr, ndtri

# ---- the constants of the engine -------------------------------------------------------------------------------
MEAN, SPREAD = 0.55, 0.5  # prior of the mean quality: q = .5 (75% right of two classes), one sd down to chance
COPIES = 0.1  # prior probability that a source repeats another one
TAUS = (0.03, 0.1, 0.2, 0.4, 0.8)  # spread of u: from "all alike" to "some perfect, some useless"; octaves
OMEGAS = (0.0, 0.02, 0.05, 0.1)  # misfit of the forward map, in units of correlation; octaves
SPIKE = 0.2  # prior probability of the first tau (all alike): flat; the one knob between "never worse" and "close to the oracle"
KEPT, NATS = 6, 7.0  # hypotheses handed on, and how far below the best (a thousandth)
LIMIT = 4.0  # largest |u|: q = .9993


from consilience.estimation import protocol
from consilience.estimation.pair_table import Forward, PairTable


@dataclass(frozen=True)
class Hypothesis:
    probability: float
    groups: tuple  # label of the group of each source
    u: np.ndarray
    correlation: np.ndarray  # of the errors of two sources of one group
    flipped: bool = False


@dataclass(frozen=True)
class Trust:
    hypotheses: list
    u: np.ndarray  # posterior mean and sd over everything
    sd: np.ndarray
    draws: np.ndarray  # posterior draws of u, for intervals
    tau: float
    independent: float  # probability that nobody copies
    table: PairTable
    forward: Forward

    @property
    def q(self):
        return np.tanh(self.u)


@dataclass(frozen=True)
class Fits:
    """Rows of maxima: realised u, log evidence, Hessian; lasting u = MEAN + keep (u - MEAN), `left` its variance."""

    u: np.ndarray
    evidence: np.ndarray
    hess: np.ndarray
    true: np.ndarray
    keep: np.ndarray
    left: np.ndarray
    copied: np.ndarray


class _Model:
    def __init__(self, table, forward):
        self.y, self.forward = table.value, forward
        self.m = len(self.y)
        use = np.isfinite(table.error) & ~np.eye(self.m, dtype=bool)
        self.use = use
        self.y = np.where(use, table.value, 0.0)
        self.s2 = np.where(use, table.error, 1.0) ** 2
        # error of a pair = that of either source's realised quality + its own; `unit` is the variance of one item
        f2 = np.clip(self.y, -0.95, 0.95) ** 2
        self.unit = float(np.median((self.s2 * table.both / (1 - f2))[use])) if use.any() else 1.0
        self.votes = np.maximum(np.diag(table.both), 1.0)
        self.gold = table.gold_value is not None and bool(np.isfinite(table.gold_error).any())
        if self.gold:
            self.gu = np.isfinite(table.gold_error)
            self.gy, self.gs2 = np.where(self.gu, table.gold_value, 0.0), np.where(self.gu, table.gold_error, 1.0) ** 2

    def same(self, partitions):
        p = np.asarray(partitions)
        return p[:, :, None] == p[:, None, :]

    def start(self, same):
        """Leading eigenvector of the agreements between groups, completed by power iterations; mean sign positive."""
        w = np.where(same | ~self.use, 0.0, 1.0 / (self.s2 + np.median(self.s2[self.use])) if self.use.any() else 0.0)
        level = np.sqrt(np.clip((w * self.y).sum((1, 2)) / np.maximum(w.sum((1, 2)), 1e-9), 0.05, 0.9))
        q = np.repeat(level[:, None], self.m, 1)
        for _ in range(12):
            den = np.einsum("hab,hb->ha", w, q**2)
            new = np.einsum("hab,hb->ha", w * self.y, q) / np.maximum(den, 1e-9)
            q = np.where(den > 1e-9, np.clip(0.5 * q + 0.5 * new, -0.97, 0.97), q)
        q *= np.where(q.sum(1, keepdims=True) < 0, -1, 1)
        return np.arctanh(q)

    def split(self, u, x, same):
        """How the errors of pairs hang together, from the factors of the votes as they seem at the start.

        With r = 1 - (share of a vote that the factors explain), the error of a pair of variance 1 - (1 - r_a)(1 - r_b)
        has the part r_a r_b of its own; the rest is that the sources were lucky or unlucky on these items (`noise`, the
        covariance of realised u). Members of a group are so together, with the truth and with any other source
        (`load`).
        """
        rest = np.maximum(1 - np.tanh(u) ** 2, 0.1)
        k = np.where(same.sum(2) > 1, ndtr(x), 0.0)
        alone = np.maximum(1 - k**2, 0.1)

        def own(r):
            return r[:, :, None] * r[:, None, :] / (1 - (1 - r[:, :, None]) * (1 - r[:, None, :]))

        cross = own(rest)
        side = np.where(self._first(same), alone[:, :, None], 1.0)
        side = np.minimum(side, np.swapaxes(side, 1, 2))
        v = self.s2 * np.where(same, own(rest * alone), cross * side)
        load = np.where(self._first(same), k[:, :, None] * np.sqrt(self.s2 * cross), 0.0)
        sd = np.sqrt(self.unit / (self.votes * rest))
        noise = np.where(same, (k * sd)[:, :, None] * (k * sd)[:, None, :], 0.0)
        noise[:, np.arange(self.m), np.arange(self.m)] = sd**2
        return noise, v, load

    def _first(self, same):
        """Pairs (a, b) of which a is in the larger group, so that their error is shared by the group of a."""
        size = same.sum(2)
        return (size[:, :, None] > size[:, None, :]) & ~same & self.use

    def start_shares(self, u, same):
        """K of the members of a group, as x with k = ndtr(x): the root of the mean correlation of their errors."""
        q = np.tanh(u)
        rest = np.sqrt(np.maximum((1 - q**2)[:, :, None] * (1 - q**2)[:, None, :], 0.01))
        inside = same & self.use
        rho = np.where(inside, (self.y - q[:, :, None] * q[:, None, :]) / rest, 0.0).sum(2) / np.maximum(
            inside.sum(2), 1
        )
        return np.where(inside.any(2), ndtri(np.sqrt(np.clip(rho, 0.05, 0.95))), 0.0)

    def _predict(self, t, same):
        """Expected agreements; derivatives by the u and x of the first of two sources."""
        m = self.m
        u, x = t[:, :m], t[:, m:]
        phi, dphi, sign = self.forward.features(u)
        q, h, k = np.tanh(u), 1 / np.cosh(u), ndtr(x)
        g = k * h
        f = np.einsum("hak,k,hbk->hab", phi, sign, phi) + np.where(same, g[:, :, None] * g[:, None, :], 0.0)
        by_u = np.einsum("hak,k,hbk->hab", dphi, sign, phi) - np.where(same, (q * g)[:, :, None] * g[:, None, :], 0.0)
        slope = np.exp(-0.5 * x**2) / np.sqrt(2 * np.pi) * h
        return f, by_u, np.where(same, slope[:, :, None] * g[:, None, :], 0.0)

    def _gold(self, t):
        phi, dphi, sign = self.forward.features(t[:, : self.m])
        top, _, _ = self.forward.features(np.array(LIMIT))
        return (phi * sign) @ top, (dphi * sign) @ top

    def _terms(self, t, same, v, vg, load, shrink, quad):
        m, at = self.m, np.arange(self.m)
        f, by_u, by_x = self._predict(t, same)
        r, w = self.y - f, np.where(self.use, 1.0 / v, 0.0)
        cost = 0.25 * (w * r * r).sum((1, 2))
        grad = np.concatenate([(w * r * by_u).sum(2), (w * r * by_x).sum(2)], 1)
        hess = np.empty((len(t), 2 * m, 2 * m))
        for i, one in enumerate((by_u, by_x)):
            for j, two in enumerate((by_u, by_x)):
                block = w * one * np.swapaxes(two, 1, 2)
                block[:, at, at] = (w * one * two).sum(2)
                hess[:, i * m : (i + 1) * m, j * m : (j + 1) * m] = block
        for group, once in shrink:  # errors that the members of a group share with each other source (Woodbury)
            lw = np.where(group[:, :, None], load * w, 0.0)
            total = (lw * r).sum(1)
            by = np.swapaxes(lw * by_u, 1, 2)  # [b, a]
            by[:, at, at] += (lw * np.swapaxes(by_u, 1, 2)).sum(1)
            cost -= 0.5 * (once * total**2).sum(1)
            grad[:, :m] -= ((once * total)[:, :, None] * by).sum(1)
            hess[:, :m, :m] -= np.swapaxes(by, 1, 2) @ (once[:, :, None] * by)
        if self.gold:
            fg, sg = self._gold(t)
            rg, wg = self.gy - fg, np.where(self.gu, 1.0 / vg[0], 0.0)
            cost += 0.5 * (wg * rg * rg).sum(1)
            grad[:, :m] += wg * rg * sg
            hess[:, at, at] += wg * sg**2
            for group, once in vg[2]:  # copies are right or wrong together on the known items, too
                lw = np.where(group, vg[1] * wg, 0.0)
                total, by = (lw * rg).sum(1), lw * sg
                cost -= 0.5 * once * total**2
                grad[:, :m] -= (once * total)[:, None] * by
                hess[:, :m, :m] -= once[:, None, None] * by[:, :, None] * by[:, None, :]
        d, x = t[:, :m] - MEAN, t[:, m:]
        qd = (quad @ d[:, :, None])[:, :, 0]
        cost += 0.5 * (d * qd).sum(1) + 0.5 * (x * x).sum(1)
        grad -= np.concatenate([qd, x], 1)
        hess[:, :m, :m] += quad
        hess[:, m + at, m + at] += 1.0
        return cost, grad, hess

    def fit(self, same, tau, omega, start, rounds=25):
        """Maximise every row at once by Levenberg-Marquardt."""
        m = self.m
        shares = self.start_shares(start, same)
        noise, s2, load = self.split(start, shares, same)
        v = s2 + omega[:, None, None] ** 2
        k = np.where(same.sum(2) > 1, ndtr(shares), 0.0)
        known = self.gs2 * np.maximum(1 - k**2, 0.1) + omega[:, None] ** 2 if self.gold else None
        together = k * np.sqrt(self.gs2) if self.gold else None
        vg = (known, together, [])
        # groups that share errors, one after the other; the same Woodbury factor throughout
        shrink, extra, left = [], 0.0, same.sum(2) > 1
        while left.any():
            first = left.argmax(1)
            group = same[np.arange(len(same)), first] & left
            left = left & ~group
            total = 1 + np.where(group[:, :, None] & self.use, load**2 / v, 0.0).sum(1)
            shrink.append((group, 1 / total))
            extra = extra + np.log(total).sum(1)
            if self.gold:
                total = 1 + np.where(group & self.gu, together**2 / known, 0.0).sum(1)
                vg[2].append((group, 1 / total))
                extra = extra + np.log(total)
        alike = np.where(same, k[:, :, None] * k[:, None, :], 0.0)  # who repeats another is as good as that one
        alike[:, np.arange(m), np.arange(m)] = 1.0
        lasting = tau[:, None, None] ** 2 * alike + SPREAD**2  # covariance of true u
        quad = np.linalg.inv(lasting + noise)
        t = np.concatenate([np.clip(start, -LIMIT, LIMIT), shares], 1)
        damp = np.full(len(t), 1e-3)
        fixed = same, v, vg, load, shrink, quad
        cost, grad, hess = self._terms(t, *fixed)
        # only members of groups have an x to solve for
        member = same.sum(2) > 1
        some = np.argsort(~member, axis=1, kind="stable")[:, : member.sum(1).max()]
        pick = np.concatenate([np.broadcast_to(np.arange(m), (len(t), m)), m + some], 1)
        row, at = np.arange(len(t))[:, None], np.arange(pick.shape[1])

        def packed(matrix):
            return matrix[row[:, :, None], pick[:, :, None], pick[:, None, :]]

        for _ in range(rounds):
            damped = packed(hess)
            damped[:, at, at] *= 1 + damp[:, None]
            step = np.clip(np.linalg.solve(damped, grad[row, pick][:, :, None])[:, :, 0], -1.0, 1.0)
            trial = t.copy()
            trial[row, pick] = np.clip(t[row, pick] + step, -LIMIT, LIMIT)
            new = self._terms(trial, *fixed)
            better = new[0] <= cost + 1e-12
            gain = np.where(better, cost - new[0], 0.0).max()
            for old, fresh in zip((t, cost, grad, hess), (trial, *new)):
                old[better] = fresh[better]
            damp = np.where(better, np.maximum(damp / 10, 1e-6), np.minimum(damp * 10, 1e6))
            if gain < 1e-3 and better.any():
                break
        evidence = -cost - 0.25 * np.where(self.use, np.log(2 * np.pi * v), 0.0).sum((1, 2)) - 0.5 * extra
        if self.gold:
            evidence -= 0.5 * np.where(self.gu, np.log(2 * np.pi * known), 0.0).sum(1)
        evidence += 0.5 * np.linalg.slogdet(quad)[1] - 0.5 * np.linalg.slogdet(packed(hess))[1]
        u = t[:, :m]
        keep = lasting @ quad
        true = MEAN + (keep @ (u - MEAN)[:, :, None])[:, :, 0]  # what of the realised quality will last
        spread = tau / np.sqrt(m)
        evidence += log_ndtr(true.mean(1) / spread)  # better than chance on the average
        return Fits(u, evidence, hess, true, keep, lasting - keep @ lasting, ndtr(t[:, m:]))

    def prior(self, partition):
        """Log probability of a partition: all members of a group but one repeat another one of it.

        The probability that a source does is common to all, with a Beta(1, 1 / COPIES - 1) prior.
        """
        sizes = np.bincount(np.unique(partition, return_inverse=True)[1])
        copies = self.m - len(sizes)
        share = betaln(1 + copies, 1 / COPIES - 2 + self.m - copies) - betaln(1, 1 / COPIES - 1)
        return float(share + gammaln(sizes).sum() - copies * np.log(max(self.m - 1, 1)))


def canonical(partition):
    seen = {}
    return tuple(seen.setdefault(int(g), len(seen)) for g in partition)


def _clusters(similarity, m):
    """Every cluster of the dendrogram of average linkage."""
    distance = np.max(similarity) - similarity
    distance = (distance + distance.T) / 2
    np.fill_diagonal(distance, 0.0)
    merges = linkage(squareform(np.maximum(distance, 0), checks=False), "average")
    members = {i: [i] for i in range(m)}
    found = []
    for i, row in enumerate(merges):
        members[m + i] = members[int(row[0])] + members[int(row[1])]
        found.append(frozenset(members[m + i]))
    return found[:-1]


def _trust(table, forward=Forward(), groups=None, linked=None, seed=0):
    """Return the weighted hypotheses about the sources.

    `groups` fixes the partition; `linked` ``(m, m)`` says who is certainly in one group (told by the user, or identical
    votes where labels are continuous).
    """
    model = _Model(table, forward)
    m = model.m
    known = {}

    def evaluate(partitions, taus, omegas):
        new = [p for p in dict.fromkeys(partitions) if p not in known]
        if not new:
            return
        same = model.same(new)
        start = model.start(same)
        best = np.full(len(new), -np.inf)
        for tau in taus:
            for omega in omegas:
                z = model.fit(same, np.full(len(new), tau), np.full(len(new), omega), start.copy(), rounds=10).evidence
                best = np.maximum(best, z)
        for p, z in zip(new, best):
            known[p] = float(z) + model.prior(p)

    alone = tuple(range(m))
    if linked is not None and linked.any():
        alone = canonical(connected_components(linked | np.eye(m, dtype=bool))[1])
    blocks = [np.flatnonzero(np.array(alone) == g) for g in set(alone)]

    def close(label):
        """Return the partition with all that are linked together."""
        label = np.array(label)
        for block in blocks:
            for other in set(label[block].tolist()):
                label[label == other] = label[block[0]]
        return canonical(label)

    if groups is not None:
        evaluate([canonical(groups)], (0.3,), (0.0,))
    else:
        coarse = ((0.2, 0.6), (0.02,)) if m <= 25 else ((0.3,), (0.02,))
        evaluate([alone], *coarse)
        if m >= 4 and model.use.any():
            same = model.same([alone])
            u = model.fit(same, np.array([0.4]), np.array([0.05]), model.start(same)).u
            phi, _, sign = forward.features(u)
            f = np.einsum("ak,k,bk->ab", phi[0], sign, phi[0])
            z = np.where(model.use, (model.y - f) / np.sqrt(model.s2 + 0.02**2), 0.0)
            y = np.where(model.use, model.y, 0.0)
            profile = np.corrcoef(y + np.diag(np.where(model.use, y, -1).max(1).clip(0))) if m > 2 else y
            found = {c for s in (y, z, np.nan_to_num(profile)) for c in _clusters(s, m)}
            found = [c for c in found if len(c) <= max(2, m - 2)]
            if m > 25:  # the most conspicuous only
                inside = {c: np.mean(z[np.ix_(list(c), list(c))]) * np.sqrt(len(c)) for c in found}
                found = sorted(found, key=lambda c: -inside[c])[:40]

            def join(base, cluster):
                label = np.array(base)
                label[list(cluster)] = m + 1
                return close(label)

            evaluate([join(alone, c) for c in found], *coarse)
            done = set()
            for _ in range(2 * m):
                ranked = sorted(known, key=lambda p: -known[p])
                top = [p for p in ranked[:3] if p not in done and known[p] > known[ranked[0]] - NATS]
                if not top:
                    break
                moves = []
                for p in top:
                    done.add(p)
                    label = np.array(p)
                    sizes = np.bincount(label)
                    for g in np.flatnonzero(sizes > 1):
                        for a in range(m):
                            changed = label.copy()
                            changed[a] = m + 1 if label[a] == g else g
                            moves.append(close(changed))
                        for h in np.flatnonzero(sizes > 1):
                            moves.append(canonical(np.where(label == h, g, label)))
                    loose = np.flatnonzero(sizes[label] == 1)
                    pairs = sorted((-z[a, b], a, b) for a in loose for b in loose if a < b)[:m]
                    moves += [join(p, (a, b)) for _, a, b in pairs]
                    moves += [join(p, c) for c in found if all(sizes[label[a]] == 1 for a in c)][: 2 * m]
                evaluate(moves, *coarse)

    # the best partitions, with every spread and misfit, and turned around
    best = sorted(known, key=lambda p: -known[p])
    best = [p for p in best[:KEPT] if known[p] > known[best[0]] - NATS]
    first = model.start(model.same(best[:1]))[0]
    ways = (1, -1) if model.gold or first.mean() < 3 * first.std() / np.sqrt(m) else (1,)  # who could be turned around
    rows = [(p, t, o, turn) for p in best for t in TAUS for o in OMEGAS for turn in ways]
    same = model.same([r[0] for r in rows])
    tau, omega = np.array([r[1] for r in rows]), np.array([r[2] for r in rows])
    turn = np.array([r[3] for r in rows])
    fits = model.fit(same, tau, omega, model.start(same) * turn[:, None])
    u, z, true = fits.u, fits.evidence, fits.true
    turned = (turn < 0) & (u.mean(1) > 0) & ~model.gold  # came back to the same mode
    z = np.where(turned, -np.inf, z) + np.array([model.prior(r[0]) for r in rows])
    z += np.log(np.where(tau == TAUS[0], SPIKE, (1 - SPIKE) / (len(TAUS) - 1)))
    if model.gold:  # modes reached twice count once
        for i in range(1, len(rows), 2):
            if np.abs(u[i] - u[i - 1]).max() < 0.05:
                z[i] = -np.inf
    p = np.exp(z - z.max())
    p /= p.sum()
    rng = np.random.default_rng(seed)
    hypotheses, draws = [], []
    for part in best:
        for way in (1, -1):
            own = np.array([r[0] == part and r[3] == way for r in rows])
            share = float(p[own].sum())
            if share < np.exp(-NATS):
                continue
            mean = (p[own, None] * true[own]).sum(0) / share
            k = (p[own, None] * fits.copied[own]).sum(0) / share
            together = model.same([part])[0] & ~np.eye(m, dtype=bool)
            correlation = np.where(together, np.outer(k, k), 0.0)
            hypotheses.append(Hypothesis(share, part, mean, correlation, way < 0))
    for i in rng.choice(len(rows), 400, p=p):
        spread = fits.keep[i] @ np.linalg.inv(fits.hess[i])[:m, :m] @ fits.keep[i].T + fits.left[i]
        draws.append(true[i] + np.linalg.cholesky(spread + 1e-9 * np.eye(m)) @ rng.standard_normal(m))
    hypotheses = sorted(hypotheses, key=lambda h: -h.probability)[:KEPT]
    draws = np.array(draws)
    single = np.array([len(set(r[0])) == m for r in rows])
    return Trust(
        hypotheses,
        (p[:, None] * true).sum(0),
        draws.std(0),
        draws,
        float((p * tau).sum()),
        float(p[single].sum()),
        table,
        forward,
    )


def trust(table, forward=Forward(), *, linked=None, learn=True, seed=0):
    m = len(table.value)
    if linked is not None and table.linked is not None:
        linked = linked | table.linked
    groups = None
    if not learn:
        groups = connected_components(
            (linked if linked is not None else np.zeros((m, m), bool)) | np.eye(m, dtype=bool)
        )[1]
    t = _trust(table, forward, groups=groups, linked=linked, seed=seed)
    total = sum(h.probability for h in t.hypotheses)
    hs = tuple(
        protocol.Hypothesis(h.probability / total, np.array(h.groups), h.u, h.correlation, t.sd) for h in t.hypotheses
    )
    tog = sum(h.probability * ((h.groups[:, None] == h.groups) & ~np.eye(m, dtype=bool)) for h in hs)
    return protocol.Trust(hs, t.u, t.sd, t.draws, tog, t.independent, 0.0, float((t.draws.mean(1) < 0.05).mean()), 0.0)

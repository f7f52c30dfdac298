"""What was learned about the sources, in the same words for every label type."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from consilience.arrays import FloatArray, IntArray
from consilience.estimation.calibration import UNCALIBRATED, Calibration
from consilience.estimation.protocol import Diagnostic, Mixture, Parameters, Summary
from consilience.tables.display import SourceTable

__all__ = ["SourceModel", "SourceTable", "connected", "correlation_potential", "effective_number"]


@dataclass(frozen=True, eq=False)
class SourceModel:
    """Sources, the law's parameters under each hypothesis with its probability, and their summary.

    Parameters
    ----------
    votes
        ``(m,)`` how many votes each source cast.
    method, reason
        How the parameters were learned, and why in that way.
    dependencies
        Pairs of sources that were not taken as independent.
    baseline
        The parameters of the plain vote of these sources, all of the same weight.
    calibration
        How known labels turned stated confidence into one that comes true.
    quality
        ``(m,)`` correlation of each source's votes with the truth; None for methods that do not ask the trust engine.
    changed
        Share of the labels that differ from those of the plain vote, over a sample of the items; on a continuous scale
        by more than a tenth of the distance between two votes. NaN where no votes were at hand.
    """

    sources: tuple[str, ...]
    mixture: Mixture
    summary: Summary
    n_items: int
    votes: IntArray
    method: str
    reason: str
    dependencies: tuple[tuple[str, str], ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    names_given: bool = True
    baseline: Parameters | None = None
    calibration: Calibration = UNCALIBRATED
    quality: FloatArray | None = None
    changed: float = float("nan")

    @property
    def parameters(self) -> Parameters:
        """The parameters of the most probable hypothesis."""
        return self.mixture[0][1]

    @property
    def expected_cost(self) -> FloatArray:
        """Mean cost of each source to the truth."""
        return self.summary.expected_cost

    @property
    def weight(self) -> FloatArray:
        """How loudly each source counts."""
        return self.summary.weight

    @property
    def standard_error(self) -> FloatArray:
        """Standard error of `weight`."""
        return self.summary.standard_error

    @property
    def correlation(self) -> FloatArray:
        """``(m, m)`` correlation given the truth; zero outside the dependencies."""
        return self.summary.correlation

    @property
    def correlation_potential(self) -> FloatArray:
        """``(m, m)`` the paper's theta_ab of equation 1, for a cost of 0 or 1 between labels.

        Half the log odds ratio of two sources' errors, at the qualities and the error correlation that were learned:
        exact for two classes, and the potential of the two-class model of the same correlation otherwise.
        """
        quality = self.quality
        return np.zeros_like(self.correlation) if quality is None else correlation_potential(quality, self.correlation)

    @property
    def effective_sources(self) -> float:
        """How many equally good independent sources would be worth as much as these (Kish's effective number).

        ``(sum w)**2 / sum w_a w_b rho_ab`` over the weights w, none below zero, and the correlations rho given the
        truth.
        """
        voting = self.votes > 0
        return effective_number(self.weight[voting], self.correlation[np.ix_(voting, voting)])

    def as_baseline(self) -> SourceModel:
        """Return the model of the plain vote, which labels items as if all sources were equally good."""
        if self.baseline is None:
            return self
        return replace(self, mixture=((1.0, self.baseline),), calibration=UNCALIBRATED)

    def table(self) -> SourceTable:
        """Return one row per source; where labels are records, with the qualities in each field beside."""
        effective = f"{self.effective_sources:.1f}"
        if self.summary.effective_range is not None:
            effective = "{:.1f} to {:.1f}".format(*self.summary.effective_range)
        note = f"effective number of sources: {effective} of {int((self.votes > 0).sum())}"
        note += f"; {self.changed:.0%} of the labels differ from the plain vote" if self.changed >= 0 else ""
        return SourceTable(
            {
                "source": list(self.sources),
                "votes": self.votes.tolist(),
                "coverage": (self.votes / max(self.n_items, 1)).tolist(),
                **_columns(self.summary),
            },
            note=note,
        )


def correlation_potential(quality: FloatArray, correlation: FloatArray) -> FloatArray:
    """Return theta_ab from the qualities of two sources and the correlation of their errors.

    With error rates ``e = (1 - q) / 2`` and joint error rate ``e_a e_b + rho sqrt(e_a (1 - e_a) e_b (1 - e_b))`` the
    2 x 2 table of right and wrong has the odds ratio ``exp(2 theta_ab)``.

    Examples
    --------
    >>> rho = np.array([[0.0, 0.5], [0.5, 0.0]])
    >>> correlation_potential(np.array([0.0, 0.0]), rho).round(3)[0, 1]  # .375 * .375 / (.125 * .125) is 9
    np.float64(1.099)
    """
    wrong = np.clip((1.0 - quality) / 2.0, 1e-3, 1.0 - 1e-3)
    left, right = wrong[:, None], wrong[None, :]
    joint = left * right + correlation * np.sqrt(left * (1 - left) * right * (1 - right))
    joint = np.clip(joint, np.maximum(left + right - 1.0, 0.0) + 1e-6, np.minimum(left, right) - 1e-6)
    odds = joint * (1.0 - left - right + joint) / ((left - joint) * (right - joint))
    potential = 0.5 * np.log(np.maximum(odds, 1e-12))
    return np.where((correlation != 0) & ~np.eye(len(wrong), dtype=bool), potential, 0.0)


def connected(pairs: Iterable[Iterable[str]]) -> list[list[str]]:
    """Return the groups of names that are linked by pairs, directly or through others.

    Examples
    --------
    >>> connected([("a", "b"), ("c", "d"), ("b", "e")])
    [['c', 'd'], ['a', 'b', 'e']]
    """
    groups: list[list[str]] = []
    for pair in map(list, pairs):
        touched = [group for group in groups if not set(group).isdisjoint(pair)]
        joined = list(dict.fromkeys([name for group in touched for name in group] + pair))
        groups = [group for group in groups if group not in touched] + [joined]
    return groups


def effective_number(weight: FloatArray, correlation: FloatArray) -> float:
    """Return Kish's effective number of sources of these weights and correlations.

    Examples
    --------
    >>> pair = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])  # two copies and another source
    >>> round(effective_number(np.ones(3), pair), 2)
    1.8
    """
    loud = np.maximum(weight, 0.0)
    together = np.clip(correlation, 0.0, 1.0)
    np.fill_diagonal(together, 1.0)
    if not loud.any():
        return 0.0
    loud = loud / loud.max()
    return float(loud.sum() ** 2 / (loud @ together @ loud))


def _columns(summary: Summary, path: str = "") -> dict[str, list[Any]]:
    """Return the qualities of the sources, then those of each field where labels are records."""
    qualities = ("expected_cost", "cost_standard_error", "weight", "standard_error")
    found = {name: getattr(summary, name) for name in qualities} | dict(summary.columns)
    columns = {f"{path} {name}" if path else name: values.tolist() for name, values in found.items()}
    for name, part in summary.parts.items():
        columns |= _columns(part, f"{path}/{name}" if path else name)
    return columns

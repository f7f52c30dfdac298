"""When a sample of the items is enough to maximise a likelihood on, and what to say about it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

import numpy as np

from consilience.arrays import BoolArray, FloatArray
from consilience.families.base import Diagnostic, Passes
from consilience.families.findings import not_converged, polished

__all__ = ["finish"]


class Fitted(Protocol):
    """The outcome of some EM rounds."""

    @property
    def standard_error(self) -> FloatArray: ...

    @property
    def converged(self) -> bool: ...


F = TypeVar("F", bound=Fitted)


def finish(
    passes: Passes, fit: F, go_on: Callable[[F], F], active: BoolArray, limit: float
) -> tuple[F, tuple[Diagnostic, ...]]:
    """Return a fit that was made on the sample, gone on with on all items if its standard errors are too large.

    Parameters
    ----------
    go_on
        Continues a fit on all items.
    active
        ``(m,)`` sources whose standard errors count.
    limit
        Standard error of a weight with which a sample is good enough.
    """
    notes: list[Diagnostic] = []
    if passes.n_sampled < passes.n_items:
        worst = float(np.max(fit.standard_error[active], initial=0.0))
        used = f"a seeded sample of {passes.n_sampled:,} of {passes.n_items:,} items"
        if worst > limit and passes.complete:
            fit = go_on(fit)
            used = f"all {passes.n_items:,} items after a start on {passes.n_sampled:,}"
        notes.append(polished(used, "a weight", worst, limit))
    if not fit.converged:
        notes.append(not_converged())
    return fit, tuple(notes)

"""From votes to what is known about the sources: passes over the votes, choice of method, diagnostics."""

from consilience.estimation.estimate import SourceEstimator, estimate_from_moments, take_moments

__all__ = ["SourceEstimator", "estimate_from_moments", "take_moments"]

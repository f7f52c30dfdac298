"""From votes to what is known about the sources: passes over the votes, choice of method, diagnostics."""

from consilience.estimation.estimate import SourceEstimator, estimate_from_moments, estimate_from_votes

__all__ = ["SourceEstimator", "estimate_from_moments", "estimate_from_votes"]

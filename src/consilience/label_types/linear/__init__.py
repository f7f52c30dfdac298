"""Scores and vectors: votes on a line of the truth, in one or more dimensions."""

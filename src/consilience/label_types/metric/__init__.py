"""Anything with a distance: the label type of a user's own metric, and the default law of every label type."""

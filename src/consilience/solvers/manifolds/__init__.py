"""Geometries: distance, exponential and logarithm maps, parallel transport and weighted means of batches of points."""

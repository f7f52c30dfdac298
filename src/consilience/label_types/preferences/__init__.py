"""Comparisons of two items at a time by judges, and the rankings behind them."""

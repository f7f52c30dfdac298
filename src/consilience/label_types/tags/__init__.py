"""Several tags per item, each present or not, and sequences with one tag per position."""

"""Dependency trees of sentences: one head per token."""

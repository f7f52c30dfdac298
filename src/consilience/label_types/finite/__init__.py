"""Finite metric spaces: one of K nodes, with any cost between them."""

"""The command line: votes from a file in, labels with confidence out."""

from consilience.cli.program import main

__all__ = ["main"]

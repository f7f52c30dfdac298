"""The command line: votes from a file in, labels with confidence out."""

from consilience.cli.commands import main

__all__ = ["main"]

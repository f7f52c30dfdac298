"""Votes from files, labels into files, and which label type a file seems to hold."""

from consilience.files.guessing import Guess, guess_space
from consilience.files.reading import read_votes
from consilience.files.writing import label_frame, label_table, write_labels

__all__ = ["Guess", "guess_space", "label_frame", "label_table", "read_votes", "write_labels"]

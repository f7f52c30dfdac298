"""Votes from tables and files of any format, labels into them, and which label type a file seems to hold."""

from consilience.lazy import on_first_use

__getattr__, __dir__, __all__ = on_first_use(__name__)

"""Codes of tags beside 0, 1, ...: what stands where there is no tag."""

from __future__ import annotations

__all__ = ["ABSENT", "UNKNOWN"]

#: A source has no opinion on this tag or position.
UNKNOWN = -1
#: The sequence has ended.
ABSENT = -2

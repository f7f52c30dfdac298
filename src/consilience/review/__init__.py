"""A local page to label items on: it asks for the items that matter, and shows live how good the labels are."""

from __future__ import annotations

from consilience.review.gold_file import GoldFile
from consilience.review.server import make_app, serve
from consilience.review.session import Session

__all__ = ["GoldFile", "Session", "make_app", "serve"]

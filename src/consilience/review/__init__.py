"""A local page to label items on: it asks for the items that matter, and shows live how good the labels are."""

from consilience.lazy import on_first_use

__getattr__, __dir__, __all__ = on_first_use(__name__)

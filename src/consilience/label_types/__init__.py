"""What a label is: one label type per file."""

from consilience.lazy import on_first_use

__getattr__, __dir__, __all__ = on_first_use(__name__)

"""Read votes from tables and files of any format, write labels to them, and detect the label type."""

from consilience.lazy import on_first_use

__getattr__, __dir__, __all__ = on_first_use(__name__)

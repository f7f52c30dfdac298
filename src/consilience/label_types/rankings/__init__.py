"""Rankings of items: full, partial, tied, top-k, and of different lengths."""

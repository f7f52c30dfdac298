"""Records: a label has several fields, each of a label type of its own."""

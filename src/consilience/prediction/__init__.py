"""What was learned about the sources, and the labels that follow from it."""

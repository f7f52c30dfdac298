"""Classes: one of k categories, from judges who vote every class or labeling functions that vote some."""

"""Label types that have not moved to `label_types` yet."""

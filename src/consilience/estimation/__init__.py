"""From votes to what is known about the sources: the pair table, the trust engine, EM, diagnostics."""

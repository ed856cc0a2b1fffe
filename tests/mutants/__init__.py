"""Working adapters with one plausible mistake each: what the clauses are worth is how many of them they see."""

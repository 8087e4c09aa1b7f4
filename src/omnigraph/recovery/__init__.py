"""Recovery: what an interrupted write left, told from what is in flight, and brought to an end."""

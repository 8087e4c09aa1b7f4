"""Export: the rows of a snapshot, written to files that load again."""

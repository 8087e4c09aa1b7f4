"""Names, ids, table keys, commits: the values that every layer shares. Standard library only."""

"""Names, ids, table keys, commits: the words every layer shares. Standard library only."""

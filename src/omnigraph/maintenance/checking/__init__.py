"""The check of a whole graph: everything that must hold of it, read from storage and proven."""

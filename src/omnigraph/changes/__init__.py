"""Changes: how two points of a graph's history differ, row by row, and the feed of commits."""

"""What each engine does for readers and writers, and where it is found by its name."""

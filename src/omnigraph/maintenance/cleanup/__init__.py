"""Cleanup: expires commits by rules, and removes every file that nothing names any more."""

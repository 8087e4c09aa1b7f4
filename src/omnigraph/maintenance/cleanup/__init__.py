"""Cleanup: lets commits go by rules, and removes every file that nothing names any more."""

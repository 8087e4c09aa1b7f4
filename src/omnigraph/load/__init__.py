"""Loads: inputs read, shaped, checked and staged, into one transaction."""

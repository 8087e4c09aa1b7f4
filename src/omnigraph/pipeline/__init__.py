"""The data pipeline: sources, shaped, checked and staged, into one transaction."""

"""The query language: `.gq` text to a typed, fully resolved query, and parameters for it."""

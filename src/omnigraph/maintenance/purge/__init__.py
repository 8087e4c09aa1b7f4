"""Purges: what a schema change dropped is removed from the disk, if nothing needs it any more."""

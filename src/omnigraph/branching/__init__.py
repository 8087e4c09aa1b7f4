"""Branches: how they begin, how they end, and what their writes stand on."""

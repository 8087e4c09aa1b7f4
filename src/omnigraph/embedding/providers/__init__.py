"""Providers: what makes vectors of texts, behind one protocol."""

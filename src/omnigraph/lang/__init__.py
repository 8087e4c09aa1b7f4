"""Shared by both languages: source text, diagnostics, the interface to the grammars."""

"""What both languages share: source text, diagnostics, grammar plumbing."""

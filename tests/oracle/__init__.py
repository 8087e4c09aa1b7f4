"""The reference model: evaluates queries by exhaustive search; engines must return the same."""

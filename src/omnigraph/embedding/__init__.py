"""Embeddings: texts as vectors, and notes of what each vector was made from (decision 0020)."""

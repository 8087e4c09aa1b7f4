"""Search: words of texts, relevance, distances between vectors, and the fusion of rankings."""

"""Search: words of texts, relevance, and distances between vectors."""

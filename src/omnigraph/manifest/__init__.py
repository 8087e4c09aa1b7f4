"""The single authority: which table versions each branch publishes, and every commit."""

"""The manifest, the single authority: which table versions each branch publishes, every commit."""

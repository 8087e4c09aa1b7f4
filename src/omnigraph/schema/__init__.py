"""The schema: `.pg` text to a catalog, a catalog to text, JSON and Arrow."""

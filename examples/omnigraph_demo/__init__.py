"""The demo: a world of papers, and a tour through what can be done with it."""

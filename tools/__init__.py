"""Programs for people who work on Omnigraph."""

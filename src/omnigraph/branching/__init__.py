"""Branches: their creation and deletion, and the cleanup of what they leave behind."""

"""Maintenance: indexes, repair and checks, which never change an answer."""

"""Test machinery that ships with the package; no other room imports it."""

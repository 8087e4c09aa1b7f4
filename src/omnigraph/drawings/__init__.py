"""Drawings: histories and schemas as pictures. The same input gives the same picture."""

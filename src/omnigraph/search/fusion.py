"""Fusion: several rankings of the same rows as one, by the ranks that a row has in each."""

from __future__ import annotations

from typing import Final

RRF_WINDOW: Final = 1_000
"""How many rows of a ranking a fusion counts: further ones change no order that anybody reads."""

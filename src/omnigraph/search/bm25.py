"""Relevance: bm25 of texts for a query, from counts of words alone.

A word counts the more the fewer texts have it and the more often a text has it, with less and less
weight, and less in a long text. Words that a query has twice count once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

K1: Final = 1.2
"""How much a word's further occurrences in a text count."""

B: Final = 0.75
"""How much the length of a text counts."""


@dataclass(frozen=True, slots=True)
class TextStatistics:
    """What the texts of a type are like: exactly those of one snapshot that are not null.

    Attributes:
        texts: How many there are.
        tokens: How many tokens they have together.
        frequencies: For each token of a query, how many of the texts have it.
    """

    texts: int = 0
    tokens: int = 0
    frequencies: Mapping[str, int] = field(default_factory=dict)

    def __add__(self, other: TextStatistics) -> TextStatistics:
        terms = dict.fromkeys([*self.frequencies, *other.frequencies])
        return TextStatistics(
            self.texts + other.texts,
            self.tokens + other.tokens,
            {
                term: self.frequencies.get(term, 0) + other.frequencies.get(term, 0)
                for term in terms
            },
        )

    def weight(self, term: str) -> float:
        """How much a token counts.

        >>> round(TextStatistics(texts=3, frequencies={"rare": 1}).weight("rare"), 6)
        0.980829
        """
        having = self.frequencies.get(term, 0)
        return math.log(1 + (self.texts - having + 0.5) / (having + 0.5))


def scores(
    terms: Sequence[str], counts: np.ndarray, lengths: np.ndarray, statistics: TextStatistics
) -> np.ndarray:
    """The scores of texts that have at least one of the terms.

    The same counts give the same numbers to the last bit, however texts are grouped.

    Args:
        counts: A row for each text and a column for each term: how often the text has it.
        lengths: The number of tokens of each text.
    """
    average = statistics.tokens / statistics.texts if statistics.tokens else 1.0
    norms = K1 * (1 - B + B * lengths.astype(np.float64) / average)
    total = np.zeros(len(lengths), np.float64)
    for place, term in enumerate(terms):
        count = counts[:, place].astype(np.float64)
        total += statistics.weight(term) * (count * (K1 + 1) / (count + norms))
    return total

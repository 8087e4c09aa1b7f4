"""Words of columns: which rows have the tokens of a query, how often, and in which order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from omnigraph.search.analysis import Token, TokenColumn
from omnigraph.search.bm25 import TextStatistics

_FEW_CHARACTERS: Final = 2
_MORE_CHARACTERS: Final = 5


@dataclass(frozen=True, slots=True)
class WordCounts:
    """The rows of a column that have a term of a query.

    Attributes:
        rows: Their positions, ascending.
        counts: A row for each of them and a column for each term.
        lengths: The number of tokens of each.
    """

    rows: np.ndarray
    counts: np.ndarray
    lengths: np.ndarray


def terms_of(tokens: Iterable[Token]) -> tuple[str, ...]:
    """The different tokens of a query, in their order."""
    return tuple(dict.fromkeys(token.text for token in tokens))


def count_words(column: TokenColumn, terms: Sequence[str]) -> WordCounts:
    """How often each row has each term."""
    place_of = np.full(len(column.terms) + 1, -1, np.int32)
    for place, term in enumerate(terms):
        place_of[column.terms.get(term, len(column.terms))] = place
    place_of[-1] = -1
    places = place_of[column.numbers]
    hits = np.flatnonzero(places >= 0)
    rows, which = np.unique(_rows_at(column, hits), return_inverse=True)
    cells = np.bincount(which * len(terms) + places[hits], minlength=len(rows) * len(terms))
    counts = cells.reshape(len(rows), len(terms))
    return WordCounts(rows, counts, column.lengths[rows])


def measure(column: TokenColumn, terms: Sequence[str], counts: WordCounts) -> TextStatistics:
    """The statistics of a column, for the terms that were counted in it."""
    having = np.count_nonzero(counts.counts, axis=0) if len(counts.rows) else [0] * len(terms)
    return TextStatistics(
        int(np.count_nonzero(column.present)),
        len(column.numbers),
        {term: int(count) for term, count in zip(terms, having, strict=True)},
    )


def count_texts(column: TokenColumn) -> np.ndarray:
    """How many rows have each term, by its number."""
    rows = np.repeat(np.arange(column.row_count), column.lengths)
    pairs = np.sort(rows * np.int64(len(column.terms)) + column.numbers)
    is_first = np.append(True, pairs[1:] != pairs[:-1])[: len(pairs)]
    numbers = pairs[is_first] % max(len(column.terms), 1)
    return np.bincount(numbers, minlength=len(column.terms))


def rows_with_any(column: TokenColumn, terms: Iterable[str]) -> np.ndarray:
    """The positions of the rows that have one of the terms, ascending."""
    is_wanted = np.zeros(len(column.terms), bool)
    is_wanted[[column.terms[term] for term in terms if term in column.terms]] = True
    return np.unique(_rows_at(column, np.flatnonzero(is_wanted[column.numbers])))


def rows_with_phrase(column: TokenColumn, phrase: Sequence[Token]) -> np.ndarray:
    """The positions of the rows that have the tokens, each as far from the others, ascending."""
    span = np.int64(1) << 32
    starts: np.ndarray | None = None
    for token in dict.fromkeys(phrase):
        number = column.terms.get(token.text)
        if number is None:
            return np.zeros(0, np.int64)
        hits = np.flatnonzero(column.numbers == number)
        # Where the phrase would start in the row, if this were its token.
        at = column.places[hits].astype(np.int64) - (token.place - phrase[0].place)
        own = (_rows_at(column, hits) * span + at)[at >= 0]
        starts = own if starts is None else np.intersect1d(starts, own)
    assert starts is not None, "a phrase has tokens"
    return np.unique(starts // span)


def similar_terms(terms: Iterable[str], word: str, edits_max: int | None) -> list[str]:
    """Those terms that some edits make equal to a word.

    An edit inserts, deletes or replaces one character. Without a limit the length of the word
    decides: none up to 2 characters, one up to 5, two beyond.
    """
    edits = edits_allowed(word) if edits_max is None else edits_max
    by_length: dict[int, list[str]] = {}
    for term in terms:
        if abs(len(term) - len(word)) <= edits:
            by_length.setdefault(len(term), []).append(term)
    found: list[str] = []
    for own in by_length.values():
        distances = _edit_distances(word, own)
        found += [term for term, is_near in zip(own, distances <= edits, strict=True) if is_near]
    return found


def edits_allowed(word: str) -> int:
    """How many characters of a word may differ where nothing else is said.

    >>> edits_allowed("of"), edits_allowed("graph"), edits_allowed("vector")
    (0, 1, 2)
    """
    if len(word) <= _FEW_CHARACTERS:
        return 0
    return 1 if len(word) <= _MORE_CHARACTERS else 2


def _edit_distances(word: str, terms: Sequence[str]) -> np.ndarray:
    """The distances of terms of one length, all at once.

    >>> _edit_distances("graph", ["grape", "giraf"])
    array([1, 3])
    """
    letters = np.array([[ord(letter) for letter in term] for term in terms], np.int64)
    letters = letters.reshape(len(terms), -1)
    length = letters.shape[1]
    before = np.tile(np.arange(length + 1), (len(terms), 1))
    for row, letter in enumerate(word, 1):
        now = np.empty_like(before)
        now[:, 0] = row
        differs = letters != ord(letter)
        for place in range(1, length + 1):
            replaced = before[:, place - 1] + differs[:, place - 1]
            one_more = np.minimum(before[:, place], now[:, place - 1]) + 1
            now[:, place] = np.minimum(replaced, one_more)
        before = now
    return before[:, -1]


def _rows_at(column: TokenColumn, tokens: np.ndarray) -> np.ndarray:
    """The rows that tokens at these positions are of."""
    return np.searchsorted(column.offsets, tokens, side="right") - 1

"""Analysis: the tokens of texts, the same as those of a Lance index with the same parameters.

A text is split into words. Words of 40 bytes and more are left out, the others are written in small
letters; those of a language lose their endings, stop words are left out, and accents are removed,
in this order. Whatever is left out leaves a gap: the place of a token is the number of words before
it. tests/contract/search compares tokens and places with those of indexes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.choices import Analyzer
from omnigraph.search.letters import fold, lower, words_pattern
from omnigraph.search.stop_words import stop_words

# Imported where it is used: what searches no language does without.
if TYPE_CHECKING:
    import Stemmer

ANALYSED_BLOCK_BYTES: Final = 8 << 20
"""Bytes of texts that are split into words at once; what that takes is some ten times as much."""

REMEMBERED_WORDS_MAX: Final = 1 << 17
"""Words whose tokens a process remembers, for each analysis."""


WORD_BYTES_MAX: Final = 39
"""Longer words are no words: digests, base64, and what else would only fill an index."""

_WHITE_SPACE: Final = b"\t\n\x0c\r "
"""What parts words for `WHITESPACE`: Lance knows no other white space."""

_ROW_END: Final = "\n"
"""Parts words in every analysis that splits texts."""


class Token(NamedTuple):
    """A word as it is compared, and its place among the words of its text."""

    text: str
    place: int


class _Piece(NamedTuple):
    """What a run of characters without ASCII separators is made of.

    Attributes:
        words: How many places it takes.
    """

    tokens: tuple[Token, ...]
    words: int


def index_parameters(analyzer: Analyzer) -> Mapping[str, object]:
    """The parameters with which Lance builds an index of the same tokens."""
    is_language = analyzer.is_language
    is_raw = analyzer is Analyzer.RAW
    return {
        "base_tokenizer": "simple" if is_language else analyzer.value,
        "language": analyzer.capitalize() if is_language else "English",
        "max_token_length": None if is_raw else WORD_BYTES_MAX + 1,
        "lower_case": not is_raw,
        "stem": is_language,
        "remove_stop_words": is_language,
        "ascii_folding": is_language,
    }


def analyse(analyzer: Analyzer, text: str) -> tuple[Token, ...]:
    """The tokens of a text, in order.

    >>> [token.text for token in analyse(Analyzer.ENGLISH, "The graphs of Zoë's databases")]
    ['graph', 'zoe', 's', 'databas']
    >>> analyse(Analyzer.SIMPLE, "Re-use")
    (Token(text='re', place=0), Token(text='use', place=1))
    """
    if analyzer is Analyzer.RAW:
        return (Token(text, 0),)
    return _piece(analyzer, text).tokens


def words_of(analyzer: Analyzer, text: str) -> dict[str, str]:
    """A word of a text for each of its different tokens: an index analyses words by itself.

    >>> words_of(Analyzer.ENGLISH, "The running dogs ran")
    {'run': 'running', 'dog': 'dogs', 'ran': 'ran'}
    """
    if analyzer is Analyzer.RAW:
        return {text: text}
    words = _pattern(analyzer).findall(text)
    tokens = ((token.text, word) for word in words for token in _piece(analyzer, word).tokens)
    return dict(tokens)


@dataclass(frozen=True, slots=True)
class TokenColumn:
    """The tokens of the texts of a column.

    Attributes:
        terms: Every different token; the number of a term is its place here.
        offsets: Where the tokens of each row start, and where the last row's end.
        numbers: The terms of the tokens, row by row, in order.
        places: The places of the tokens in their texts.
        present: Whether each row has a text.
    """

    terms: Mapping[str, int]
    offsets: np.ndarray
    numbers: np.ndarray
    places: np.ndarray
    present: np.ndarray

    @property
    def row_count(self) -> int:
        """The number of rows, with and without texts."""
        return len(self.present)

    @property
    def lengths(self) -> np.ndarray:
        """The number of tokens of each row."""
        return np.diff(self.offsets)

    @property
    def byte_count(self) -> int:
        """About how much memory it takes."""
        arrays = (self.offsets, self.numbers, self.places, self.present)
        return sum(array.nbytes for array in arrays) + 100 * len(self.terms)


def analyse_column(
    analyzer: Analyzer, texts: pa.Array, check: Callable[[], None] = lambda: None
) -> TokenColumn:
    """The tokens of many texts; each different word is analysed once.

    Args:
        check: Called once for each block of texts; may raise.
    """
    terms: dict[str, int] = {}
    blocks = []
    for block in _blocks(pc.drop_null(texts)):
        check()
        blocks.append(
            _whole_texts(block, terms)
            if analyzer is Analyzer.RAW
            else _split_texts(analyzer, block, terms)
        )
    present = np.asarray(pc.is_valid(texts).to_numpy(zero_copy_only=False))
    counts = np.zeros(len(texts), np.int64)
    counts[present] = _joined([block.counts for block in blocks], np.int64)
    return TokenColumn(
        terms,
        np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        _joined([block.numbers for block in blocks], np.int32),
        _joined([block.places for block in blocks], np.int32),
        present,
    )


@dataclass(frozen=True, slots=True)
class _Block:
    """The tokens of some texts: how many each has, and all of them in order."""

    counts: np.ndarray
    numbers: np.ndarray
    places: np.ndarray


def _joined(parts: list[np.ndarray], kind: type[np.generic]) -> np.ndarray:
    return np.concatenate([np.zeros(0, kind), *parts])


def _blocks(texts: pa.Array) -> list[pa.Array]:
    """The same texts in parts of bounded size; a longer text is a part of its own."""
    lengths = pc.binary_length(texts).to_numpy(zero_copy_only=False)
    ends = np.cumsum(lengths, dtype=np.int64)
    parts, start = [], 0
    while start < len(texts):
        before = int(ends[start - 1]) if start else 0
        end = int(np.searchsorted(ends, before + ANALYSED_BLOCK_BYTES, side="right"))
        end = max(end, start + 1)
        parts.append(texts.slice(start, end - start))
        start = end
    return parts


def _whole_texts(texts: pa.Array, terms: dict[str, int]) -> _Block:
    encoded = texts.dictionary_encode()
    numbers = [terms.setdefault(text, len(terms)) for text in encoded.dictionary.to_pylist()]
    rows = np.array(numbers, np.int32)[encoded.indices.to_numpy()]
    return _Block(np.ones(len(rows), np.int64), rows, np.zeros(len(rows), np.int32))


def _split_texts(analyzer: Analyzer, texts: pa.Array, terms: dict[str, int]) -> _Block:
    """Split at ASCII separators at once, and analyse each different piece between them once."""
    row_starts, starts, ends, data = _find_pieces(analyzer, texts)
    first_piece = np.searchsorted(starts, row_starts)
    if not len(starts):
        none = np.zeros(0, np.int32)
        return _Block(np.zeros(len(texts), np.int64), none, none)
    # Pieces and what is between them, in turns: then no byte has to be copied.
    bounds = np.stack([starts, ends], axis=1).astype(np.int32).ravel()
    in_turns = pa.StringArray.from_buffers(2 * len(starts) - 1, pa.py_buffer(bounds), data)
    encoded = in_turns.dictionary_encode()
    codes = encoded.indices.to_numpy()[::2]
    is_piece = np.zeros(len(encoded.dictionary), bool)
    is_piece[codes] = True
    which = (np.cumsum(is_piece) - 1)[codes]
    different = encoded.dictionary.filter(pa.array(is_piece))
    pieces = [_piece(analyzer, text) for text in different.to_pylist()]
    table = _PieceTable.of(pieces, terms)
    counts = table.counts[which]
    piece_ends = np.cumsum(counts)
    # For each token: its place in the table, and the piece that it is of.
    owners = np.repeat(np.arange(len(which)), counts)
    at = np.arange(len(owners)) - np.repeat(piece_ends - counts, counts)
    at += np.repeat(table.starts[which], counts)
    words = np.concatenate([[0], np.cumsum(table.words[which])])
    row_of_piece = np.repeat(np.arange(len(texts)), np.diff(first_piece))
    words_before = words[:-1] - words[first_piece[row_of_piece]]
    token_ends = np.concatenate([[0], piece_ends])
    return _Block(
        np.diff(token_ends[first_piece]),
        table.numbers[at],
        (words_before[owners] + table.places[at]).astype(np.int32),
    )


def _find_pieces(
    analyzer: Analyzer, texts: pa.Array
) -> tuple[np.ndarray, np.ndarray, np.ndarray, pa.Buffer]:
    """Where rows start, where pieces start and end, and all bytes, ASCII in small letters."""
    lengths = pc.binary_length(texts).to_numpy().astype(np.int64)
    row_starts = np.concatenate([[0], np.cumsum(lengths + 1)])
    whole = pa.ListArray.from_arrays(pa.array([0, len(texts)], pa.int32()), texts)
    joined = pc.binary_join(whole, _ROW_END)[0].as_buffer()
    data = np.frombuffer(joined, np.uint8)
    is_word = np.zeros(len(data) + 2, np.int8)
    is_word[1:-1] = _word_bytes(analyzer)[data]
    edges = np.diff(is_word)
    starts, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
    return row_starts, starts, ends, pa.py_buffer(_lower_bytes()[data])


@dataclass(frozen=True, slots=True)
class _PieceTable:
    """The tokens of different pieces, one piece after the other."""

    starts: np.ndarray
    counts: np.ndarray
    words: np.ndarray
    numbers: np.ndarray
    places: np.ndarray

    @classmethod
    def of(cls, pieces: list[_Piece], terms: dict[str, int]) -> _PieceTable:
        counts = np.array([len(piece.tokens) for piece in pieces], np.int64)
        tokens = [token for piece in pieces for token in piece.tokens]
        return cls(
            np.cumsum(counts) - counts,
            counts,
            np.array([piece.words for piece in pieces], np.int64),
            np.array([terms.setdefault(each.text, len(terms)) for each in tokens], np.int32),
            np.array([token.place for token in tokens], np.int64),
        )


@lru_cache(maxsize=REMEMBERED_WORDS_MAX)
def _piece(analyzer: Analyzer, text: str) -> _Piece:
    words = _pattern(analyzer).findall(text)
    tokens = []
    for place, word in enumerate(words):
        if len(word) > WORD_BYTES_MAX or len(word.encode()) > WORD_BYTES_MAX:
            continue
        token = lower(word)
        if analyzer.is_language:
            token = _stemmer(analyzer).stemWord(token)
            if token in stop_words(analyzer):
                continue
            token = fold(token)
        tokens.append(Token(token, place))
    return _Piece(tuple(tokens), len(words))


@cache
def _pattern(analyzer: Analyzer) -> re.Pattern[str]:
    if analyzer is Analyzer.WHITESPACE:
        return re.compile(f"[^{_WHITE_SPACE.decode()}]+")
    return words_pattern()


@cache
def _word_bytes(analyzer: Analyzer) -> np.ndarray:
    """For each byte, whether it may be of a word; all that are not ASCII may."""
    is_word = np.zeros(256, np.int8)
    for byte in range(256):
        parts_words = byte in _WHITE_SPACE
        if analyzer is not Analyzer.WHITESPACE:
            parts_words = byte < 128 and not chr(byte).isalnum()
        is_word[byte] = not parts_words
    return is_word


@cache
def _lower_bytes() -> np.ndarray:
    return np.array(
        [ord(chr(byte).lower()) if byte < 128 else byte for byte in range(256)], np.uint8
    )


@cache
def _stemmer(analyzer: Analyzer) -> Stemmer.Stemmer:
    import Stemmer

    # What is remembered here is remembered by `_piece` already.
    return Stemmer.Stemmer(analyzer.value, 0)

"""The reference of searches: words, relevance and distances from their definitions, row by row.

It shares no code with `omnigraph.search`: the words of a text are found with Python's own idea of
letters, which is that of the texts in tests, and the only stop words are those that they use.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, assert_never

import Stemmer

from omnigraph.choices import Analyzer, Metric
from omnigraph.query import ir
from omnigraph.query.ir import Value
from omnigraph.relational.searches import TextTest

_STOP_WORDS: Final = frozenset({"a", "and", "of", "the"})
_LETTERS: Final = {"ß": "ss", "ø": "o"}
_WORD_BYTES: Final = 40
_WINDOW: Final = 100
"""Of fewer rows than so many every rank counts, however many a query wants."""


Words = list[tuple[int, str]]
"""The words of a text that count, each with its place among all words."""


def words_of(analyzer: Analyzer, text: str) -> Words:
    """The words of a text.

    >>> words_of(Analyzer.ENGLISH, "The Zoë-graphs")
    [(1, 'zoe'), (2, 'graph')]
    """
    if analyzer is Analyzer.RAW:
        return [(0, text)]
    separators = set(" \t\n\r\f")
    if analyzer is not Analyzer.WHITESPACE:
        separators |= {letter for letter in text if not letter.isalnum()}
    spaced = "".join(" " if letter in separators else letter for letter in text)
    words = [*enumerate(word for word in spaced.split(" ") if word)]
    short = [(place, word.lower()) for place, word in words if len(word.encode()) < _WORD_BYTES]
    if analyzer is not Analyzer.ENGLISH:
        return short
    stem = Stemmer.Stemmer("english").stemWord
    stems = [(place, stem(word)) for place, word in short]
    return [(place, _without_accents(word)) for place, word in stems if word not in _STOP_WORDS]


def passes(call: ir.TextMatch, text: Value, query: Value, edits: int | None) -> bool:
    """Whether a text passes a test."""
    if not isinstance(text, str) or not isinstance(query, str):
        return False
    words, wanted = words_of(call.analyzer, text), words_of(call.analyzer, query)
    match call.test:
        case TextTest.SEARCH:
            return any(word == other for _, word in words for _, other in wanted)
        case TextTest.FUZZY:
            return any(
                _edits(word, other) <= (_edits_allowed(other) if edits is None else edits)
                for _, word in words
                for _, other in wanted
            )
        case TextTest.MATCH_TEXT:
            first = wanted[0][0]
            return any(
                all((start + place - first, word) in words for place, word in wanted)
                for start, _ in words
            )
        case _:
            assert_never(call.test)


def relevance(analyzer: Analyzer, texts: Iterable[Value], text: Value, query: Value) -> Value:
    """The bm25 of one of many texts; null if it has no word of the query."""
    if not isinstance(text, str) or not isinstance(query, str):
        return None
    every = [_plain(analyzer, each) for each in texts if isinstance(each, str)]
    own = _plain(analyzer, text)
    average = sum(map(len, every)) / len(every)
    wanted = dict.fromkeys(_plain(analyzer, query))
    if not any(word in own for word in wanted):
        return None
    score = 0.0
    for word in wanted:
        having = sum(word in words for words in every)
        weight = math.log(1 + (len(every) - having + 0.5) / (having + 0.5))
        norm = 1.2 * (1 - 0.75 + 0.75 * len(own) / average)
        count = own.count(word)
        score += weight * (count * 2.2 / (count + norm))
    return score


def distance(metric: Metric, vector: Value, query: Value) -> Value:
    """The distance of two vectors; null if one is missing."""
    if not isinstance(vector, tuple) or not isinstance(query, tuple):
        return None
    pairs: list[tuple[Any, Any]] = [*zip(vector, query, strict=True)]
    product = sum(one * other for one, other in pairs)
    match metric:
        case Metric.L2:
            return float(sum((one - other) ** 2 for one, other in pairs))
        case Metric.DOT:
            return float(1.0 - product)
        case Metric.COSINE:
            lengths = math.sqrt(sum(one * one for one, _ in pairs)) * math.sqrt(
                sum(other * other for _, other in pairs)
            )
            return None if lengths == 0 else float(1.0 - product / lengths)
        case _:
            assert_never(metric)


def fuse(rankings: Sequence[Mapping[str, float]], ids: Sequence[str | None], k: int) -> Value:
    """The fused score of a row that has these ids; null if no ranking has one of them.

    Args:
        rankings: For each, the scores of all rows of the scope that have one; less is better.
    """
    score, is_ranked = 0.0, False
    for scores, id_ in zip(rankings, ids, strict=True):
        order = sorted(scores, key=lambda each: (scores[each], each))[:_WINDOW]
        if id_ in order:
            is_ranked = True
            score += 1 / (k + order.index(id_) + 1)
    return score if is_ranked else None


def _plain(analyzer: Analyzer, text: str) -> list[str]:
    return [word for _, word in words_of(analyzer, text)]


def _without_accents(word: str) -> str:
    plain = "".join(_LETTERS.get(letter, letter) for letter in word)
    parts = unicodedata.normalize("NFKD", plain)
    return "".join(part for part in parts if not unicodedata.combining(part))


def _edits_allowed(word: str) -> int:
    return 0 if len(word) < 3 else 1 if len(word) < 6 else 2


def _edits(one: str, other: str) -> int:
    """The least number of characters to insert, delete or replace.

    >>> _edits("graph", "giraf"), _edits("ab", "")
    (3, 2)
    """
    row = list(range(len(other) + 1))
    for count, letter in enumerate(one, 1):
        before, row = row, [count]
        for place, other_letter in enumerate(other):
            replaced = before[place] + (letter != other_letter)
            row.append(min(replaced, before[place + 1] + 1, row[place] + 1))
    return row[-1]

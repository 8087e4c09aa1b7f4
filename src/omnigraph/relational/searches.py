"""Searches: rows of a type that texts or vectors find, as relations of a plan keyed by id."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from omnigraph.choices import Analyzer, Metric
from omnigraph.model.tables import TableKey

SCORE: Final = "score"
"""The column beside `id` in the rows of a ranking."""


READ: Final = "read: "
"""What is before the name of a property, in the rows of a ranking that have properties, too."""


class TextTest(StrEnum):
    """How a text is searched: any of the words, similar words, or the words as a phrase."""

    SEARCH = "search"
    FUZZY = "fuzzy"
    MATCH_TEXT = "match_text"


@dataclass(frozen=True, slots=True)
class TextSearch:
    """The ids of the rows whose text passes a test.

    SEARCH: a token of the row is one of the query's. FUZZY: it is one, but for some edits.
    MATCH_TEXT: the query's tokens are in the row, each as far from the others as in the query.

    Attributes:
        query: What is looked for.
        edits_max: For FUZZY, how many characters a token may differ by; None lets the length of
            the query's token decide.
        source: The parameter that the query is from, if there is one.
    """

    table: TableKey
    column: str
    analyzer: Analyzer
    test: TextTest
    query: str
    edits_max: int | None = None
    source: str | None = None

    def __str__(self) -> str:
        return f"{self.test} in {self.table.type_name}.{self.column}, analyzer {self.analyzer}"


@dataclass(frozen=True, slots=True)
class Relevance:
    """The ids of the rows whose text has a token of the query, and their bm25: more is better.

    The statistics are those of all rows of the type that have a text, in the scope or not.
    """

    table: TableKey
    column: str
    analyzer: Analyzer
    query: str
    source: str | None = None

    def __str__(self) -> str:
        return f"bm25 of {self.table.type_name}.{self.column}, analyzer {self.analyzer}"


@dataclass(frozen=True, slots=True)
class Nearness:
    """The ids of the rows that have a distance from a vector, and that distance: less is better.

    A row without a vector has none, and under COSINE neither has one whose vector is zero.

    Attributes:
        notes: For a vector that is embedded, the column with its notes; a row whose note does not
            begin with `note_prefix` has no distance either (docs/decisions/0020).
    """

    table: TableKey
    column: str
    metric: Metric
    query: tuple[float, ...]
    source: str | None = None
    notes: str | None = None
    note_prefix: str = ""

    def __str__(self) -> str:
        return f"nearest in {self.table.type_name}.{self.column}, metric {self.metric}"


Ranking = Relevance | Nearness
Search = TextSearch | Ranking

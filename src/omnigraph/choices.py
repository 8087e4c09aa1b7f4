"""Choices: the words that callers choose from, shared by the Python API and the command line.

Imports nothing but `enum`: `--help` lists these words, and must start quickly.
"""

from __future__ import annotations

from enum import StrEnum


class TableKind(StrEnum):
    """The two kinds of type, and the folder each kind's datasets live in."""

    NODE = "node"
    EDGE = "edge"

    @property
    def folder(self) -> str:
        """The folder below the graph's root that holds this kind's datasets."""
        return f"{self}s"


class Op(StrEnum):
    """What happened to a row."""

    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"


class EngineName(StrEnum):
    """The engines that run plans."""

    LOCAL = "local"
    SPARK = "spark"


class EngineRequest(StrEnum):
    """What a caller may ask for: an engine by its name, or `auto`, which decides by size."""

    AUTO = "auto"
    LOCAL = EngineName.LOCAL.value
    SPARK = EngineName.SPARK.value


class Mode(StrEnum):
    """What a load does with rows that exist."""

    APPEND = "append"
    """Every row is new: an id that exists is a violation."""
    MERGE = "merge"
    """A row replaces the one that has its id, whole."""
    OVERWRITE = "overwrite"
    """The rows of each type that the input names are all that the type has; others stay."""


class OnDuplicate(StrEnum):
    """What a load does with several rows of one id."""

    REJECT = "reject"
    """All of them break a rule."""
    FIRST = "first"
    """The first one is loaded, in the order of the source."""
    LAST = "last"
    """The last one is loaded."""


class OnError(StrEnum):
    """What a load does with rows that break rules."""

    FAIL = "fail"
    QUARANTINE = "quarantine"


class EmbedWhen(StrEnum):
    """When a write embeds the texts that it writes."""

    AUTO = "auto"
    """Now, unless there are many."""
    NOW = "now"
    LATER = "later"
    """When `embed` runs; until then their rows are pending or stale."""


class EmbedScope(StrEnum):
    """Which rows `embed` embeds."""

    WAITING = "waiting"
    """Those that are pending or stale."""
    PENDING = "pending"
    STALE = "stale"
    ALL = "all"
    """Also those that have the vector of their text."""


class EdgeDirection(StrEnum):
    """Which way paths follow edges."""

    OUT = "out"
    """From sources to targets."""
    IN = "in"
    BOTH = "both"


class ExportFormat(StrEnum):
    """What an export is made of."""

    NDJSON = "ndjson"
    PARQUET = "parquet"
    CSV = "csv"

    @property
    def suffix(self) -> str:
        """How the names of its files end, without the dot."""
        return "jsonl" if self is ExportFormat.NDJSON else self.value


class IndexKind(StrEnum):
    """The structures of indexes."""

    BTREE = "BTREE"
    """Values in order: equality and ranges."""
    BITMAP = "BITMAP"
    """The rows of each value. None is built any more, and those that exist are removed: it names
    rows by their ids, and finds a row by former values after updates (docs/substrate.md)."""
    INVERTED = "INVERTED"
    """The words of texts, for search."""
    VECTOR = "VECTOR"
    """Vectors by their distance, for search."""

    @property
    def is_for_search(self) -> bool:
        """Whether it finds rows for search, and not by their values."""
        return self in (IndexKind.INVERTED, IndexKind.VECTOR)


class Analyzer(StrEnum):
    """How the words of a text are found, for its index and for searches."""

    ENGLISH = "english"
    """Lower case, without accents, stop words and endings. Words are parted by punctuation."""
    SIMPLE = "simple"
    """Lower case. Words are parted by punctuation."""
    WHITESPACE = "whitespace"
    """Lower case. Words are parted by white space."""
    RAW = "raw"
    """The text as it is, as one word."""
    ARABIC = "arabic"
    DANISH = "danish"
    DUTCH = "dutch"
    FINNISH = "finnish"
    FRENCH = "french"
    GERMAN = "german"
    GREEK = "greek"
    HUNGARIAN = "hungarian"
    ITALIAN = "italian"
    NORWEGIAN = "norwegian"
    PORTUGUESE = "portuguese"
    ROMANIAN = "romanian"
    RUSSIAN = "russian"
    SPANISH = "spanish"
    SWEDISH = "swedish"
    TAMIL = "tamil"
    TURKISH = "turkish"
    """Like English, with the endings and stop words of the language."""

    @property
    def is_language(self) -> bool:
        """Whether it knows the endings and stop words of a language."""
        return self not in (Analyzer.SIMPLE, Analyzer.WHITESPACE, Analyzer.RAW)


class Metric(StrEnum):
    """How far two vectors are from each other."""

    COSINE = "cosine"
    L2 = "l2"
    """The square of the Euclidean distance."""
    DOT = "dot"


class VectorKind(StrEnum):
    """The structures of a vector index."""

    IVF_FLAT = "ivf_flat"
    """Vectors as they are, in partitions."""
    IVF_PQ = "ivf_pq"
    """Vectors as short codes, in partitions: the smallest."""
    IVF_HNSW_SQ = "ivf_hnsw_sq"
    """Vectors as bytes, in partitions, each with a graph of neighbours."""


class IndexSource(StrEnum):
    """What asks for an index."""

    ID = "id"
    END = "end"
    KEY = "key"
    UNIQUE = "unique"
    INDEX = "@index"


class IndexState(StrEnum):
    """How much of its table an index covers."""

    COMPLETE = "complete"
    PARTIAL = "partial"
    MISSING = "missing"
    NOT_NEEDED = "not needed"
    SCANNED = "scanned"
    """Not built: there are so few vectors that a scan of them is as fast."""

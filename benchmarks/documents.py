"""Documents from a seed: texts of words as frequent as Zipf has it, and vectors in clusters."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from omnigraph import graph

SCHEMA: Final = """\
node Doc {{
  number: I64 @key
  share: I64
  body: String @index
  vector: Vector({dimension}) @index{options}
}}
"""

WORDS: Final = 50_000
WORDS_PER_TEXT: Final = (8, 40)
SEED: Final = 17
NOISE: Final = 0.3
"""How far vectors are from the centre of their cluster, of which each coordinate is about 1."""

ROWS_PER_CLUSTER: Final = 1_000
QUERY_WORDS: Final = (50, 5_000)
"""The ranks of what is asked for: neither in every text, nor in hardly any."""

K1: Final = 1.2
B: Final = 0.75
RRF_K: Final = 60
RRF_WINDOW: Final = 100


@dataclass(frozen=True, slots=True)
class Size:
    """How many rows, of which vectors.

    Attributes:
        clustered: Whether the vectors are near some centres; otherwise they are anywhere.
    """

    rows: int
    dimension: int = 256
    clustered: bool = True


@dataclass(frozen=True, slots=True)
class Query:
    """What is looked for: a few words, and a vector."""

    words: np.ndarray
    vector: np.ndarray

    @property
    def text(self) -> str:
        return " ".join(_spelling(word) for word in self.words.tolist())


class Documents:
    """The same rows for every contestant, and which of them are the right answers.

    The scores are computed from the numbers of words and from the vectors as they were drawn: not
    from texts, and by nothing that takes part.
    """

    def __init__(self, size: Size, *, queries: int) -> None:
        self.size = size
        random = np.random.default_rng(SEED)
        self._lengths = random.integers(*WORDS_PER_TEXT, size.rows)
        self._words = _zipf(random, int(self._lengths.sum()))
        centres = random.standard_normal((max(1, size.rows // ROWS_PER_CLUSTER), size.dimension))
        if not size.clustered:
            centres *= 0

        def vectors(count: int) -> np.ndarray:
            near = centres.astype(np.float32)[random.integers(0, len(centres), count)]
            noise = random.standard_normal((count, size.dimension), np.float32)
            return near + np.float32(NOISE) * noise

        self.vectors = vectors(size.rows)
        self.queries = [
            Query(random.choice(np.arange(*QUERY_WORDS), 3, replace=False), vector)
            for vector in vectors(queries)
        ]

    @property
    def shares(self) -> np.ndarray:
        """A number below 100 of each row, each of as many rows, in no order."""
        return np.arange(self.size.rows, dtype=np.int64) * 7919 % 100

    def table(self) -> pa.Table:
        """The rows, as `graph.load` takes them."""
        dimension, values = self.size.dimension, pa.array(self.vectors.ravel())
        columns = {
            "number": pa.array(np.arange(self.size.rows)),
            "share": pa.array(self.shares),
            "body": self._texts(),
            "vector": pa.FixedSizeListArray.from_arrays(values, dimension),
        }
        return pa.table(columns)

    def write(self, folder: Path) -> None:
        """The rows and queries for those who do not read our tables."""
        folder.mkdir()
        pq.write_table(self.table(), folder / "rows.parquet", compression="none")
        write_queries(folder, self.queries)

    def bm25(self, query: Query) -> np.ndarray:
        """The score of each row, by the formula; minus infinity if it has none of the words."""
        scores = np.zeros(self.size.rows)
        lengths, rows = self._lengths, self._row_of_word
        norms = K1 * (1 - B + B * lengths / lengths.mean())
        for word in query.words.tolist():
            counts = np.bincount(rows[self._words == word], minlength=self.size.rows)
            having = np.count_nonzero(counts)
            rarity = np.log(1 + (self.size.rows - having + 0.5) / (having + 0.5))
            scores += rarity * counts * (K1 + 1) / (counts + norms)
        return np.where(scores > 0, scores, -np.inf)

    def distances(self, query: Query) -> np.ndarray:
        """The cosine distance of each row."""
        norms = self._norms * np.linalg.norm(query.vector)
        return np.asarray(1 - (self.vectors @ query.vector) / norms)

    @cached_property
    def _norms(self) -> np.ndarray:
        return np.asarray(np.linalg.norm(self.vectors, axis=1))

    @cached_property
    def _row_of_word(self) -> np.ndarray:
        return np.repeat(np.arange(self.size.rows), self._lengths)

    def _texts(self) -> pa.Array:
        spellings = pa.array([_spelling(word) for word in range(WORDS)])
        ends = np.concatenate([[0], np.cumsum(self._lengths)]).astype(np.int32)
        words = pa.ListArray.from_arrays(pa.array(ends), spellings.take(pa.array(self._words)))
        return pc.binary_join(words, " ")


def write_queries(folder: Path, queries: Iterable[Query]) -> None:
    """The queries, as the peers read them."""
    said = [{"text": query.text, "vector": query.vector.tolist()} for query in queries]
    (folder / "queries.json").write_text(json.dumps(said))


def share_found(found: list[int], scores: np.ndarray, *, best: int = 10) -> float:
    """How many of the best rows were found, as a share of them; higher scores are better.

    Which rows are found of those that share the last place does not matter.
    """
    wanted = min(best, int(np.count_nonzero(np.isfinite(scores))))
    if not wanted:
        return float(not found)
    last = np.partition(scores, -wanted)[-wanted]
    # What others compute in single precision is not wrong for its last digits.
    right = sum(bool(scores[number] >= last - 1e-6) for number in set(found))
    return min(1.0, right / wanted)


def fuse(rankings: Iterable[np.ndarray]) -> np.ndarray:
    """The fused score of each row, from scores of which the highest are the best.

    Rows that share a score are ranked by their ids, which are texts.
    """
    fused: np.ndarray | None = None
    for scores in rankings:
        fused = np.zeros(len(scores)) if fused is None else fused
        wanted = min(RRF_WINDOW, len(scores))
        last = np.partition(scores, -wanted)[-wanted]
        near = np.flatnonzero((scores >= last) & np.isfinite(scores))
        pairs = sorted(zip((-scores[near]).tolist(), map(str, near.tolist()), strict=True))
        ranked = [int(row) for _, row in pairs[:wanted]]
        fused[ranked] += 1 / (RRF_K + np.arange(1, len(ranked) + 1))
    assert fused is not None, "there are rankings"
    return fused


def write_graph(place: Path, docs: Documents, *, kind: str | None = None) -> graph.Graph:
    """A graph with these documents and its indexes.

    Args:
        kind: That of the index of vectors; None lets the number of rows decide.
    """
    options = "" if kind is None else f'(kind="{kind}")'
    made = graph.init(place, SCHEMA.format(dimension=docs.size.dimension, options=options))
    made.load({"Doc": docs.table()}, engine="local")
    return graph.open(place)


def _zipf(random: np.random.Generator, count: int) -> np.ndarray:
    """Numbers of words, that of rank r in proportion to 1/r."""
    shares = np.cumsum(1 / np.arange(1, WORDS + 1))
    places = np.searchsorted(shares, random.random(count) * shares[-1])
    return np.asarray(places, np.int32)


def _spelling(word: int) -> str:
    """A word of syllables that no analyzer stems, splits or drops.

    >>> _spelling(0), _spelling(49_999)
    ('bababa', 'kulanu')
    """
    consonants, vowels = "bdfghjklmnprtvwz", "aou"
    syllables = []
    for _ in range(3):
        word, place = divmod(word, len(consonants) * len(vowels))
        syllables.append(consonants[place // 3] + vowels[place % 3])
    return "".join(syllables)

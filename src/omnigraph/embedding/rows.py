"""Rows with embedded vectors: which need one, and the rows with the vectors that were made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.choices import EmbedScope
from omnigraph.embedding.notes import STALE, EmbeddingState, digest_in, note_of, state_of
from omnigraph.embedding.texts import digest_of, texts_of
from omnigraph.schema.embeds import EmbeddedVector


@dataclass(frozen=True, slots=True)
class NotedRows:
    """Rows whose notes are right about one vector, and what is missing there.

    Attributes:
        texts: The text of each row; empty for a missing one.
        digests: Their digests.
        missing: The positions of rows that have a text and not its vector.
        cleared: The positions of rows that lost their text, and with it their vector.
    """

    vector: EmbeddedVector
    rows: pa.Table
    texts: Sequence[str]
    digests: Sequence[str]
    missing: Sequence[int]
    cleared: Sequence[int] = ()

    def missing_texts(self) -> list[str]:
        """The texts without vectors, each once."""
        return list(dict.fromkeys(self.texts[place] for place in self.missing))

    def fill(self, vectors: Mapping[str, np.ndarray]) -> NotedRows:
        """The rows with these vectors, by the digests of their texts, and notes of them."""
        filled = [place for place in self.missing if self.digests[place] in vectors]
        if not filled:
            return self
        made = np.stack([vectors[self.digests[place]] for place in filled])
        rows = _replace_values(self.rows, self.vector.name, filled, _to_array(made))
        notes = [note_of(self.vector.model, self.digests[place]) for place in filled]
        rows = _replace_values(rows, self.vector.companion, filled, pa.array(notes, pa.utf8()))
        is_filled = set(filled)
        missing = tuple(place for place in self.missing if place not in is_filled)
        return replace(self, rows=rows, missing=missing)


def note_rows(vector: EmbeddedVector, rows: pa.Table) -> NotedRows:
    """Rows as a writer has them, with right notes.

    A vector without a note was given for the text of its row. A vector whose note is about another
    text is stale, and without a text there is none.
    """
    texts = texts_of(rows, vector.sources)
    digests = [digest_of(text) for text in texts]
    has_vector = rows[vector.name].is_valid().to_pylist()
    notes: list[str | None] = rows[vector.companion].to_pylist()
    missing: list[int] = []
    cleared: list[int] = []
    for place, note in enumerate(notes):
        if not has_vector[place]:
            notes[place] = None
        elif note is None:
            notes[place] = note_of(vector.model, digests[place])
            continue
        elif digest_in(note) == digests[place]:
            continue
        elif texts[place]:
            notes[place] = STALE
        else:
            notes[place] = None
            cleared.append(place)
        if texts[place]:
            missing.append(place)
    rows = _set_column(rows, vector.companion, pa.array(notes, pa.utf8()))
    rows = _clear_values(rows, vector.name, cleared)
    return NotedRows(vector, rows, texts, digests, missing, cleared)


def select_rows(noted: NotedRows, scope: EmbedScope) -> NotedRows:
    """What a run of `embed` does: the rows of its scope as those that miss a vector.

    Args:
        noted: Committed rows, which say of which model their vectors are.
    """
    vector, rows = noted.vector, noted.rows
    has_vector = rows[vector.name].is_valid().to_pylist()
    notes: list[str | None] = rows[vector.companion].to_pylist()
    missing = []
    for place, text in enumerate(noted.texts):
        state = state_of(vector, has_vector=has_vector[place], note=notes[place], text=text)
        is_wanted = scope is EmbedScope.ALL or str(state) in _STATES[scope]
        if text and is_wanted:
            missing.append(place)
    return replace(noted, missing=missing)


_STATES: Final = {
    EmbedScope.WAITING: (EmbeddingState.PENDING, EmbeddingState.STALE),
    EmbedScope.PENDING: (EmbeddingState.PENDING,),
    EmbedScope.STALE: (EmbeddingState.STALE,),
}


def mark_unknown(vector: EmbeddedVector, rows: pa.Table) -> pa.Table:
    """Committed rows, with `stale` for vectors of which nobody knows what they were made from."""
    notes = rows[vector.companion]
    is_unknown = pc.and_(rows[vector.name].is_valid(), notes.is_null())
    return _set_column(rows, vector.companion, pc.if_else(is_unknown, STALE, notes))


def _to_array(vectors: np.ndarray) -> pa.Array:
    flat = pa.array(np.ascontiguousarray(vectors, np.float32).reshape(-1), pa.float32())
    return pa.FixedSizeListArray.from_arrays(flat, vectors.shape[1])


def _replace_values(rows: pa.Table, name: str, places: Sequence[int], values: pa.Array) -> pa.Table:
    """The rows with these values of a column at these positions."""
    column = rows[name]
    # Values of any type are taken by position.
    take = np.arange(len(column))
    take[np.asarray(places)] = len(column) + np.arange(len(values))
    joined = pa.chunked_array([*column.chunks, values.cast(column.type)], column.type)
    return _set_column(rows, name, joined.take(pa.array(take)))


def _clear_values(rows: pa.Table, name: str, places: Sequence[int]) -> pa.Table:
    """The rows with null in a column at these positions."""
    if not places:
        return rows
    take = np.arange(len(rows)).astype(object)
    take[list(places)] = None
    return _set_column(rows, name, rows[name].take(pa.array(take, pa.int64())))


def _set_column(rows: pa.Table, name: str, values: pa.Array | pa.ChunkedArray) -> pa.Table:
    place = rows.schema.get_field_index(name)
    return rows.set_column(place, rows.schema.field(place), values)

"""States of embedded vectors: how many rows of a table have the vectors of their texts."""

from __future__ import annotations

from omnigraph.embedding.counts import EmbeddingStatus
from omnigraph.embedding.texts import texts_of
from omnigraph.schema.embeds import EmbeddedVector
from omnigraph.storage.embedding_filters import is_current, is_stale, may_be_pending
from omnigraph.storage.tables import Table


def count_states(vector: EmbeddedVector, table: Table) -> EmbeddingStatus:
    """The states of the rows of one table."""
    current, stale = table.count_rows(is_current(vector)), table.count_rows(is_stale(vector))
    pending = 0
    # A filter cannot tell that a text is nothing but white space.
    for batch in table.scan(vector.sources, filter_text=may_be_pending(vector)):
        pending += sum(map(bool, texts_of(batch, vector.sources)))
    empty = table.count_rows() - current - stale - pending
    return EmbeddingStatus(
        vector.type_name, vector.name, vector.model, current, stale, pending, empty
    )

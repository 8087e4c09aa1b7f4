"""Lengths of texts, written to files where indexes are written.

They are derived data, like indexes: no answer needs one. A process that has read nothing yet finds
the mean length of texts there, where it would else count the words of all of them.
"""

from __future__ import annotations

from typing import Final

from omnigraph.choices import IndexKind
from omnigraph.engine.local.text_lengths import TextColumn, TextLengths
from omnigraph.limits import INDEXED_TEXT_ROWS_MIN
from omnigraph.maintenance.indexes import index_specs
from omnigraph.schema.catalog import TextOptions
from omnigraph.transaction.view import View

STORED_TEXTS_MIN: Final = 50_000
"""Rows of a type from which on index runs store how many words each text has."""


def store_text_lengths(view: View) -> None:
    """Write the lengths of the texts of large types, if some of them are not in files."""
    for type_ in view.catalog.types:
        table = view.data.table(type_.table_key)
        if table.count_rows() < STORED_TEXTS_MIN:
            continue
        fragments = table.fragments()
        large = [part.id for part in fragments if part.num_rows >= INDEXED_TEXT_ROWS_MIN]
        for spec in index_specs(type_, table):
            if spec.kind is IndexKind.INVERTED and isinstance(spec.options, TextOptions):
                column, lengths = TextColumn(spec.column, spec.options.analyzer), TextLengths()
                if lengths.lacks(table, column, large):
                    lengths.store(table, column, large)

"""Checks of embedded vectors: rows without the vector of their text are worth knowing."""

from __future__ import annotations

from omnigraph.engine.embedding_states import count_states
from omnigraph.maintenance.checking.report import Finding, Invariant, Notebook
from omnigraph.maintenance.checking.tables import format_place
from omnigraph.schema.catalog import SchemaType
from omnigraph.schema.embeds import embedded_vectors
from omnigraph.storage.tables import Table


def check_embeddings(table: Table, type_: SchemaType, notebook: Notebook) -> None:
    """Note rows that are stale or pending: `nearest` skips them."""
    for vector in embedded_vectors(type_):
        status = count_states(vector, table)
        if status.waiting:
            problem = (
                f"its {vector.name} is stale in {status.stale:,} rows and pending in "
                f"{status.pending:,}, which nearest skips"
            )
            step = "nothing: 'omnigraph embed' makes their vectors"
            subject, place = str(type_.table_key), format_place(table.address)
            notebook.note(Finding(Invariant.ROW, subject, place, problem, step))

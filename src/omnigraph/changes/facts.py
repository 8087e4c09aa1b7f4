"""Facts of changes: diffs and their rows as plain values that JSON can represent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

# What prints a diff need not import what computes it.
if TYPE_CHECKING:
    import pyarrow as pa

    from omnigraph.changes.diffs import Batch, GraphDiff
    from omnigraph.changes.rows import Chunk
    from omnigraph.model.tables import TableKey


def batch_facts(batch: Batch, *, rows: bool) -> dict[str, Any]:
    """Some commits of the feed and the cursor after them.

    Args:
        rows: Whether each commit has its changed rows, too.
    """
    commits = []
    for changes in batch.commits:
        one: dict[str, Any] = {
            "commit": {**changes.commit.to_json(), "let_go": None},
            **schema_facts(changes.diff),
            "changes": counts(changes.diff),
        }
        if rows:
            one["rows"] = list(row_objects(changes.diff))
        commits.append(one)
    facts = {"commits": commits, "cursor": batch.cursor, "is_newest": batch.is_newest}
    return facts | hidden_facts(batch.hidden)


def hidden_facts(names: Sequence[str]) -> dict[str, list[str]]:
    """The types that were left out under their name; nothing otherwise."""
    return {"hidden": list(names)} if names else {}


def schema_facts(diff: GraphDiff) -> dict[str, list[dict[str, Any]]]:
    """The schema steps under their name; nothing if the schema is the same."""
    return {"schema": [step.to_json() for step in diff.schema]} if diff.schema else {}


def counts(diff: GraphDiff) -> dict[str, dict[str, int]]:
    """Rows inserted, updated and deleted, by type; a type without any is left out."""
    return {name: asdict(count) for name, count in diff.counts.items() if count}


def row_objects(diff: GraphDiff) -> Iterator[dict[str, Any]]:
    """Every changed row, with values that JSON has."""
    for table in diff.tables:
        for chunk in table.chunks(diff.ops):
            yield from _changes(table.type.table_key, chunk)


def _changes(key: TableKey, chunk: Chunk) -> Iterator[dict[str, Any]]:
    rows = chunk.after if chunk.before is None else chunk.before
    assert rows is not None, "a row exists before, or after"
    sides = [_plain(side, rows.num_rows) for side in (chunk.before, chunk.after)]
    for old, new in zip(*sides, strict=True):
        row = new if old is None else old
        assert row is not None, "a row exists before, or after"
        yield {
            "kind": str(key.kind),
            "type": str(key.type_name),
            "op": str(chunk.op),
            "id": row["id"],
            "before": old,
            "after": new,
        }


def _plain(rows: pa.Table | None, count: int) -> Iterator[dict[str, Any] | None]:
    from omnigraph.formats.cells import plain_rows

    if rows is None:
        yield from [None] * count
        return
    for batch in rows.to_batches():
        for row in plain_rows(batch):
            yield dict(zip(rows.column_names, row, strict=True))

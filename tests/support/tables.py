"""Creates small tables through `storage` alone, and reads their content."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from omnigraph.model.commits import OperationKind
from omnigraph.model.ids import OperationId
from omnigraph.storage import heads, staging
from omnigraph.storage.column_files import ColumnFile, TableColumn, write_column_file
from omnigraph.storage.reshape import stage_reshape
from omnigraph.storage.store import Store
from omnigraph.storage.tables import ROW_ID, Table

SCHEMA: Final = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("n", pa.int64()),
        pa.field("note", pa.string()),
    ]
)
LOCATION: Final = "nodes/01J00000000000000000000000"
AUTHOR: Final = heads.Authorship(OperationId("01J00000000000000000000001"), OperationKind.LOAD)
CREATED: Final = "_row_created_at_version"
UPDATED: Final = "_row_last_updated_at_version"


def rows(ids: Iterable[str | None], *, n: int | None = 0) -> pa.Table:
    """One row per id, all with the same number, each with a note that names its id."""
    ids = list(ids)
    columns = {"id": ids, "n": [n] * len(ids), "note": [f"note of {each}" for each in ids]}
    return pa.table(columns, schema=SCHEMA)


def numbered_rows(numbers: Mapping[str, int | None]) -> pa.Table:
    """One row per id, each with its own number."""
    return pa.concat_tables([SCHEMA.empty_table(), *(rows([i], n=n) for i, n in numbers.items())])


def applied(staged: staging.StagedWrite | None) -> Table:
    """Apply a staged write as `AUTHOR`; it must not be None."""
    assert staged is not None
    return heads.apply(staged, AUTHOR)


def create(store: Store, ids: Iterable[str] = (), *, n: int = 0, location: str = LOCATION) -> Table:
    """A new table at version 1."""
    return applied(staging.stage_create(store.tables, location, rows(ids, n=n)))


def in_fragments(store: Store, *groups: Sequence[str]) -> Table:
    """A new table with one fragment per group of ids."""
    table = create(store)
    for group in groups:
        table = applied(staging.stage_append(table, rows(group)))
    return table


def kept(table: Table, *, but: Mapping[str, TableColumn | None] | None = None) -> list[TableColumn]:
    """The columns of a table as they are, except that some are changed, or dropped by None."""
    but = but or {}
    columns = (but.get(each.name, TableColumn(each, each.name)) for each in table.schema)
    return [each for each in columns if each is not None]


def filled(table: Table, values: Mapping[pa.Field, Any]) -> list[ColumnFile]:
    """A file for each fragment, with one value for each new column."""

    def fill(batch: pa.RecordBatch) -> pa.RecordBatch:
        made = [pa.array([value] * batch.num_rows, field.type) for field, value in values.items()]
        return pa.RecordBatch.from_arrays(made, schema=pa.schema(list(values)))

    return [
        write_column_file(table, each.id, list(values), reading=[], compute=fill)
        for each in table.fragments()
    ]


def stage_added(
    table: Table, fields: Sequence[pa.Field], *, values: Mapping[str, Any] | None = None
) -> staging.StagedWrite:
    """Prepare to add columns of nulls, or of one value."""
    given = {each: (values or {})[each.name] for each in fields if each.name in (values or {})}
    columns = [*kept(table), *map(TableColumn, fields)]
    return stage_reshape(table, columns, filled(table, given) if given else ())


def numbers(table: Table) -> dict[str, int | None]:
    """The number of each id; ids must be unique."""
    rows_read = table.read(["id", "n"]).to_pylist()
    assert len({each["id"] for each in rows_read}) == len(rows_read)
    return {each["id"]: each["n"] for each in rows_read}


def ids(table: Table, filter_text: str | None = None) -> list[str]:
    """The ids that match, sorted, with duplicates."""
    return sorted(table.read(["id"], filter_text=filter_text)["id"].to_pylist())


def by_id(table: Table, column: str) -> dict[str, Any]:
    """One column, or one of Lance's own, by id."""
    return {each["id"]: each[column] for each in table.read(["id", column]).to_pylist()}


def row_ids(table: Table) -> dict[str, int]:
    """The stable row id of each id."""
    return by_id(table, ROW_ID)


def latest(store: Store, *, ref: str | None = None) -> Table:
    """The newest version of the table at `LOCATION`."""
    return store.tables.open_latest(LOCATION, ref=ref)

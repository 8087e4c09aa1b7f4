"""How DuckDB scans a pinned table: through Lance where Lance takes its filters, else beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from omnigraph.storage.tables import Table


def scannable(table: Table, columns: tuple[str, ...]) -> Any:
    """What DuckDB may be given to read these columns from, as often as it likes."""
    types = [table.schema.field(name).type for name in columns]
    if any(map(_is_blob, types)):
        # A plain scan gives descriptions of blobs in the place of their bytes.
        return table.read(columns)
    if any(map(_refuses_filters, types)):
        return FilteredHere(table, columns)
    return table.handle


class FilteredHere(ds.Dataset):  # type: ignore[misc]
    """A table whose filters pyarrow applies, batch by batch, as they come from Lance.

    DuckDB hands its filters to what it scans and does not apply them again. Lance refuses filters
    on unsigned integers and on vectors (tests/contract/engine/test_pushdown.py).
    """

    def __init__(self, table: Table, columns: Sequence[str]) -> None:
        self._table = table
        self._columns = list(columns)

    @property
    def schema(self) -> pa.Schema:
        """The columns that the plan uses."""
        return pa.schema([self._table.schema.field(name) for name in self._columns])

    def scanner(
        self,
        columns: Sequence[str] | None = None,
        filter: ds.Expression | None = None,  # noqa: A002  # what pyarrow calls it
        **_: object,
    ) -> ds.Scanner:
        """One pass over the rows; DuckDB asks for as many as its plan needs."""
        wanted = self._columns if columns is None else list(columns)
        rows = self._table.scan(self._columns)
        return ds.Scanner.from_batches(rows, columns=wanted, filter=filter)


def _refuses_filters(kind: pa.DataType) -> bool:
    return bool(pa.types.is_unsigned_integer(kind) or pa.types.is_fixed_size_list(kind))


def _is_blob(kind: pa.DataType) -> bool:
    if pa.types.is_list(kind):
        return _is_blob(kind.value_type)
    return isinstance(kind, pa.BaseExtensionType) or bool(pa.types.is_struct(kind))

"""Row expressions: SQL over the columns of one row, evaluated on batches, the same in any process.

Executors of Spark call this too, so that both engines compute the same values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.local.databases import new_cursor
from omnigraph.errors import InternalError, InvalidInputError, StorageError

# Imported where it is used: most merges and schema changes compute no values.
if TYPE_CHECKING:
    import duckdb

_SETTINGS: Final = (
    # The caller is one of several tasks, and rows must keep their order.
    "threads = 1",
    # A part that occurs twice would be computed before the rest, outside the `TRY` that it is in.
    "disabled_optimizers = 'common_subexpressions'",
)


@dataclass(frozen=True, slots=True)
class RowExpression:
    """SQL of DuckDB over the columns `c0`, `c1` and so on.

    Attributes:
        types: The SQL type that each column is cast to before it is used.
    """

    sql: str
    types: tuple[str, ...] = ()

    def query(self, value: str) -> str:
        """A query for one value of each row."""
        columns = ", ".join(
            f"CAST(c{at} AS {type_}) AS c{at}" for at, type_ in enumerate(self.types)
        )
        return f"SELECT {value} AS v FROM (SELECT {columns or 'r'} FROM given)"


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The values of an expression, one for each row; null where it could not be computed.

    Attributes:
        failures: The rows where it could not be computed, in order.
    """

    values: pa.Array
    failures: np.ndarray


def infer_type(expression: RowExpression, columns: Sequence[pa.DataType]) -> str:
    """The SQL type of the values, such as `BIGINT`; `NULL` if all of them are null."""
    import duckdb

    given = pa.table({f"c{at}": pa.array([], type_) for at, type_ in enumerate(columns)})
    with _rows(given) as cursor:
        try:
            [type_] = cursor.sql(expression.query(expression.sql)).types
        except (duckdb.BinderException, duckdb.NotImplementedException) as cause:
            raise InvalidInputError(_reason(cause)) from cause
        except _data_errors() as cause:
            raise InvalidInputError(_reason(cause)) from cause
    return str(type_).strip('"')


def evaluate(expression: RowExpression, columns: Sequence[pa.Array], row_count: int) -> Evaluation:
    """The value of each row, in order, in the Arrow type that DuckDB has for it."""
    given = _given(columns, row_count)
    with _rows(given) as cursor:
        try:
            table = cursor.sql(expression.query(expression.sql)).to_arrow_table()
            return Evaluation(_whole(table), np.empty(0, np.int64))
        except _data_errors():
            # A failure is a null struct; the null that is a value is a field of one.
            attempt = expression.query(f"TRY({{'v': {expression.sql}}})")
            structs = _whole(cursor.sql(attempt).to_arrow_table())
    return Evaluation(pc.struct_field(structs, "v"), np.flatnonzero(structs.is_null()))


def explain(expression: RowExpression, columns: Sequence[pa.Array], row: int) -> str:
    """Why an expression cannot be computed of a row."""
    with _rows(_given([column.slice(row, 1) for column in columns], 1)) as cursor:
        try:
            cursor.sql(expression.query(expression.sql)).to_arrow_table()
        except _data_errors() as cause:
            return _reason(cause)
    message = f"{expression.sql} failed in a batch, and not for its row {row} alone"
    raise InternalError(message, hint="this is a bug; please report it")


@cache
def _data_errors() -> tuple[type[duckdb.Error], ...]:
    """What DuckDB raises for a value that an expression cannot be computed of."""
    import duckdb

    return (
        duckdb.ConversionException,
        duckdb.OutOfRangeException,
        duckdb.InvalidInputException,
    )


def _given(columns: Sequence[pa.Array], row_count: int) -> pa.Table:
    named = {f"c{at}": column for at, column in enumerate(columns)}
    return pa.table(named or {"r": pa.nulls(row_count, pa.bool_())})


@contextmanager
def _rows(given: pa.Table) -> Iterator[duckdb.DuckDBPyConnection]:
    import duckdb

    with closing(new_cursor(_SETTINGS)) as cursor:
        cursor.register("given", given if given.num_columns else pa.table({"r": [None]}))
        try:
            yield cursor
        except (duckdb.IOException, duckdb.OutOfMemoryException) as cause:
            message = f"the local engine could not finish: {_reason(cause)}"
            raise StorageError(message, hint="free memory, and try again") from cause
        except duckdb.Error as cause:
            message = f"the local engine refused an expression: {_reason(cause)}"
            raise InternalError(message, hint="this is a bug; please report it") from cause


def _whole(table: pa.Table) -> pa.Array:
    column = table["v"]
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _reason(cause: duckdb.Error) -> str:
    """The first line of an error, without the name of its kind and advice about settings."""
    line = str(cause).partition("\n")[0]
    kind, colon, reason = line.partition(": ")
    if colon and kind.endswith("Error"):
        line = reason
    return line.partition(" Use TRY(")[0][:500]

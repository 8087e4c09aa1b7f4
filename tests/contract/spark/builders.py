"""Plans and tables for the Spark suites: every property type, at its extremes."""

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any, Final

import pyarrow as pa
import sqlglot
from sqlglot import exp

from omnigraph.engine.protocol import Data
from omnigraph.model.tables import TableKey
from omnigraph.model.types import (
    BlobType,
    EnumType,
    ListType,
    PropertyType,
    Scalar,
    VectorType,
)
from omnigraph.relational.plans import (
    BoundValue,
    GivenRows,
    OutputColumn,
    Plan,
    Reduction,
    Relation,
    TableRows,
)
from omnigraph.schema.arrow import value_field
from omnigraph.storage import staging
from omnigraph.storage.store import Store
from omnigraph.storage.tables import Table
from tests.support.tables import LOCATION, applied

PERSON: Final = TableKey.parse("node:Person")
AWKWARD: Final = "a\0b'\"\\`:p ?{x}\n\t😀é日本"
FIRST_INSTANT: Final = datetime(1, 1, 1, tzinfo=UTC)
LAST_INSTANT: Final = datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
ODD_INSTANT: Final = datetime(1582, 10, 10, 1, 2, 3, 456_789, tzinfo=UTC)
FLOAT_MAX: Final = 3.4028234663852886e38

VALUES: Final[Mapping[PropertyType, Sequence[Any]]] = {
    Scalar.STRING: ["", AWKWARD, "x" * 100_000],
    Scalar.BOOL: [True, False],
    Scalar.I32: [-(2**31), 0, 2**31 - 1],
    Scalar.I64: [-(2**63), 2**53 + 1, 2**63 - 1],
    Scalar.U32: [0, 2**31, 2**32 - 1],
    Scalar.U64: [0, 2**63, 2**64 - 1],
    Scalar.F32: [-FLOAT_MAX, -0.0, 2.0**-149, float("inf"), float("nan")],
    Scalar.F64: [0.1, -0.0, 5e-324, 1.7976931348623157e308, float("-inf"), float("nan")],
    Scalar.DATE: [date(1, 1, 1), date(1582, 10, 10), date(1970, 1, 1), date(9999, 12, 31)],
    Scalar.DATETIME: [FIRST_INSTANT, ODD_INSTANT, LAST_INSTANT],
    EnumType(("draft", "in-review")): ["draft", "in-review"],
    VectorType(3): [[0.5, -1.5, FLOAT_MAX], [0.0, 0.0, 2.0**-149]],
    BlobType(): [b"", b"\x00\xff'", b"z" * 300_000],
    ListType(Scalar.STRING): [[], [AWKWARD, ""], ["b", "a", "b"]],
    ListType(Scalar.BOOL): [[], [True, False]],
    ListType(Scalar.I32): [[], [-(2**31), 2**31 - 1]],
    ListType(Scalar.I64): [[], [-(2**63), 2**53 + 1, 2**63 - 1]],
    ListType(Scalar.U32): [[], [2**32 - 1, 0]],
    ListType(Scalar.U64): [[], [2**64 - 1, 0]],
    ListType(Scalar.F32): [[], [0.5, float("inf"), float("nan"), -0.0]],
    ListType(Scalar.F64): [[], [0.1, 5e-324, float("-inf"), float("nan"), -0.0]],
    ListType(Scalar.DATE): [[], [date(1, 1, 1), date(9999, 12, 31)]],
    ListType(Scalar.DATETIME): [[], [FIRST_INSTANT, ODD_INSTANT, LAST_INSTANT]],
    ListType(BlobType()): [[], [b"", b"\x00\xff'"]],
}
"""Values of every property type that stands alone, and of every list: extremes and traps."""


def every_type() -> pa.Table:
    """One column per property type, named `c0`, `c1` and so on, ending in a row of nulls."""
    rows = max(map(len, VALUES.values())) + 1
    fields = [pa.field("id", pa.utf8(), nullable=False)]
    columns: list[list[Any]] = [list(map(str, range(rows)))]
    for place, (type_, values) in enumerate(VALUES.items()):
        fields.append(value_field(f"c{place}", type_, nullable=True))
        columns.append([*values, *[None] * (rows - len(values))])
    arrays = [pa.array(each, field.type) for each, field in zip(columns, fields, strict=True)]
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def outputs(types: Mapping[str, PropertyType]) -> tuple[OutputColumn, ...]:
    return tuple(OutputColumn(name, type_, nullable=True) for name, type_ in types.items())


def plan(
    text: str,
    columns: Mapping[str, PropertyType],
    *,
    relations: Mapping[str, Relation] | None = None,
    values: Mapping[str, BoundValue] | None = None,
    reductions: tuple[Reduction, ...] = (),
) -> Plan:
    tree = sqlglot.parse_one(text)
    assert isinstance(tree, exp.Query)
    return Plan(tree, relations or {}, outputs(columns), values or {}, reductions)


def person(*columns: str) -> dict[str, Relation]:
    """The relation `person`: these columns of the one table that most tests use."""
    return {"person": TableRows(PERSON, columns)}


GIVEN: Final[Mapping[str, Relation]] = {"given": GivenRows()}


def data(table: Table | None = None, given: pa.Table | None = None) -> Data:
    def opened(key: TableKey) -> Table:
        assert key == PERSON
        assert table is not None
        return table

    return Data(opened, {} if given is None else {"given": given})


def stored(store: Store, rows: pa.Table) -> Table:
    """A new table that holds these rows in one fragment."""
    # Created empty: Lance refuses new files in which a column follows a blob, but appends them.
    empty = applied(staging.stage_create(store.tables, LOCATION, rows.schema.empty_table()))
    return applied(staging.stage_append(empty, rows)) if rows.num_rows else empty

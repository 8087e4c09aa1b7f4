"""Running a plan on DuckDB."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, Final, assert_never

import pyarrow as pa
from sqlglot import exp

from omnigraph.choices import EngineName
from omnigraph.engine.local.reduce import Reducer, look_up
from omnigraph.engine.local.scans import joinable, scannable
from omnigraph.engine.protocol import Data
from omnigraph.engine.results import conform
from omnigraph.errors import ErrorCode, InternalError, InvalidInputError, StorageError
from omnigraph.limits import COMPILED_QUERIES_MAX
from omnigraph.relational.plans import GivenRows, Plan, Relation, TableRows
from omnigraph.storage.streams import Relay

# Imported where it is used: what is found by key does without.
if TYPE_CHECKING:
    import duckdb

_DIALECT: Final = "duckdb"
_SETTINGS: Final = (
    "TimeZone = 'UTC'",
    # Nothing but the relations of a plan may be read: no variables, files, network, extensions.
    "python_enable_replacements = false",
    "autoinstall_known_extensions = false",
    "autoload_known_extensions = false",
    "enable_external_access = false",
    "lock_configuration = true",
)


class LocalEngine:
    """DuckDB in process: one for all engines, made when first needed, and a cursor per thread."""

    def __init__(self) -> None:
        self._threads = threading.local()
        self._texts = _Texts()

    @property
    def name(self) -> EngineName:
        """Which engine this is."""
        return EngineName.LOCAL

    @property
    def dialect(self) -> str:
        """The SQL that this engine runs, as sqlglot names it."""
        return _DIALECT

    def run(self, plan: Plan, data: Data) -> pa.Table:
        """The plan's rows, in its order, with exactly the columns it declares.

        Raises:
            InvalidInputError: a computed value does not fit its type.
            StorageError: a table could not be read.
        """
        if (rows := look_up(plan, data)) is not None:
            return conform(rows, plan.columns)
        relay = Relay()
        inputs = self._inputs(plan, data, relay)
        cursor = self._cursor()
        with _registered(cursor, inputs), relay.reraise(), _translating():
            values = {name: bound.value for name, bound in plan.values.items()}
            answer = cursor.sql(self._texts.of(plan.tree), params=values or None)
            computed = answer.to_arrow_table()
        return conform(computed, plan.columns)

    def _inputs(self, plan: Plan, data: Data, relay: Relay) -> dict[str, Any]:
        reducer = Reducer(plan, data)
        inputs: dict[str, Any] = dict(reducer.run())
        joins = len(plan.relations) > 1
        for name, relation in plan.relations.items():
            if name not in inputs:
                uses_indexes = name not in reducer.crowded
                inputs[name] = self._input(
                    name, relation, data, relay, joins=joins, uses_indexes=uses_indexes
                )
        return inputs

    def _input(
        self,
        name: str,
        relation: Relation,
        data: Data,
        relay: Relay,
        *,
        joins: bool,
        uses_indexes: bool,
    ) -> Any:
        match relation:
            case GivenRows():
                return data.given[name]
            case TableRows(key, columns):
                table = data.table(key)
                rows = joinable(table, columns) if joins else None
                if rows is not None:
                    return rows
                return scannable(table, columns, relay, uses_indexes=uses_indexes)
            case _:
                assert_never(relation)

    def _cursor(self) -> duckdb.DuckDBPyConnection:
        cursor: duckdb.DuckDBPyConnection | None = getattr(self._threads, "cursor", None)
        if cursor is None:
            cursor = new_cursor()
            self._threads.cursor = cursor
        return cursor


class _Texts:
    """The SQL of trees that were run before: rendering one costs as much as running a small one."""

    def __init__(self) -> None:
        self._kept: OrderedDict[int, tuple[exp.Query, str]] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, tree: exp.Query) -> str:
        """The text of a tree, which must not be changed any more."""
        with self._lock:
            # By identity: the tree is kept too, so no other can have its id meanwhile.
            if kept := self._kept.get(id(tree)):
                self._kept.move_to_end(id(tree))
                return kept[1]
        text = tree.sql(dialect=_DIALECT)
        with self._lock:
            self._kept[id(tree)] = tree, text
            if len(self._kept) > COMPILED_QUERIES_MAX:
                self._kept.popitem(last=False)
        return text


_connecting: Final = threading.Lock()


def new_cursor(settings: tuple[str, ...] = ()) -> duckdb.DuckDBPyConnection:
    """A cursor of this process's DuckDB, for one thread of the caller.

    Args:
        settings: More settings, as assignments; there is one DuckDB for each choice of them.
    """
    # One at a time, or two threads make a DuckDB each. The one that nobody keeps would go with the
    # cursor of its thread; and a child that is forked meanwhile, as Spark's start does, lets go of
    # that cursor, waits for threads that it does not have, and dies.
    with _connecting:
        return _connected(os.getpid(), settings).cursor()


@cache
def _connected(pid: int, settings: tuple[str, ...]) -> duckdb.DuckDBPyConnection:  # noqa: ARG001 a child has its own
    """This process's DuckDB. To start one takes longer than a small query does."""
    import duckdb

    connection = duckdb.connect(":memory:")
    for setting in (*settings, *_SETTINGS):
        connection.execute(f"SET GLOBAL {setting}")
    return connection


@contextmanager
def _registered(cursor: duckdb.DuckDBPyConnection, inputs: Mapping[str, Any]) -> Iterator[None]:
    try:
        for name, rows in inputs.items():
            cursor.register(name, rows)
        yield
    finally:
        for name in inputs:
            cursor.unregister(name)


@contextmanager
def _translating() -> Iterator[None]:
    """Re-raise DuckDB's failures as ours, with the original as the cause."""
    import duckdb

    try:
        yield
    except (duckdb.ConversionException, duckdb.OutOfRangeException) as cause:
        message = f"a computed value does not fit its type: {_first_line(cause)}"
        hint = "sum fewer rows, or take the average"
        code = ErrorCode.VALUE_OUT_OF_RANGE
        raise InvalidInputError(message, hint=hint, code=code) from cause
    except (duckdb.IOException, duckdb.OutOfMemoryException) as cause:
        message = f"the local engine could not finish: {_first_line(cause)}"
        raise StorageError(message, hint="try the engine spark for what does not fit") from cause
    except duckdb.Error as cause:
        message = f"the local engine refused a plan: {_first_line(cause)}"
        raise InternalError(message, hint="this is a bug; please report the query") from cause


def _first_line(cause: Exception) -> str:
    return str(cause).partition("\n")[0][:500]

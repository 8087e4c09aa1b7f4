"""Running a plan on DuckDB."""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, assert_never

import pyarrow as pa
from sqlglot import exp

from omnigraph.choices import EngineName
from omnigraph.engine.budget import Budget
from omnigraph.engine.interrupts import run_interruptibly
from omnigraph.engine.local.best import pick_best
from omnigraph.engine.local.bounds import combinations, relation_uses
from omnigraph.engine.local.cuts import CutRun, rank_scopes
from omnigraph.engine.local.databases import bounded_database, new_cursor
from omnigraph.engine.local.reduce import Reducer, look_up
from omnigraph.engine.local.scans import joinable, scannable
from omnigraph.engine.local.searching import Searcher
from omnigraph.engine.protocol import Data
from omnigraph.engine.results import conform, out_of_range_error
from omnigraph.errors import InternalError, StorageError
from omnigraph.limits import COMPILED_QUERIES_MAX
from omnigraph.relational.caps import cap_rows
from omnigraph.relational.plans import (
    GivenRows,
    PathPlans,
    Plan,
    Relation,
    SearchRows,
    StagedPlans,
    TableRows,
)
from omnigraph.storage.index_damage import warn_of_damage
from omnigraph.storage.streams import Relay

# Imported where it is used: what is found by key does without.
if TYPE_CHECKING:
    import duckdb

    from omnigraph.engine.local.matching.matcher import PatternMatcher
    from omnigraph.engine.local.topology.topologies import Topologies

RESULT_BATCH_ROWS: Final = 1 << 16
"""Rows of a result that arrive at once where the bytes of a result are counted."""

BRIEF_COMBINATIONS_MAX: Final = 1 << 20
"""Combinations of rows up to which a statement ends at once, whatever it does with them. To wait
for another thread costs as much as a small one takes."""


_DIALECT: Final = "duckdb"


class LocalEngine:
    """DuckDB in process: one for all engines, made when first needed, and a cursor per thread."""

    def __init__(self, *, uses_arrays: bool = True) -> None:
        """An engine.

        Args:
            uses_arrays: Whether patterns may be matched on arrays; no answer depends on it.
        """
        self._threads = threading.local()
        self._statements = _Statements()
        self._uses_arrays = uses_arrays
        self._making = threading.Lock()
        self._made_matcher: PatternMatcher | None = None
        self._searcher = Searcher()

    @property
    def name(self) -> EngineName:
        """Which engine this is."""
        return EngineName.LOCAL

    @property
    def dialect(self) -> str:
        """The SQL that this engine runs, as sqlglot names it."""
        return _DIALECT

    def means(self, plan: Plan, data: Data) -> str:
        """By what it would answer the plan, and why. Reads no rows."""
        if plan.lookup is not None:
            return "a lookup (it wants one row by its key)"
        if not self._uses_arrays:
            return "SQL (arrays are switched off)"
        if plan.stages is not None:
            plans = (*(stage.plan for stage in plan.stages.before), plan.stages.last)
            return "; then ".join(self.means(each, data) for each in plans)
        if plan.paths is not None:
            edges = ", ".join(sorted({str(each.edges) for each in plan.paths.searches}))
            return f"arrays of {edges} for its paths if they fit into memory, and SQL for the rest"
        if plan.parts is not None and self._finds_parts(plan, plan.parts, data):
            return "arrays for parts of it (their edges fit into memory), then SQL"
        return str(self._matcher.choose(plan, data))

    def searches(self, plan: Plan, data: Data) -> Mapping[str, str]:
        """How it would answer each search of a plan. Reads no rows."""
        return self._searcher.describe(plan, data)

    def run(self, plan: Plan, data: Data) -> pa.Table:
        """The plan's rows, in its order, with exactly the columns it declares."""
        try:
            return self._run(plan, data)
        except StorageError as failure:
            scanned = replace(data, table=lambda key: data.table(key).without_indexes())
            try:
                rows = self._run(plan, scanned)
            except StorageError:
                raise failure from failure.__cause__
            warn_of_damage(failure)
            return rows

    def _run(self, plan: Plan, data: Data) -> pa.Table:
        budget = data.budget
        budget.check()
        if (rows := look_up(plan, data)) is not None:
            return conform(rows, plan.columns)
        if plan.stages is not None and self._uses_arrays:
            return self._run_stages(plan.stages, data)
        if plan.paths is not None and self._uses_arrays:
            given = self._find_paths(plan.paths, data)
            if given is not None:
                return self._run(plan.paths.plan, replace(data, given={**data.given, **given}))
        if plan.parts is not None and self._uses_arrays:
            if self._finds_parts(plan, plan.parts, data):
                return self._run_parts(plan.parts, data)
            return self._run_sql(plan, data)
        if plan.matching is not None and self._uses_arrays:
            rows = self._matcher.run(plan, data)
            if rows is not None:
                budget.require_rows(rows.num_rows)
                budget.require_bytes(rows.nbytes)
                return rows
        return self._run_sql(plan, data)

    def _find_paths(self, paths: PathPlans, data: Data) -> dict[str, pa.Table] | None:
        """The relations of paths, found on arrays; None if they are for SQL."""
        from omnigraph.engine.local.paths import find_paths

        between = data.within(replace(data.budget, rows=None))
        given: dict[str, pa.Table] = {}
        for search in paths.searches:
            sources, targets = (
                None if ids is None else self._run(ids, between).column(0)
                for ids in (search.sources, search.targets)
            )
            found = find_paths(search, sources, targets, data, self.topologies)
            if found is None:
                return None
            given[search.relation] = found
        return given

    def _run_stages(self, stages: StagedPlans, data: Data) -> pa.Table:
        """Run stage after stage: what one keeps is usually little, and leads to few rows."""
        # Only what is returned may not have too many rows.
        between = data.within(replace(data.budget, rows=None))
        given = data.given
        for stage in stages.before:
            rows = self._run(stage.plan, replace(between, given=given))
            given = {**data.given, stage.relation: rows}
        return self._run(stages.last, replace(data, given=given))

    def _finds_parts(self, plan: Plan, parts: StagedPlans, data: Data) -> bool:
        """Whether arrays answer all parts, and it does not start from a few rows."""
        on_arrays = all(self._matcher.choose(each.plan, data).on_arrays for each in parts.before)
        return on_arrays and not Reducer(plan, data).finds_few()

    def _run_parts(self, parts: StagedPlans, data: Data) -> pa.Table:
        """Run each part by itself, and then what is around them."""
        between = data.within(replace(data.budget, rows=None))
        given = {each.relation: self._run(each.plan, between) for each in parts.before}
        return self._run_sql(parts.last, replace(data, given={**data.given, **given}))

    @property
    def topologies(self) -> Topologies:
        """The arrays of edge tables that it keeps."""
        return self._matcher.topologies

    @property
    def _matcher(self) -> PatternMatcher:
        # Threads share one, with what it keeps.
        with self._making:
            if self._made_matcher is None:
                from omnigraph.engine.local.matching.matcher import PatternMatcher

                self._made_matcher = PatternMatcher(self._run_sql)
            return self._made_matcher

    def _run_sql(self, plan: Plan, data: Data) -> pa.Table:
        if found := self._searcher.run(plan, data):
            data = replace(data, given={**data.given, **found})
        if plan.scopes:
            data = rank_scopes(plan, data, self._searcher, self._compute)
        if (best := pick_best(plan, found)) is not None:
            computed = best
        elif plan.cut is None:
            computed = self._compute(plan, data, data.budget.rows_max)
        else:
            computed = CutRun(plan, plan.cut, data, self._searcher, self._compute).run()
        data.budget.require_rows(computed.num_rows)
        return conform(computed, plan.columns)

    def _compute(self, plan: Plan, data: Data, rows_max: int | None) -> pa.Table:
        """The rows of a plan whose searches are answered; one more than so many, if it has more."""
        budget, relay = data.budget, Relay()
        inputs = self._inputs(plan, data, relay)
        statement = self._statements.of(plan.tree, rows_max)
        values = {name: bound.value for name, bound in plan.values.items()}
        with (
            self._database(budget) as cursor,
            _registered(cursor, inputs),
            relay.reraise(),
            _translating(budget),
        ):

            def work() -> pa.Table:
                return _collect(cursor.sql(statement.text, params=values or None), budget)

            if _is_brief(statement, inputs):
                return work()
            return run_interruptibly(work, cursor.interrupt, budget)

    def _inputs(self, plan: Plan, data: Data, relay: Relay) -> dict[str, Any]:
        reducer = Reducer(plan, data)
        inputs: dict[str, Any] = dict(reducer.run())
        joins = len(plan.relations) > 1
        for name, relation in plan.relations.items():
            if name not in inputs:
                data.budget.check()
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
            case GivenRows() | SearchRows():
                return data.given[name]
            case TableRows(key, columns):
                table = data.table(key)
                rows = joinable(table, columns) if joins else None
                if rows is not None:
                    return rows
                return scannable(table, columns, relay, uses_indexes=uses_indexes)
            case _:
                assert_never(relation)

    @contextmanager
    def _database(self, budget: Budget) -> Iterator[duckdb.DuckDBPyConnection]:
        if budget.bytes_max is None:
            yield self._cursor()
        else:
            with bounded_database(budget.bytes_max) as connection:
                yield connection

    def _cursor(self) -> duckdb.DuckDBPyConnection:
        cursor: duckdb.DuckDBPyConnection | None = getattr(self._threads, "cursor", None)
        if cursor is None:
            cursor = new_cursor()
            self._threads.cursor = cursor
        return cursor


@dataclass(frozen=True, slots=True)
class _Statement:
    """A tree that was run before.

    Attributes:
        uses: How often it reads each relation; None if no count bounds its work.
    """

    tree: exp.Query
    text: str
    uses: Counter[str] | None


class _Statements:
    """Trees that were run before: rendering one costs as much as running a small one."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[int, int | None], _Statement] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, tree: exp.Query, rows_max: int | None) -> _Statement:
        """The statement of a tree, which must not be changed any more.

        Args:
            rows_max: How many rows are wanted: with more, it has one more, whichever.
        """
        key = id(tree), rows_max
        with self._lock:
            # By identity: the tree is kept too, so no other can have its id meanwhile.
            if kept := self._kept.get(key):
                self._kept.move_to_end(key)
                return kept
        capped = tree if rows_max is None else cap_rows(tree, rows_max + 1)
        statement = _Statement(tree, capped.sql(dialect=_DIALECT), relation_uses(tree))
        with self._lock:
            self._kept[key] = statement
            if len(self._kept) > COMPILED_QUERIES_MAX:
                self._kept.popitem(last=False)
        return statement


def _is_brief(statement: _Statement, inputs: Mapping[str, Any]) -> bool:
    """Whether a statement ends at once on these rows: then no thread has to wait for another."""
    if statement.uses is None or not all(isinstance(rows, pa.Table) for rows in inputs.values()):
        return False
    row_counts = {name: rows.num_rows for name, rows in inputs.items()}
    return combinations(statement.uses, row_counts) <= BRIEF_COMBINATIONS_MAX


@contextmanager
def _registered(cursor: duckdb.DuckDBPyConnection, inputs: Mapping[str, Any]) -> Iterator[None]:
    try:
        for name, rows in inputs.items():
            cursor.register(name, rows)
        yield
    finally:
        for name in inputs:
            cursor.unregister(name)


def _collect(answer: duckdb.DuckDBPyRelation, budget: Budget) -> pa.Table:
    """The rows of an answer. DuckDB's limit of memory does not count them, so they are counted."""
    if budget.memory is None:
        return answer.to_arrow_table()
    byte_count = 0
    batches = []
    with _raising_own_errors():
        reader = answer.to_arrow_reader(RESULT_BATCH_ROWS)
        for batch in reader:
            byte_count += batch.nbytes
            budget.require_bytes(byte_count)
            batches.append(batch)
    return pa.Table.from_batches(batches, reader.schema)


@contextmanager
def _raising_own_errors() -> Iterator[None]:
    """Raise DuckDB's errors as it raises them outside of a stream, where they are OSErrors."""
    import duckdb

    kinds: dict[str, type[duckdb.Error]] = {
        "Conversion Error": duckdb.ConversionException,
        "Out of Range Error": duckdb.OutOfRangeException,
        "Out of Memory Error": duckdb.OutOfMemoryException,
        "IO Error": duckdb.IOException,
    }
    try:
        yield
    except OSError as cause:
        kind = kinds.get(str(cause).partition(":")[0], duckdb.Error)
        raise kind(str(cause)) from cause


@contextmanager
def _translating(budget: Budget) -> Iterator[None]:
    """Re-raise DuckDB's failures as ours, with the original as the cause."""
    import duckdb

    try:
        yield
    except duckdb.OutOfMemoryException as cause:
        if budget.memory is not None:
            raise budget.memory_error() from cause
        raise _unfinished_error(cause) from cause
    except (duckdb.ConversionException, duckdb.OutOfRangeException) as cause:
        message = f"a computed value does not fit its type: {_first_line(cause)}"
        raise out_of_range_error(message) from cause
    except duckdb.IOException as cause:
        raise _unfinished_error(cause) from cause
    except duckdb.Error as cause:
        message = f"the local engine refused a plan: {_first_line(cause)}"
        raise InternalError(message, hint="this is a bug; please report the query") from cause


def _unfinished_error(cause: Exception) -> StorageError:
    message = f"the local engine could not finish: {_first_line(cause)}"
    return StorageError(message, hint="try the engine spark for what does not fit")


def _first_line(cause: Exception) -> str:
    return str(cause).partition("\n")[0][:500]

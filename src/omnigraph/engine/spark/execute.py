"""Running a plan on Spark."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Final, NoReturn, TypeAlias, assert_never

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from sqlglot import exp

from omnigraph.choices import EngineName
from omnigraph.engine.interrupts import run_interruptibly
from omnigraph.engine.protocol import Data
from omnigraph.engine.results import conform
from omnigraph.engine.spark.counting import count_early
from omnigraph.engine.spark.dialect import to_spark
from omnigraph.engine.spark.failures import translate_errors
from omnigraph.engine.spark.groups import cancel, tagged
from omnigraph.engine.spark.pruning import prune
from omnigraph.engine.spark.relations import given_frame, table_frame
from omnigraph.engine.spark.searching import search_frame
from omnigraph.engine.spark.session import open_session, plan_session
from omnigraph.engine.spark.settings import SessionSettings
from omnigraph.engine.spark.types import spark_type
from omnigraph.engine.spark.values import bind
from omnigraph.errors import OmnigraphError
from omnigraph.limits import KEYS_PER_LOOKUP_MAX
from omnigraph.relational.caps import cap_rows
from omnigraph.relational.plans import GivenRows, IsOneOf, Plan, Relation, SearchRows, TableRows
from omnigraph.storage import filters

CANCELLED_JOBS_SECONDS_MAX: Final = 0.5
"""How long the caller of a query on Spark waits for its jobs to end when it was cancelled."""


_DIALECT: Final = "spark"
_RUN_NUMBERS: Final = itertools.count()

Frame: TypeAlias = DataFrame
"""Spark's own DataFrame, for annotations where pyspark itself must not be imported."""

Session: TypeAlias = SparkSession
"""Likewise Spark's own session."""


class SparkEngine:
    """Spark, in the given session or the active one; started if none runs."""

    def __init__(
        self, session: SparkSession | None = None, *, settings: SessionSettings | None = None
    ) -> None:
        self._given = session
        self._settings = settings
        self._session: SparkSession | None = None
        self._lock = threading.Lock()

    @property
    def name(self) -> EngineName:
        """Which engine this is."""
        return EngineName.SPARK

    @property
    def dialect(self) -> str:
        """The SQL that this engine runs, as sqlglot names it."""
        return _DIALECT

    def means(self, plan: Plan, data: Data) -> str:  # noqa: ARG002 the same for all
        """By what it would answer the plan."""
        return "SQL (Spark runs nothing else)"

    def searches(self, plan: Plan, data: Data) -> Mapping[str, str]:  # noqa: ARG002
        """How it would answer each search of a plan."""
        return {
            name: f"{relation.search}, exact, by a scan"
            for name, relation in plan.relations.items()
            if isinstance(relation, SearchRows)
        }

    @property
    def session(self) -> SparkSession:
        """The session that plans run in; the first use may start Spark."""
        with self._lock:
            if self._session is None:
                self._session = plan_session(self._given or open_session(self._settings))
            return self._session

    def run(self, plan: Plan, data: Data) -> pa.Table:
        """The plan's rows, in its order, with exactly the columns it declares."""
        session, budget = self.session, data.budget
        tag = f"omnigraph-{os.getpid()}-{next(_RUN_NUMBERS)}"

        def work() -> pa.Table:
            with translate_errors("the plan"), tagged(session, tag):
                computed = _computed(session, plan, data)
                # To analyse a plan may take long, and cannot be interrupted.
                budget.check()
                return computed.toArrow()

        def interrupt() -> None:
            # Spark may be gone as well; the error that is being raised says why.
            with suppress(OmnigraphError), translate_errors("the plan"):
                cancel(session, tag)

        computed = run_interruptibly(
            work, interrupt, budget, patience_seconds=CANCELLED_JOBS_SECONDS_MAX
        )
        budget.require_bytes(computed.nbytes)
        budget.require_rows(computed.num_rows)
        return conform(computed, plan.columns)

    def frame(self, plan: Plan, data: Data) -> DataFrame:
        """The plan as a DataFrame of its columns, in their types; it runs when it is used.

        What fails then, fails with Spark's own errors.
        """
        session = self.session
        with translate_errors("the plan"):
            computed = _computed(session, plan, data)
            # By place: names in the tree mean nothing and may stand twice.
            places = computed.toDF(*(f"c{place}" for place in range(len(plan.columns))))
            return places.select(
                [
                    sql.col(f"c{place}").cast(spark_type(column.type)).alias(column.name)
                    for place, column in enumerate(plan.columns)
                ]
            )

    def __reduce__(self) -> NoReturn:
        message = "a SparkEngine cannot be pickled; executors get a ReadTask"
        raise TypeError(message)


def _computed(session: SparkSession, plan: Plan, data: Data) -> DataFrame:
    pruned, relations = prune(plan.tree, plan.relations)
    pruned, counted = count_early(pruned, _countable(relations, data))
    frames = {
        name: _relation_frame(session, plan, name, relation, data, counted=name in counted)
        for name, relation in relations.items()
    }
    rows_max = data.budget.rows_max
    capped = pruned if rows_max is None else cap_rows(pruned, rows_max + 1)
    # Named by their order: a relation may have any name, and a field of a format may not.
    fields = {name: f"relation_{place}" for place, name in enumerate(frames)}
    tree, arguments = bind(spark_tree(capped, fields), plan.values)
    named = {fields[name]: frame for name, frame in frames.items()}
    # A classic session makes views of the frames for as long as it analyses the text; one of Spark
    # Connect sends the frames along, each time that it does.
    text = tree.sql(dialect=_DIALECT, identify=True)
    return session.sql(text if named else text.format(), args=arguments, **named)


def _countable(relations: Mapping[str, Relation], data: Data) -> list[str]:
    """The relations whose values are all texts: those are equal to Arrow if they are to Spark."""
    return [
        name
        for name, relation in relations.items()
        if isinstance(relation, TableRows)
        and relation.columns
        # A name that a table lacks is none of its columns, but one of Lance's own.
        and all(
            each in (schema := data.table(relation.table).schema).names
            and pa.types.is_string(schema.field(each).type)
            for each in relation.columns
        )
    ]


def _relation_frame(
    session: SparkSession,
    plan: Plan,
    name: str,
    relation: Relation,
    data: Data,
    *,
    counted: bool,
) -> DataFrame:
    match relation:
        case GivenRows():
            return given_frame(session, data.given[name])
        case TableRows(key, columns):
            filter_text = _filter_text(plan, name)
            table = data.table(key)
            return table_frame(session, table, columns, filter_text=filter_text, counted=counted)
        case SearchRows(search):
            return search_frame(session, relation, data.table(search.table))
        case _:
            assert_never(relation)


def _filter_text(plan: Plan, relation: str) -> str | None:
    """What of the plan's reductions can be asked of Lance before anything was read.

    The others name rows of other relations; Spark's joins see to those.
    """
    for reduction in plan.reductions:
        if reduction.relation == relation and isinstance(reduction.by, IsOneOf):
            values = reduction.by.values
            if len(values) <= KEYS_PER_LOOKUP_MAX:
                return filters.is_one_of(reduction.column, values)
    return None


def spark_tree(tree: exp.Query, fields: Mapping[str, str]) -> exp.Query:
    """A copy of the tree as Spark can run it: a text to format, with a field for each relation."""
    shadowed = {part.alias for part in tree.find_all(exp.CTE)} & fields.keys()
    assert not shadowed, f"{shadowed} name relations and parts of the plan"

    def rewrite(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.CTE):
            # Spark decides by itself, and has no word for it.
            node.set("materialized", None)
        elif isinstance(node, exp.Literal | exp.Identifier):
            node.set("this", _escape(node.this))
        elif isinstance(node, exp.Func):
            return to_spark(node)
        elif isinstance(node, exp.Table) and not node.db and node.name in fields:
            if not node.alias:
                node.set("alias", exp.TableAlias(this=exp.to_identifier(node.name)))
            # Not quoted, and not escaped.
            node.set("this", exp.Var(this=f"{{{fields[node.name]}}}"))
        return node

    over_fields = tree.transform(rewrite)
    assert isinstance(over_fields, exp.Query), "only names were replaced"
    return over_fields


def _escape(text: str) -> str:
    """The text, written so that formatting leaves it as it is."""
    return text.replace("{", "{{").replace("}", "}}")

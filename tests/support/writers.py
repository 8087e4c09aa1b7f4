"""Writers of every kind that the protocol supports, on one small graph, looked up by name."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, NoReturn

import pyarrow as pa

from omnigraph.graph import Graph
from omnigraph.limits import FOLD_FRAGMENTS_MIN
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.model.commits import MAINTENANCE_ACTOR, OperationKind
from omnigraph.model.ids import CommitId
from omnigraph.model.names import MAIN, BranchName
from omnigraph.model.tables import TableKey
from omnigraph.storage import staging
from omnigraph.storage.tables import Table
from omnigraph.transaction.view import View
from omnigraph.transaction.writes import Stage, WriteOutcome, WritePlan, WriteRequest
from tests.support.graphs import graph_with
from tests.support.publishing import CITY, KNOWS, PERSON, SCHEMA

DRAFT: Final = "draft"

RESHAPED: Final = """
node Human @rename_from("Person") {
    name: String @key  years: I64? @rename_from("age")  kind: String @default("old")  note: String?
}
edge Knows: Human -> Human
node Pet { name: String @key }
"""
"""Every kind of step from the schema of `furnished`: a type and a property are renamed, others are
dropped and added, with values and without, and a column is converted."""

RENAMED: Final = """
node Person { name: String @key  age: I32? }
node Town @rename_from("City") { name: String @key }
edge Knows: Person -> Person { since: Date? }
node Pet { name: String @key }
"""
"""A change from the schema of `furnished` that moves no head."""


def furnished(uri: str) -> Graph:
    """A graph with a few rows of each type, and no index."""
    rows: Mapping[str, Any] = {
        "Person": [{"id": "ada", "name": "ada", "age": 36}, {"id": "bob", "name": "bob"}],
        "City": [{"id": "rome", "name": "rome"}],
        "Knows": [{"id": "ada-bob", "src": "ada", "dst": "bob"}],
    }
    return graph_with(uri, SCHEMA, rows)


def person(name: str, age: int | None = None) -> dict[str, Any]:
    """A row of Person."""
    return {"id": name, "name": name, "age": age}


def knows(source: str, target: str) -> dict[str, Any]:
    """A row of Knows."""
    return {"id": f"{source}-{target}", "src": source, "dst": target}


def upserts(*rows: Mapping[str, Any]) -> Stage:
    """Stage these rows, replacing those with their ids.

    Of each row, the table takes the columns that it has.
    """
    complete = [{"kind": "new", **row} for row in rows]

    def stage(table: Table) -> staging.StagedWrite | None:
        return staging.stage_upsert(table, pa.Table.from_pylist(complete, table.schema))

    return stage


def deletes(*ids: str) -> Stage:
    """Stage the deletion of the rows with these ids."""
    return lambda table: staging.stage_delete(table, ids=ids)


def current_key(snapshot: Snapshot, key: TableKey) -> TableKey:
    """The key itself if a type has it, else that of the type that was introduced by it."""
    if key in snapshot.pins:
        return key
    (current,) = (
        pin.key
        for pin in snapshot.pins.values()
        if (pin.key.kind, pin.identity.origin) == (key.kind, key.type_name)
    )
    return current


def write(
    graph: Graph,
    changes: Mapping[TableKey, Stage],
    *,
    reads: frozenset[TableKey] = frozenset(),
    guards: frozenset[TableKey] = frozenset(),
    replans: bool = False,
    expect_head: str | None = None,
    actor: str | None = None,
    branch: str = MAIN,
    kind: OperationKind = OperationKind.MUTATION,
    planned: Callable[[], object] = lambda: None,
) -> WriteOutcome[None]:
    """Run one write, planned without reading anything. Types are named as they were introduced.

    Args:
        planned: Called each time that the write has been planned.
    """

    def plan(view: View) -> WritePlan[None]:
        def now(key: TableKey) -> TableKey:
            return current_key(view.snapshot, key)

        planned()
        return WritePlan(
            None,
            {now(key): stage for key, stage in changes.items()},
            reads=frozenset(map(now, reads)),
            locks=frozenset(map(now, guards)),
            can_replan=replans,
        )

    head = None if expect_head is None else CommitId(expect_head)
    order = WriteRequest(kind, BranchName(branch), actor=actor, expect_head=head)
    return graph._transactions.run(order, plan)


def insert(graph: Graph, *names: str, branch: str = MAIN) -> WriteOutcome[None]:
    """Add people; planned again as often as necessary."""
    return write(graph, {PERSON: upserts(*map(person, names))}, replans=True, branch=branch)


def found_city(graph: Graph, *names: str, branch: str = MAIN) -> WriteOutcome[None]:
    """Add cities: a table that none of the writers below touches."""
    rows = [{"id": each, "name": each} for each in names]
    return write(graph, {CITY: upserts(*rows)}, replans=True, branch=branch)


@dataclass(frozen=True, slots=True)
class Writer:
    """One kind of write, always the same.

    Attributes:
        tables: How many heads it moves.
        versions: How many versions it makes of each of their tables.
        created: How many tables it creates while it stages.
        replans: Whether it is planned again when its tables moved.
        branch: Where it writes. All but main have to be created first.
        confirms: Whether it records that all heads have moved, and is rolled forward only then.
        actor: Who writes.
        keeps_rows: Whether it is maintenance, which changes no row.
        prepare: Makes a furnished graph what this writer starts from.
        then: What follows its commit in the same call, as a transaction of its own.
    """

    write: Callable[[Graph], Any]
    tables: int
    replans: bool
    branch: str = MAIN
    confirms: bool = False
    created: int = 0
    versions: int = 1
    actor: str | None = None
    keeps_rows: bool = False
    prepare: Callable[[Graph], object] | None = None
    then: "Writer | None" = None


def _insert_one(graph: Graph) -> object:
    return insert(graph, "eva")


def _insert_warm(graph: Graph) -> object:
    # As after an earlier write: it does not read the branch before it plans.
    opened = graph._manifest.open(MAIN)
    graph._manifest.remember(MAIN, opened.table, opened.contents)
    return insert(graph, "eva")


def _insert_two(graph: Graph) -> object:
    changes = {PERSON: upserts(person("eva")), KNOWS: upserts(knows("eva", "ada"))}
    return write(graph, changes, replans=True, actor="grace")


def _update(graph: Graph) -> object:
    return write(graph, {PERSON: upserts(person("ada", 37))})


def _delete(graph: Graph) -> object:
    return write(graph, {PERSON: deletes("bob"), KNOWS: deletes("ada-bob")})


def _index(graph: Graph) -> object:
    return graph.ensure_indices()


def _insert_two_on_draft(graph: Graph) -> object:
    changes = {PERSON: upserts(person("eva")), KNOWS: upserts(knows("eva", "ada"))}
    return write(graph, changes, replans=True, branch=DRAFT)


def _merge(graph: Graph) -> object:
    changes = {PERSON: upserts(person("eva"), person("ada", 38)), KNOWS: deletes("ada-bob")}
    return write(graph, changes, kind=OperationKind.MERGE)


def _reshape(graph: Graph) -> object:
    return graph.schema.apply(RESHAPED)


def _reshape_draft(graph: Graph) -> object:
    return graph.schema.apply(RESHAPED, branch=DRAFT)


def _rename(graph: Graph) -> object:
    return graph.schema.apply(RENAMED)


def _wear(graph: Graph) -> None:
    """Give two tables small fragments, a deleted row, and indexes that cover only some of them."""
    graph.settings.set("maintenance.optimize", "off")
    graph.ensure_indices()
    insert(graph, "cid")
    write(graph, {PERSON: upserts(person("dan")), KNOWS: upserts(knows("dan", "ada"))})
    write(graph, {PERSON: deletes("cid")})


def _wear_words(graph: Graph) -> None:
    """Give a table small fragments, of which an index of texts covers one: it is narrowed first."""
    graph.settings.set("maintenance.optimize", "off")
    graph.schema.apply(SCHEMA.replace("@key  age", "@key @index  age"))
    graph.ensure_indices()
    insert(graph, "cid")


def _optimize(graph: Graph) -> object:
    return graph.optimize()


def _describe(graph: Graph) -> None:
    """Give people vectors of their names, which wait to be made."""
    embedded = SCHEMA.replace(
        "@key  age", '@key  meaning: Vector(4) @embed("name", model="mock")  age'
    )
    assert embedded != SCHEMA
    graph.schema.apply(embedded)


class _LandedError(Exception):
    """Ends a run of `embed` after its commit."""


def _embed(graph: Graph) -> None:
    """The commit of a run, which would then look for more, in a transaction without effect."""

    def end(stage: str, done: int, total: int | None) -> NoReturn:  # noqa: ARG001
        raise _LandedError

    with suppress(_LandedError):
        graph.embeddings.run(progress=end)


def _wear_until_a_fold_is_due(graph: Graph) -> None:
    """One more insert is followed by a fold."""
    graph.settings.set("maintenance.optimize", "off")
    for number in range(FOLD_FRAGMENTS_MIN - 2):
        insert(graph, f"p{number:02}")
    graph.settings.set("maintenance.optimize", "auto")


_FOLD: Final = Writer(_optimize, tables=1, replans=False, actor=MAINTENANCE_ACTOR, keeps_rows=True)

WRITERS: Final[Mapping[str, Writer]] = {
    "insert one": Writer(_insert_one, tables=1, replans=True),
    "insert by a warm handle": Writer(_insert_warm, tables=1, replans=True),
    "insert two": Writer(_insert_two, tables=2, replans=True, actor="grace"),
    "update": Writer(_update, tables=1, replans=False),
    "delete": Writer(_delete, tables=2, replans=False),
    "index": Writer(_index, tables=3, replans=True, keeps_rows=True),
    "optimize": Writer(
        _optimize, tables=2, replans=True, versions=2, keeps_rows=True, prepare=_wear
    ),
    "optimize words": Writer(
        _optimize, tables=1, replans=True, versions=3, keeps_rows=True, prepare=_wear_words
    ),
    "insert and fold": Writer(
        _insert_one, tables=1, replans=True, prepare=_wear_until_a_fold_is_due, then=_FOLD
    ),
    "embed": Writer(_embed, tables=1, replans=True, prepare=_describe),
    "first of a branch": Writer(_insert_two_on_draft, tables=2, replans=True, branch=DRAFT),
    "merge": Writer(_merge, tables=2, replans=False, confirms=True),
    "schema": Writer(_reshape, tables=2, replans=True, confirms=True, created=1),
    "schema of a branch": Writer(
        _reshape_draft, tables=2, replans=True, branch=DRAFT, confirms=True, created=1
    ),
    "schema without heads": Writer(_rename, tables=0, replans=True, confirms=True, created=1),
}

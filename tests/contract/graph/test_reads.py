"""Every method that reads returns the same values of the same types by both ways."""

import dataclasses
from collections.abc import Callable, Mapping
from datetime import date, timedelta
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest

from omnigraph import AlgorithmResult, GraphDiff, QueryResult, RowChange
from omnigraph.changes.rows import Changes
from tests.contract.graph.conftest import SCHEMA, Pair

ALL: Final = (
    "query all() { match { $p: Person } "
    "return { $p.name, $p.age, $p.score, $p.born, $p.seen, $p.picture, $p.tags } "
    "order { $p.name } }"
)
BY_BIRTH: Final = (
    "query born($on: Date, $seen: DateTime?, $blob: Blob?, $few: [I64]?, $f: F64?) "
    "{ match { $p: Person {born: $on} } return { $p.name } }"
)

CASES: Final[dict[str, Callable[[Any], object]]] = {
    "query": lambda g: g.query(ALL),
    "query without rows": lambda g: g.query(BY_BIRTH, {"on": date(1900, 1, 1)}),
    "query with typed parameters": lambda g: g.query(
        BY_BIRTH,
        {
            "on": date(1815, 12, 10),
            "seen": None,
            "blob": b"\x00\xff",
            "few": (1, 2**60),
            "f": float("nan"),
        },
    ),
    "query at a tag": lambda g: g.query(ALL, commit="v1"),
    "query at a version": lambda g: g.query(ALL, version=2),
    "query by name": lambda g: g.query(
        ALL + " query two() { match { $p: Person } return { count(*) } }", name="two"
    ),
    "query within limits": lambda g: g.query(ALL, timeout=timedelta(seconds=30), max_rows=100),
    "explain": lambda g: g.explain(ALL),
    "snapshot": lambda g: g.snapshot(),
    "snapshot of a branch": lambda g: g.snapshot(branch="draft"),
    "snapshot at a tag": lambda g: g.snapshot(commit="v1"),
    "point": lambda g: g.point("draft"),
    "target": lambda g: g.target,
    "target of a branch": lambda g: g.at(branch="draft").target,
    "target of a tag": lambda g: g.at(commit="v1").target,
    "query of the past": lambda g: g.at(commit="v1").query(ALL),
    "entity of the past": lambda g: g.at(commit="v1").entity("Person", "Nan"),
    "commits of the past": lambda g: g.at(commit="v1").commits.list(),
    "read_only of the past": lambda g: g.at(commit="v1").read_only,
    "baseline": lambda g: g.baseline(branch="draft"),
    "branches": lambda g: g.branches.list(),
    "commits": lambda g: g.commits.list(),
    "two commits": lambda g: g.commits.list(branch="draft", limit=2),
    "every commit": lambda g: g.commits.every(),
    "commit": lambda g: g.commits.show("v1"),
    "changes of a commit": lambda g: g.commits.changes(g.commits.list()[0].commit_id),
    "expired commits": lambda g: g.commits.let_go(g.commits.list()),
    "diff": lambda g: g.diff("v1", "main"),
    "diff of one type": lambda g: g.diff("v1", "draft", types="Badge", ops=["insert"]),
    "diff of nothing": lambda g: g.diff("main", "main"),
    "changes": lambda g: g.changes(),
    "changes after": lambda g: g.changes(after="v1", limit=2, kinds="node"),
    "entity": lambda g: g.entity("Person", "Ada"),
    "entity with text": lambda g: g.entity("Person", 'Çelik, "Z"\n'),
    "no entity": lambda g: g.entity("Person", "nobody"),
    "schema": lambda g: g.schema.show(),
    "schema of the past": lambda g: g.schema.show(commit="v1"),
    "schema plan": lambda g: g.schema.plan(SCHEMA + "node New { a: String }"),
    "schema diff": lambda g: g.schema.diff("v1", "main"),
    "schema history": lambda g: g.schema.history(),
    "tags": lambda g: g.tags.list(),
    "tag": lambda g: g.tags.show("v1"),
    "settings": lambda g: g.settings.list(),
    "setting": lambda g: g.settings.get("maintenance.keep_days"),
    "stored queries": lambda g: g.queries.list(),
    "stored query": lambda g: g.queries.show("people"),
    "run of a stored query": lambda g: g.queries.run("people", {"least": 1}),
    "recoveries": lambda g: g.recoveries.list(),
    "pending": lambda g: g.recoveries.pending(),
    "streams": lambda g: g.streams.list(),
    "embeddings": lambda g: g.embeddings.status(),
    "proposals": lambda g: g.proposals.list(state=None),
    "merge preview": lambda g: g.merge("rival", dry_run=True),
    "cleanup preview": lambda g: g.cleanup(keep_commits=1, dry_run=True),
    "purge preview": lambda g: g.schema.purge(dry_run=True),
    "repair preview": lambda g: g.repair(dry_run=True),
    "deletion preview": lambda g: g.branches.delete("draft", dry_run=True),
    "pagerank": lambda g: g.algorithms.pagerank(edges="Knows"),
    "components": lambda g: g.algorithms.components(),
    "shortest paths": lambda g: g.algorithms.shortest_paths({"Person": ["Ada"]}, max_hops=3),
    "triangles": lambda g: g.algorithms.triangles(),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_a_read_returns_the_same_by_both_ways(pair: Pair, case: Callable[[Any], object]) -> None:
    assert typed(case(pair.remote)) == typed(case(pair.embedded))


def test_indexes_are_listed_alike_but_for_their_age(pair: Pair) -> None:
    remote, embedded = (
        [dataclasses.replace(index, age=None) for index in graph.indexes.list()]
        for graph in (pair.remote, pair.embedded)
    )

    assert typed(remote) == typed(embedded)


def test_a_check_reports_the_same_but_for_the_place(pair: Pair) -> None:
    remote, embedded = (graph.check(history=True) for graph in (pair.remote, pair.embedded))

    assert typed(dataclasses.replace(remote, uri="")) == typed(
        dataclasses.replace(embedded, uri="")
    )


def test_results_of_queries_are_read_in_every_form(pair: Pair) -> None:
    remote, embedded = (g.query(ALL, commit="v1") for g in (pair.remote, pair.embedded))

    assert len(remote) == len(embedded) == 4
    assert _rows(pa.table(remote)) == _rows(pa.table(embedded))
    frames = remote.pandas(), embedded.pandas()
    assert frames[0].dtypes.equals(frames[1].dtypes)
    assert _rows(pa.Table.from_pandas(frames[0])) == _rows(pa.Table.from_pandas(frames[1]))
    assert repr(remote) == repr(embedded)


def test_many_changed_rows_are_fetched_when_they_are_read(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("omnigraph.documents.changes.SENT_ROWS_MAX", 0)
    diff = pair.remote.diff("v1", "main")

    assert all(table.rows is None for table in diff.tables)  # type: ignore[attr-defined]
    assert typed(diff) == typed(pair.embedded.diff("v1", "main"))


def typed(value: Any) -> Any:
    """A value with the types of all its parts, to be compared: a text is not a branch's name."""
    kind = type(value).__name__
    match value:
        case QueryResult():
            return kind, value.commit_id, value.engine, value.why, value.notes, _rows(value.arrow())
        case AlgorithmResult():
            return kind, _fields(dataclasses.replace(value, rows=None)), _rows(value.to_arrow())
        case GraphDiff():
            tables = [(table.type, table.counts, _chunks(value, table)) for table in value.tables]
            changed = [typed(change) for change in value.rows()]
            return kind, _fields(dataclasses.replace(value, tables=())), typed(tables), changed
        case RowChange():
            return (
                kind,
                value.type_name,
                value.op,
                value.id,
                typed(value.before),
                typed(value.after),
            )
        case Mapping():
            return kind, [(typed(name), typed(item)) for name, item in value.items()]
        case tuple() | list():
            return kind, [typed(item) for item in value]
        case frozenset():
            return kind, {typed(item) for item in value}
        case float():
            return kind, repr(value)
        case Path():
            return kind, str(value)
        case _ if dataclasses.is_dataclass(value):
            return kind, _fields(value)
        case _:
            return kind, value


def _fields(value: Any) -> list[Any]:
    return [typed(getattr(value, field.name)) for field in dataclasses.fields(value)]


def _rows(table: pa.Table) -> Any:
    return table.schema, typed(table.to_pylist())


def _chunks(diff: GraphDiff, table: Changes) -> list[Any]:
    """The rows of each kind of change; one without rows need not be there."""
    sides = [
        (chunk.op, side)
        for chunk in table.chunks(diff.ops)
        for side in (chunk.before, chunk.after)
        if side is not None and side.num_rows
    ]
    return [(op, _rows(side)) for op, side in sides]

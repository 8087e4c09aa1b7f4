"""Storage that fails at each read in turn: only errors of ours escape."""

from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest

import omnigraph
from omnigraph.errors import ErrorCode, InternalError, OmnigraphError, OutcomeUnknownError
from omnigraph.graph import Graph
from tests.support.crashes import copied
from tests.support.failing_reads import PLANTED, Reads, count_reads

SCHEMA: Final = """
node Person { name: String @key  age: I32?  score: U32?  face: Vector(2)? }
edge Knows: Person -> Person
"""
ADD: Final = """
query add($name: String) { insert Person { name: $name  age: 1  score: 1  face: [0.5, 1.0] } }
"""
ALL: Final = "query all() { match { $p: Person } return { $p.name, $p.age } }"
SCORED: Final = "query scored() { match { $p: Person  $p.score > 0 } return { $p.name } }"
FRIENDS: Final = """
query friends() { match { $p: Person  $p knows $q  $p.age < $q.age } return { $p.name, $q.name } }
"""
AGE: Final = 'query grow() { update Person set { age: 40 } where name = "ada" }'
LEAVE: Final = 'query leave() { delete Person where name = "ada" }'
ROWS: Final = {"Person": [{"name": "ada", "age": 41}], "Knows": [{"from": "bob", "to": "ada"}]}

Surface = Callable[[Graph, Path], Any]

READS: Final[Mapping[str, Surface]] = {
    "query": lambda graph, _: graph.query(ALL),
    "query filtered beside Lance": lambda graph, _: graph.query(SCORED),
    "query joined": lambda graph, _: graph.query(FRIENDS),
    "diff": lambda graph, _: list(graph.diff("main", "draft").rows()),
    "changes": lambda graph, _: [list(each.diff.rows()) for each in graph.changes().commits],
    "dry run of a merge": lambda graph, _: graph.merge("draft", dry_run=True),
    "entity": lambda graph, _: graph.entity("Person", "ada"),
    "export": lambda graph, place: graph.export(place / "out.jsonl", replace=True),
    "check": lambda graph, _: graph.check(rows=False),
    "commits": lambda graph, _: graph.commits.every(),
    "schema": lambda graph, _: graph.schema.show(),
}
WRITES: Final[Mapping[str, Surface]] = {
    "update": lambda graph, _: graph.mutate(AGE),
    "delete": lambda graph, _: graph.mutate(LEAVE),
    "load": lambda graph, _: graph.load(ROWS, mode="merge", index=False),
    "merge": lambda graph, _: graph.merge("draft"),
    "indexes": lambda graph, _: graph.ensure_indices(),
    "branch": lambda graph, _: graph.branches.create("review"),
    "cleanup": lambda graph, _: graph.cleanup(),
}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A graph with two branches that moved apart."""
    graph = omnigraph.init(tmp_path_factory.mktemp("base") / "graph.omni", SCHEMA)
    for name in ("ada", "bob"):
        graph.mutate(ADD, {"name": name})
    graph.mutate('query meet() { insert Knows { from: "ada"  to: "bob" } }')
    draft = graph.branches.create("draft")
    draft.mutate('query q() { update Person set { score: 7 } where name = "ada" }')
    graph.mutate('query q() { update Person set { age: 31 } where name = "bob" }')
    return graph.uri


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Reads:
    return count_reads(monkeypatch)


def failure_of(surface: Surface, uri: str, place: Path) -> OmnigraphError | None:
    """The error that escapes, if one does; any that is not ours fails the test."""
    try:
        surface(omnigraph.open(uri), place)
    except OmnigraphError as error:
        return error
    return None


def require_ours(error: OmnigraphError | None, reads: Reads) -> None:
    where = f"read {reads.nth}, {reads.failed}"
    assert not isinstance(error, InternalError), f"{where}: {error!r}"
    if error is not None and error.code is ErrorCode.STORAGE:
        assert PLANTED in error.message, f"{where}: {error!r}"


@pytest.mark.parametrize("surface", READS.values(), ids=READS.keys())
def test_a_read_that_fails_is_a_failure_of_storage_wherever_it_is_made(
    base: str, reads: Reads, surface: Surface, tmp_path: Path
) -> None:
    failures = 0
    for nth in count(1):
        with reads.failing(nth):
            error = failure_of(surface, base, tmp_path)
            require_ours(error, reads)
        failures += error is not None
        if reads.seen < nth:
            break
    assert failures > 3, "a surface reads more than that"


@pytest.mark.parametrize("surface", WRITES.values(), ids=WRITES.keys())
def test_a_write_whose_read_fails_changes_nothing_or_says_that_it_is_not_known(
    base: str, reads: Reads, surface: Surface, tmp_path: Path
) -> None:
    failures = 0
    for nth in count(1):
        uri = copied(base, tmp_path / f"{nth}.omni")
        before = omnigraph.open(base).snapshot().head.commit_id
        with reads.failing(nth):
            error = failure_of(surface, uri, tmp_path)
            require_ours(error, reads)
        failures += error is not None
        if error is not None and not isinstance(error, OutcomeUnknownError):
            where = f"read {nth}, {reads.failed}: {error!r}"
            assert omnigraph.open(uri).snapshot().head.commit_id == before, where
        if reads.seen < nth:
            break
    assert failures > 3, "a surface reads more than that"

"""Every writer gives the rows that it writes a row version above the version that it started from.

Diffs and merges rely on it across compactions (docs/decisions/0013): a row with a lower one counts
as the same row, and what was written to it would be lost.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from omnigraph.failpoints import Failpoint, SimulatedCrash, arm
from omnigraph.graph import Graph
from omnigraph.graph import open as open_graph
from omnigraph.model.names import MAIN
from omnigraph.storage.tables import ROW_ID, ROW_VERSION, Table
from tests.support.compaction import compact
from tests.support.graphs import graph_with

SCHEMA: Final = """
node P { name: String @key  a: I32?  b: I32? }
edge K: P -> P { w: I32? }
"""
WIDER: Final = """
node P {
  name: String @key  a: I64?  c: I32? @rename_from("b")  kind: String @default("old")  d: I32?
}
edge K: P -> P { w: I32? }
"""
FILLED: Final = WIDER.replace("d: I32?", "d: I64?  e: I64")


def stored_rows(table: Table) -> dict[int, tuple[int, dict[int, Any]]]:
    """By row id, the row version, and the values by the numbers of their columns."""
    numbers = {each.name(): each.id() for each in table.handle.lance_schema.fields()}
    rows = table.read([*numbers, ROW_ID, ROW_VERSION]).to_pylist()
    return {
        row[ROW_ID]: (row[ROW_VERSION], {numbers[name]: row[name] for name in numbers})
        for row in rows
    }


def require_raised(before: Table, after: Table) -> None:
    """A row that has another value than before, under any number, was written since."""
    old, new = stored_rows(before), stored_rows(after)
    for row_id, (version, values) in new.items():
        _, earlier = old.get(row_id, (0, None))
        is_same = earlier is not None and all(
            earlier.get(number) == value for number, value in values.items()
        )
        assert version <= after.version
        assert is_same or version > before.version, (row_id, values, earlier)


@dataclass
class Watch:
    """A graph whose branches are compared before and after each step."""

    graph: Graph
    steps: list[str] = field(default_factory=list)

    def tables(self, branch: str) -> dict[str, Table]:
        pins = self.graph.snapshot(branch=branch).pins.values()
        return {pin.location: self.graph._store.tables.open_pin(pin) for pin in pins}

    def do(self, name: str, action: Callable[[], object], *, branch: str = MAIN) -> None:
        """Take a step, which has to move a table of the branch."""
        before = self.tables(branch)
        action()
        self.steps.append(name)
        after = self.tables(branch)
        moved = [place for place in before if before[place].address != after[place].address]
        assert moved, name
        for place in moved:
            require_raised(before[place], after[place])

    def mutate(self, text: str, *, branch: str = MAIN) -> None:
        self.do(
            text,
            lambda: self.graph.at(branch=branch).mutate(f"query q() {{ {text} }}"),
            branch=branch,
        )

    def load(self, rows: Mapping[str, Any], mode: str, *, engine: str, branch: str = MAIN) -> None:
        def action() -> object:
            return self.graph.at(branch=branch).load(rows, mode=mode, engine=engine)

        self.do(f"load {mode}", action, branch=branch)

    def merge(self, source: str, into: str, *, engine: str, **how: Any) -> None:
        def action() -> object:
            return self.graph.merge(source, into=into, engine=engine, **how)

        self.do(f"merge {source}", action, branch=into)


@pytest.fixture
def watch(tmp_path: Path) -> Watch:
    people = [{"id": name, "name": name, "a": 1} for name in "abcdefgh"]
    edges = [{"id": "ab", "src": "a", "dst": "b"}]
    return Watch(graph_with(tmp_path / "graph.omni", SCHEMA, {"P": people, "K": edges}))


def person(name: str, a: int) -> dict[str, Any]:
    return {"name": name, "a": a}


def write_everything(watch: Watch, engine: str) -> None:
    """All kinds of writes, on main and on a branch, with compactions in between."""
    graph = watch.graph
    watch.mutate('insert P { name: "i", a: 2 }')
    watch.mutate('update P set { a: 3 } where name = "b"')
    watch.mutate('delete P where name = "c"')
    watch.do("compact", lambda: compact(graph))
    graph.branches.create("draft")
    for branch in (MAIN, "draft"):
        value = 10 if branch == MAIN else 20
        watch.mutate(f'update P set {{ a: {value} }} where name = "d"', branch=branch)
        # Of the loads on Spark, those on the branch are enough.
        own = "local" if branch == MAIN else engine
        watch.load({"P": [person("j" + branch, 5)]}, "append", engine=own, branch=branch)
        merged = {"P": [person("e", value), person("k", value)]}
        watch.load(merged, "merge", engine=own, branch=branch)
        watch.do("compact", partial(compact, graph, branch=branch), branch=branch)
        watch.mutate(f'update P set {{ b: {value} }} where name = "f"', branch=branch)
    watch.merge("draft", MAIN, engine=engine, resolve="theirs")
    watch.merge(MAIN, "draft", engine=engine)
    watch.do("index", graph.ensure_indices)
    rows = {"P": [person(name, 7) for name in "abxy"], "K": [{"from": "a", "to": "b"}]}
    watch.load(rows, "overwrite", engine=engine)


def test_writes_in_this_process(watch: Watch) -> None:
    write_everything(watch, "local")
    change_schemas(watch, "local")


def test_writes_on_spark(watch: Watch, spark: object) -> None:
    del spark
    write_everything(watch, "spark")
    change_schemas(watch, "spark")


def change_schemas(watch: Watch, engine: str) -> None:
    """Columns that are renamed, converted, added with values and without, filled and merged."""
    graph = watch.graph
    graph.branches.create("other")
    watch.mutate('update P set { a: 70 } where name = "x"', branch="other")

    def apply(schema: str, **how: Any) -> Callable[[], object]:
        return lambda: graph.schema.apply(schema, engine=engine, **how)

    watch.do("reshape", apply(WIDER))
    watch.do("compact", lambda: compact(graph))
    watch.do("fill", apply(FILLED, fill="P.e=a + 1"))
    watch.mutate('update P set { d: 5 } where name = "y"')
    # The target gets the columns and the rows of the source in one transaction.
    watch.merge(MAIN, "other", engine=engine)
    watch.do("compact", lambda: compact(graph, branch="other"), branch="other")


def test_a_writer_that_was_undone(watch: Watch) -> None:
    graph = watch.graph

    def crash() -> None:
        with pytest.raises(SimulatedCrash), arm(Failpoint.APPLY_AFTER_COMMIT):
            graph.mutate('query q() { update P set { a: 9 } where name = "a" }')
        watch.graph = open_graph(graph.uri)

    watch.do("undo", crash)
    watch.mutate('update P set { a: 8 } where name = "a"')


def test_a_row_version_that_is_too_low_is_noticed(watch: Watch) -> None:
    graph = watch.graph
    before = watch.tables(MAIN)
    watch.mutate('update P set { a: 3 } where name = "b"')
    compact(graph, row_version=1)
    after = watch.tables(MAIN)
    (people,) = (place for place in before if place.startswith("nodes/"))
    with pytest.raises(AssertionError):
        require_raised(before[people], after[people])

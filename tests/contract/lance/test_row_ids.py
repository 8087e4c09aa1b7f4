"""Row ids are the identity of a row: what changes a row, or moves it, keeps its row id."""

from pathlib import Path

import omnigraph
from omnigraph.choices import TableKind
from omnigraph.engine.snapshots import data_at
from omnigraph.graph import Graph
from omnigraph.model.names import TypeName
from omnigraph.model.tables import TableKey
from omnigraph.storage.tables import ROW_ID

SCHEMA = "node Person { name: String @key  age: I32? }\n"
PERSON = TableKey(TableKind.NODE, TypeName("Person"))


def by_name(graph: Graph) -> dict[str, int]:
    rows = data_at(graph._store, graph.snapshot()).table(PERSON).read(["id", ROW_ID])
    return dict(zip(rows["id"].to_pylist(), rows[ROW_ID].to_pylist(), strict=True))


def test_writes_keep_row_ids_and_give_no_row_id_twice(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "graph.omni", SCHEMA)
    graph.settings.set("maintenance.optimize", "off")
    for first in (0, 10):
        people = [{"name": f"p{number}"} for number in range(first, first + 10)]
        graph.load({"Person": people}, index=False)
    before = by_name(graph)
    graph.mutate('query q() { update Person set { age: 3 } where name = "p4" }')
    assert by_name(graph) == before
    rows = [{"name": name, "age": 5} for name in ("p1", "p12", "new")]
    graph.load({"Person": rows}, mode="merge", index=False)
    after = by_name(graph)
    new = after.pop("new")
    assert after == before
    assert new not in before.values()
    graph.branches.create("draft")
    draft = graph.at(branch="draft")
    draft.mutate('query q() { update Person set { age: 9 } where name = "p7" }')
    draft.mutate('query q() { insert Person { name: "newer" } }')
    graph.mutate('query q() { delete Person where name = "p3" }')
    graph.merge("draft")
    graph.optimize()
    merged = by_name(graph)
    assert merged.pop("new") == new
    assert merged.pop("newer") > new
    assert merged == {name: row_id for name, row_id in before.items() if name != "p3"}
    graph.mutate('query q() { insert Person { name: "p3" } }')
    assert by_name(graph)["p3"] > before["p3"], "a row that is inserted again is another one"
    graph.schema.apply(SCHEMA.replace("age: I32?", "age: I64?  note: String?"))
    assert {name: by_name(graph)[name] for name in merged} == merged

"""What a schema change keeps: the ids of rows, and the indexes of columns that stay."""

from pathlib import Path

from omnigraph.graph import Graph
from omnigraph.model.names import MAIN
from omnigraph.model.tables import TableKey
from tests.support.crashes import picture
from tests.support.publishing import KNOWS, PERSON
from tests.support.writers import RESHAPED, furnished

HUMAN = TableKey.parse("node:Human")


def row_ids(graph: Graph, key: TableKey) -> dict[str, int]:
    table = graph._store.tables.open_pin(graph.snapshot().pin(key))
    return {row["id"]: row["_rowid"] for row in table.read(["id", "_rowid"]).to_pylist()}


def test_rows_keep_their_ids_and_columns_their_indexes(tmp_path: Path) -> None:
    graph = furnished(str(tmp_path / "graph.omni"))
    graph.ensure_indices()
    people, edges = row_ids(graph, PERSON), row_ids(graph, KNOWS)
    assert len(people) == 2

    graph.schema.apply(RESHAPED)

    assert row_ids(graph, HUMAN) == people
    assert row_ids(graph, KNOWS) == edges
    indexed = picture(graph.uri).indexed
    assert indexed[MAIN, str(HUMAN)] == {"id", "name"}
    assert indexed[MAIN, str(KNOWS)] == {"id", "src", "dst"}
    assert graph.query(
        'query q() { match { $p: Human {name: "ada"} $p knows $q } return { $p.years, $q.name } }'
    ).rows() == [{"p.years": 36, "q.name": "bob"}]

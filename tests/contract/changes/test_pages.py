"""Pages of diffs: rows by position, comparisons that are kept, and what they cost."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.changes.diffs import GraphDiff
from omnigraph.changes.kept import KeptComparisons
from omnigraph.changes.records import TableChanges
from omnigraph.changes.rows import Changes, Chunk
from omnigraph.errors import InvalidParameterError, NotAllowedError

SCHEMA = """
node City { name: String @key  people: I64? }
node Photo { name: String @key  data: Blob?  place: Vector(2)? }
"""


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    graph = omnigraph.init(tmp_path_factory.mktemp("pages") / "world.omni", SCHEMA)
    cities = [{"name": f"c{index:02}", "people": index} for index in range(20)]
    photos = [
        {"name": f"p{index}", "data": b"x" * index, "place": [index, 1]} for index in range(6)
    ]
    graph.load({"City": cities, "Photo": photos}, index=False)
    draft = graph.branches.create("draft")
    draft.mutate("query q() { update City set { people: 0 } where people < 7 }")
    draft.mutate("query q() { delete City where people > 17 }")
    draft.mutate('query q() { insert City { name: "new" } }')
    draft.mutate('query q() { update Photo set { place: [0.5, 0.5] } where name != "p0" }')
    return graph


def changed(diff: GraphDiff) -> list[object]:
    return [(row.type_name, row.op, row.id, row.before, row.after) for row in diff.rows()]


def test_pages_together_are_the_diff(graph: Graph) -> None:
    diff = graph.diff("main", "draft")
    every = changed(diff)
    assert len(every) == 6 + 2 + 1 + 5
    for limit in (1, 3, 100):
        pages = [changed(diff.page(offset, limit)) for offset in range(0, 20, limit)]
        assert [row for page in pages for row in page] == every
    assert diff.page(0, 0).tables == diff.page(100, 5).tables == ()
    some = graph.diff("main", "draft", ops=["delete", "insert"])
    assert changed(some.page(1, 2)) == changed(some)[1:3]
    assert some.page(1, 2).counts["City"].deleted == 2
    with pytest.raises(InvalidParameterError):
        diff.page(-1, 1)


class Streamed:
    """Changes whose rows come one after another, as those of Spark do."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes
        self.type, self.counts = changes.type, changes.counts

    def chunks(self, ops: object) -> Iterator[Chunk]:
        return self._changes.chunks(ops)  # type: ignore[arg-type]


def test_rows_without_positions_have_the_same_pages(graph: Graph) -> None:
    diff = graph.diff("main", "draft")
    streamed = GraphDiff(diff.before, diff.after, tuple(Streamed(each) for each in diff.tables))
    for offset in range(0, 15, 4):
        assert changed(streamed.page(offset, 4)) == changed(diff.page(offset, 4))


def test_a_page_reads_the_wide_values_of_its_rows_alone(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    diff = graph.diff("main", "draft", types="Photo")
    completed: list[int] = []
    chunks = TableChanges.chunks

    def count(changes: TableChanges, ops: object) -> Iterator[Chunk]:
        completed.append(changes.after.num_rows)
        return chunks(changes, ops)  # type: ignore[arg-type]

    monkeypatch.setattr(TableChanges, "chunks", count)
    [row] = diff.page(2, 1).rows()
    assert (row.after or {})["data"] == b"xxx"
    assert completed == [1]


def test_kept_comparisons_are_bounded_and_keep_the_newest(graph: Graph) -> None:
    handle = graph.acting_as(None)
    handle.keep_comparisons()
    first = handle.diff("main", "draft", types="City").tables[0]
    assert handle.diff("main", "draft", types="City").tables[0] is first
    assert handle.at(branch="draft").diff("main", "draft", types="City").tables[0] is first
    assert graph.diff("main", "draft", types="City").tables[0] is not first

    tiny = handle._comparisons = KeptComparisons(byte_count_max=1)
    city = handle.diff("main", "draft", types="City").tables[0]
    assert handle.diff("main", "draft", types="City").tables[0] is city
    assert tiny.byte_count > 1
    handle.diff("main", "draft", types="Photo")
    assert handle.diff("main", "draft", types="City").tables[0] is not city


def test_what_one_actor_compared_is_kept_from_others(graph: Graph, tmp_path: Path) -> None:
    rules = tmp_path / "rules.cedar"
    rules.write_text(
        "permit(principal, action, resource);"
        'forbid(principal == Actor::"eve", action, resource)'
        ' when { resource is Type && resource.name == "City" };'
    )
    ada = omnigraph.open(graph.uri, actor="ada", policy=rules)
    ada.keep_comparisons()
    assert ada.diff("main", "draft", types="City").counts["City"].inserted == 1
    with pytest.raises(NotAllowedError):
        ada.acting_as("eve").diff("main", "draft", types="City")

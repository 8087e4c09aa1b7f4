"""What a graph costs that is written one row at a time, for long: no shape of writes makes it grow.

Nobody calls maintenance here. Bytes are counted as Lance writes them, with those of folds.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import omnigraph
from omnigraph.graph import Graph
from omnigraph.limits import INDEX_SEGMENTS_MAX
from omnigraph.maintenance import automatic, groups
from omnigraph.storage.tables import Table

SCHEMA = """
node Person { name: String @key  age: I64? }
node City { name: String @key }
node Doc { name: String @key  meaning: Vector(256)?  scan: Blob? }
edge Knows: Person -> Person
"""
TYPES = "".join(f"node T{number} {{ name: String @key }}\n" for number in range(20))
PERSON = "query q($n: String) { insert Person { name: $n, age: 1 } }"
DROP = "query q($n: String) { delete Person where name = $n }"
AGE = "query q($n: String, $a: I64) { update Person set { age: $a } where name = $n }"
KNOW = "query q($a: String, $b: String) { insert Knows { from: $a, to: $b } }"
DOC = """query q($n: String, $m: Vector(256), $s: Blob) {
    insert Doc { name: $n, meaning: $m, scan: $s }
}"""
FIND = "query q($n: String) { match { $p: Person {name: $n} } return { $p.age } }"

LOADED = 3_000
"""People who are there before others are updated."""

SHALLOW, DEEP = 300, 5_000
WINDOW = 128
"""Commits whose cost is compared: four folds, or somewhat more with those of larger fragments."""

FRAGMENTS_MAX = 96
VERSION_BYTES_MAX = 24_000
"""What a table's list of fragments may take, which every commit writes again."""

VALUES_MAX = 40_000
"""Values that a handle keeps in memory for lookups, of all columns."""


@dataclass(frozen=True, slots=True)
class Shape:
    """How a graph is written: the write of a number, and what is there before.

    Attributes:
        bytes_max: What a commit writes on average, with its folds.
    """

    write: Callable[[Graph, int], object]
    bytes_max: int
    prepare: Callable[[Graph], Graph] = lambda graph: graph
    schema: str = SCHEMA


def load(graph: Graph) -> Graph:
    names = [f"n{number}" for number in range(LOADED)]
    graph.load({"Person": pa.table({"name": names, "age": [1] * LOADED})}, engine="local")
    return graph


def branched(graph: Graph) -> Graph:
    for number in range(3):
        graph.mutate(PERSON, {"n": f"old{number}"})
    graph.branches.create("draft")
    return graph.at(branch="draft")


def churn(graph: Graph, number: int) -> None:
    if number % 2:
        graph.mutate(DROP, {"n": f"p{number - 1}"})
    else:
        graph.mutate(PERSON, {"n": f"p{number}"})


def alternate(graph: Graph, number: int) -> None:
    if number % 2:
        graph.mutate(KNOW, {"a": f"p{number - 1}", "b": f"p{max(0, number - 3)}"})
    else:
        graph.mutate(PERSON, {"n": f"p{number}"})


def write_wide(graph: Graph, number: int) -> None:
    draw = np.random.default_rng(number)
    given = {"n": f"d{number}", "m": draw.random(256).tolist(), "s": draw.bytes(4_000)}
    graph.mutate(DOC, given)


def of_two_handles() -> Callable[[Graph, int], object]:
    """Two who write in turn, each on what the other has left."""
    others: dict[str, Graph] = {}

    def write(graph: Graph, number: int) -> object:
        other = others.setdefault(graph.uri, omnigraph.open(graph.uri))
        return (other if number % 2 else graph).mutate(PERSON, {"n": f"p{number}"})

    return write


SHAPES = {
    "inserts": Shape(lambda graph, number: graph.mutate(PERSON, {"n": f"p{number}"}), 17_000),
    "updates of one row": Shape(
        lambda graph, number: graph.mutate(AGE, {"n": "n7", "a": number}), 17_000, load
    ),
    "updates of any row": Shape(
        lambda graph, number: graph.mutate(
            AGE, {"n": f"n{number * 7919 % LOADED}", "a": -1 - number}
        ),
        26_000,
        load,
    ),
    "inserts and deletes": Shape(churn, 15_000),
    "nodes and edges": Shape(alternate, 18_000),
    "twenty types": Shape(
        lambda graph, number: graph.mutate(
            f"query q($n: String) {{ insert T{number % 20} {{ name: $n }} }}", {"n": f"p{number}"}
        ),
        20_000,
        schema=TYPES,
    ),
    "a branch": Shape(
        lambda graph, number: graph.mutate(PERSON, {"n": f"p{number}"}), 18_000, branched
    ),
    "vectors and blobs": Shape(write_wide, 40_000),
    "two handles": Shape(of_two_handles(), 17_000),
}
GATED = ("updates of any row", "nodes and edges")


def runs() -> Iterator[object]:
    for name in SHAPES:
        yield pytest.param(name, DEEP, marks=pytest.mark.soak, id=f"{name}, {DEEP}")
        if name in GATED:
            yield pytest.param(name, SHALLOW, id=f"{name}, {SHALLOW}")


def tables(graph: Graph) -> list[Table]:
    return [graph._store.tables.open_pin(pin) for pin in graph.snapshot().pins.values()]


def version_bytes(graph: Graph, table: Table) -> int:
    """The size of the file that lists a version's fragments."""
    folder = Path(graph.uri, table.address.folder, "_versions")
    return (folder / f"{(1 << 64) - 1 - table.version:020}.manifest").stat().st_size


def count_values(graph: Graph) -> int:
    shelves = graph._store.tables.values._shelves.values()
    return sum(shelf.row_count for shelf in shelves)


@pytest.mark.parametrize(("name", "depth"), list(runs()))
@pytest.mark.timeout(1800)
def test_no_shape_of_writes_makes_a_graph_grow(tmp_path: Path, name: str, depth: int) -> None:
    shape = SHAPES[name]
    made = omnigraph.init(tmp_path / "graph", shape.schema)
    graph = shape.prepare(made)
    meter = graph._store.meter
    written: list[int] = []
    most_fragments = most_bytes = 0
    for number in range(depth):
        meter.take()
        shape.write(graph, number)
        written.append(meter.take().bytes_written)
        if number % 31 == 0:
            own = tables(graph)
            most_fragments = max(most_fragments, *(table.count_fragments() for table in own))
            most_bytes = max(most_bytes, *(version_bytes(graph, table) for table in own))

    early, late = written[10 : 10 + WINDOW], written[-WINDOW:]
    share = 2 if name == "two handles" else 1
    assert sum(late) / WINDOW <= shape.bytes_max
    assert sum(late) <= sum(early) * (1.3 if depth == SHALLOW else 1.5) * share
    assert most_fragments <= FRAGMENTS_MAX
    assert most_bytes <= VERSION_BYTES_MAX
    assert count_values(graph) <= VALUES_MAX
    assert min(written) >= 1_000 or share == 2, "the meter counts"


def test_folds_keep_the_segments_of_an_index_few(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Folds of four rows that are not folded again, and indexed at once.
    monkeypatch.setattr(groups, "FOLD_FRAGMENTS_MIN", 4)
    monkeypatch.setattr(groups, "FOLD_TIER_FACTOR", 4)
    monkeypatch.setattr(groups, "FOLD_SIZE_MAX", 4)
    monkeypatch.setattr(automatic, "_FIRST", replace(automatic._FIRST, fragment_count=4))
    monkeypatch.setattr(automatic, "_FOLD", replace(automatic._FOLD, indexed_rows_min=4))
    graph = omnigraph.init(tmp_path / "graph", SCHEMA)
    most = 0
    for number in range(80):
        graph.mutate(PERSON, {"n": f"p{number}"})
        own = [index for index in graph.indexes.list() if index.type_name == "Person"]
        most = max(most, *(index.segments for index in own))

    assert INDEX_SEGMENTS_MAX // 2 < most <= INDEX_SEGMENTS_MAX
    found = [graph.query(FIND, {"n": f"p{number}"}).rows() for number in range(80)]
    assert found == [[{"p.age": 1}]] * 80
    assert not graph.check(history=True).findings

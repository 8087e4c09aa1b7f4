"""People who are written one row and one commit at a time: into our graph, and into bare Lance."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, pairwise
from pathlib import Path
from typing import Any, Final

import lance
import pyarrow as pa
from lance import LanceDataset, LanceOperation
from lance.fragment import write_fragments

from benchmarks.rounds import Answer, timed
from omnigraph import graph
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.parser import parse_schema

SCHEMA: Final = """\
node Person { name: String @key  age: I64 }
edge Knows: Person -> Person
"""
COLUMNS: Final = table_schema(parse_schema(SCHEMA).type_named("Person"))

INSERT: Final = "query add($n: String) { insert Person { name: $n, age: 1 } }"
KNOW: Final = "query know($a: String, $b: String) { insert Knows { from: $a, to: $b } }"
UPDATE: Final = "query age($n: String) { update Person set { age: 2 } where name = $n }"
DELETE: Final = "query drop($n: String) { delete Person where name = $n }"
COUNT: Final = "query all() { match { $p: Person } return { count($p) as people } }"

STATEMENTS_PER_QUERY: Final = 50


def fresh_names() -> Iterator[str]:
    """Names that nobody has yet."""
    return (f"person {number}" for number in count())


@dataclass(slots=True)
class Writer:
    """Someone who inserts a person per call, each in a commit, and can count them afterwards."""

    insert: Callable[[str], Answer]
    count: Callable[[], int]
    names: Iterator[str]
    inserted: int = 0

    def __call__(self) -> Answer:
        self.inserted += 1
        return self.insert(next(self.names))


class Bare:
    """A Lance dataset with the columns of our table and nothing around it, on an open handle."""

    def __init__(self, dataset: LanceDataset) -> None:
        self.dataset = dataset

    @classmethod
    def create(cls, place: Path) -> "Bare":
        return cls(lance.write_dataset(COLUMNS.empty_table(), place, mode="create"))

    @classmethod
    def open(cls, place: Path) -> "Bare":
        return cls(lance.dataset(place))

    def append(self, name: str) -> None:
        """What one calls who has a row."""
        self.dataset = lance.write_dataset(_row(name), self.dataset, mode="append")

    def commit(self, name: str) -> None:
        """What one calls who has reasons to write files and to commit them in two steps."""
        fragments = write_fragments(_row(name), self.dataset, mode="append")
        self.dataset = LanceDataset.commit(
            self.dataset, LanceOperation.Append(fragments), read_version=self.dataset.version
        )

    def writer(self, way: "Way", names: Iterator[str]) -> Writer:
        def count_rows() -> int:
            return int(self.dataset.count_rows())

        return Writer(lambda name: written(lambda: way(self, name)), count_rows, names)


Way = Callable[[Bare, str], None]
"""One of the ways to append the person of this name to bare Lance."""


def ours(made: graph.Graph, names: Iterator[str]) -> Writer:
    """A one-row mutation on this handle."""

    def count_rows() -> int:
        (row,) = made.query(COUNT).rows()
        return int(row["people"])

    return Writer(lambda name: written(lambda: made.mutate(INSERT, {"n": name})), count_rows, names)


def written(write: Callable[[], Any]) -> Answer:
    """The time of a write; there are no rows to compare."""
    return timed(write, lambda _: ())


def settle(made: graph.Graph, names: Sequence[str]) -> None:
    """People who are there before the clock starts, each knowing the next, under indexes."""
    for start in range(0, len(names), STATEMENTS_PER_QUERY):
        chunk = names[start : start + STATEMENTS_PER_QUERY + 1]
        people = [f'insert Person {{ name: "{each}", age: 1 }}' for each in chunk]
        edges = [f'insert Knows {{ from: "{a}", to: "{b}" }}' for a, b in pairwise(chunk)]
        made.mutate(f"query settle() {{ {' '.join([*people, *edges])} }}")
    made.ensure_indices()


def _row(name: str) -> pa.Table:
    return pa.table({"id": [name], "name": [name], "age": [1]}, schema=COLUMNS)

"""Inputs of loads: people, companies, who follows whom and works where, as files made once."""

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from omnigraph_demo.world import lines

FOLDER: Final = Path(__file__).parents[1] / "build" / "benchmarks"
"""Where git does not look; what lies there is made anew when it is missing."""

SCHEMA: Final = """\
node Person {
  name: String @key
  age: I64
  gender: enum(female, male)
  city: String
  joined: Date
  score: F64
  bio: String
  @range(age, 0..150)
}
node Company { name: String @key  founded: I32  motto: String }
edge Follows: Person -> Person { since: Date  note: String? }
edge Works: Person -> Company { title: String  since: Date  salary: F64 }
"""
NODES: Final = ("Person", "Company")
EDGES: Final = ("Follows", "Works")
TYPES: Final = (*NODES, *EDGES)

ROWS_PER_CHUNK: Final = 500_000
ROWS_PER_GROUP: Final = 1 << 17
PEOPLE_PER_COMPANY: Final = 49
ROWS_PER_NODE: Final = 5
"""Of five rows, one is a node and four are edges."""

_FIRST: Final = ("Ada", "Björk", "Chen", "Dilara", "Émile", "Fatima", "Grace", "Hiro", "Inés", "Jo")
_LAST: Final = ("Lovelace", "Núñez", "Okafor", "Papadakis", "Quist", "Rossi", "Sørensen", "Turing")
_CITIES: Final = tuple(f"{start}{end}" for start in _LAST for end in ("burg", " Falls", "ville"))
_WORDS: Final = ("gardens", "rivers", "graphs", "old maps", "tea", "café talk", "trains", "chess")
_TITLES: Final = ("Engineer", "Nurse", "Writer", "Baker", "Analyst", "Teacher", "Pilot", "Cook")

Rows = Mapping[str, pa.Table]


@dataclass(frozen=True, slots=True)
class Size:
    """How many rows an input has, over all types; of `rows_per_node`, one is a node."""

    rows: int
    rows_per_node: int = ROWS_PER_NODE

    @property
    def nodes(self) -> int:
        return max(20, self.rows // self.rows_per_node)

    @property
    def name(self) -> str:
        """What inputs of this size are called."""
        is_usual = self.rows_per_node == ROWS_PER_NODE
        return f"{self.rows}" if is_usual else f"{self.rows}-of-{self.rows_per_node}"

    @property
    def companies(self) -> int:
        return max(1, self.nodes // (PEOPLE_PER_COMPANY + 1))

    @property
    def people(self) -> int:
        return self.nodes - self.companies

    @property
    def follows(self) -> int:
        return self.rows - self.nodes - self.works

    @property
    def works(self) -> int:
        return (self.rows - self.nodes) // 4

    def count(self, type_name: str) -> int:
        return {
            "Person": self.people,
            "Company": self.companies,
            "Follows": self.follows,
            "Works": self.works,
        }[type_name]


def ndjson(size: Size, folder: Path = FOLDER) -> Path:
    """A directory of graph files with an envelope per line, types in turns."""

    def fill(place: Path) -> None:
        for number, rows in enumerate(chunks(size)):
            with (place / f"part-{number:04}.ndjson").open("wb") as file:
                for name, table in rows.items():
                    file.write(lines(name, table))

    return _made(folder / f"{size.name}-ndjson", fill)


def parquet(size: Size, folder: Path = FOLDER) -> Path:
    """A directory with a Parquet file per type."""

    def fill(place: Path) -> None:
        with ExitStack() as open_files:
            writers: dict[str, pq.ParquetWriter] = {}
            for rows in chunks(size):
                for name, table in rows.items():
                    if name not in writers:
                        writer = pq.ParquetWriter(place / f"{name}.parquet", table.schema)
                        writers[name] = open_files.enter_context(writer)
                    writers[name].write_table(table, row_group_size=ROWS_PER_GROUP)

    return _made(folder / f"{size.name}-parquet", fill)


def typed_schema(types: int) -> str:
    """A schema of so many types of nodes."""
    return "\n".join(
        f"node T{number} {{ name: String @key  age: I64  mail: String @unique }}"
        for number in range(types)
    )


def typed_lines(types: int, rows: int) -> Iterator[str]:
    """Lines of a graph file: so many rows of each type of `typed_schema`."""
    for number in range(types):
        for row in range(rows):
            data = {"name": f"n{row}", "age": row, "mail": f"n{row}@example.com"}
            yield json.dumps({"type": f"T{number}", "data": data}) + "\n"


def upsert(count: int, folder: Path = FOLDER) -> Path:
    """A directory with `base` and `changes`, a tenth of it: half of them people who are there."""

    def fill(place: Path) -> None:
        for name, numbers in (("base", np.arange(count)), ("changes", _changed(count))):
            (place / name).mkdir()
            with pq.ParquetWriter(
                place / name / "Person.parquet", people(numbers[:0]).schema
            ) as file:
                for start in range(0, len(numbers), ROWS_PER_CHUNK):
                    chunk = people(numbers[start : start + ROWS_PER_CHUNK], seed=start + len(name))
                    file.write_table(chunk, row_group_size=ROWS_PER_GROUP)

    return _made(folder / f"{count}-upsert", fill)


def _changed(people: int) -> np.ndarray:
    half = people // 20
    return np.concatenate([np.arange(half) * 20, people + np.arange(half)])


def chunks(size: Size) -> Iterator[Rows]:
    """The rows of every type, some of each at a time, the same for the same size."""
    count = max(1, -(-size.rows // ROWS_PER_CHUNK))
    for number in range(count):
        random = np.random.default_rng([size.rows, number])
        own = {name: _part(size.count(name), number, count) for name in TYPES}
        found = {
            "Person": people(own["Person"], seed=number),
            "Company": _company(own["Company"], random),
            "Follows": _follows(len(own["Follows"]), size, random),
            "Works": _works(len(own["Works"]), size, random),
        }
        yield {name: table for name, table in found.items() if len(table)}


def people(numbers: np.ndarray, *, seed: int = 0) -> pa.Table:
    """The people with these numbers; another seed gives them other values."""
    random = np.random.default_rng([seed, len(numbers)])
    count = len(numbers)
    return pa.table(
        {
            "name": _people(numbers),
            "age": random.integers(18, 90, count),
            "gender": _any(("female", "male"), count, random),
            "city": _any(_CITIES, count, random),
            "joined": _days(count, random),
            "score": random.integers(0, 1_000_000, count) / 1000,
            "bio": _sentences(count, random, words=8),
        }
    )


def _company(numbers: np.ndarray, random: np.random.Generator) -> pa.Table:
    return pa.table(
        {
            "name": _companies(numbers),
            "founded": random.integers(1850, 2026, len(numbers)).astype(np.int32),
            "motto": _sentences(len(numbers), random, words=4),
        }
    )


def _follows(count: int, size: Size, random: np.random.Generator) -> pa.Table:
    note = _sentences(count, random, words=3)
    return pa.table(
        {
            "from": _people(random.integers(0, size.people, count)),
            "to": _people(random.integers(0, size.people, count)),
            "since": _days(count, random),
            "note": pc.if_else(pa.array(random.integers(0, 4, count) > 0), note, None),
        }
    )


def _works(count: int, size: Size, random: np.random.Generator) -> pa.Table:
    return pa.table(
        {
            "from": _people(random.integers(0, size.people, count)),
            "to": _companies(random.integers(0, size.companies, count)),
            "title": _any(_TITLES, count, random),
            "since": _days(count, random),
            "salary": random.integers(20_000, 200_000, count) + 0.5,
        }
    )


def _people(numbers: np.ndarray) -> pa.Array:
    """The names of the people with these numbers."""
    first = _every(_FIRST).take(pa.array(numbers % len(_FIRST)))
    last = _every(_LAST).take(pa.array(numbers // len(_FIRST) % len(_LAST)))
    return pc.binary_join_element_wise(first, last, pa.array(numbers).cast(pa.string()), " ")


def _companies(numbers: np.ndarray) -> pa.Array:
    last = _every(_LAST).take(pa.array(numbers % len(_LAST)))
    return pc.binary_join_element_wise(last, pa.array(numbers).cast(pa.string()), " & Co. ")


def _sentences(count: int, random: np.random.Generator, *, words: int) -> pa.Array:
    """Texts of pairs of words, few of them alike."""
    pairs = _every(tuple(f"{one} and {other}" for one in _WORDS for other in _WORDS))
    chosen = [
        pairs.take(pa.array(random.integers(0, len(pairs), count))) for _ in range(words // 2)
    ]
    numbers = pa.array(random.integers(0, 1_000_000, count)).cast(pa.string())
    return pc.binary_join_element_wise("likes", *chosen, numbers, ", ")


def _days(count: int, random: np.random.Generator) -> pa.Array:
    return pa.array(random.integers(14_000, 20_000, count).astype(np.int32)).cast(pa.date32())


def _any(texts: tuple[str, ...], count: int, random: np.random.Generator) -> pa.Array:
    return _every(texts).take(pa.array(random.integers(0, len(texts), count)))


@cache
def _every(texts: tuple[str, ...]) -> pa.Array:
    return pa.array(texts, pa.string())


def _part(total: int, number: int, count: int) -> np.ndarray:
    """The numbers of the rows that one of so many chunks has."""
    return np.arange(total * number // count, total * (number + 1) // count)


def _made(place: Path, fill: Callable[[Path], None]) -> Path:
    """The directory, filled before it gets its name, unless it was there already."""
    # Whoever changes what is generated changes this text with it.
    stamp = json.dumps([SCHEMA, ROWS_PER_CHUNK, _WORDS])
    marker = place / "_made.json"
    if marker.exists() and marker.read_text() == stamp:
        return place
    making = place.with_name(f"making-{os.getpid()}-{place.name}")
    making.mkdir(parents=True)
    try:
        fill(making)
        (making / marker.name).write_text(stamp)
        shutil.rmtree(place, ignore_errors=True)
        making.rename(place)
    finally:
        shutil.rmtree(making, ignore_errors=True)
    return place

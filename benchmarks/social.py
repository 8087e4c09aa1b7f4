"""A social graph from a seed: people who follow each other, where they live, what they like."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from lance import LanceDataset

from omnigraph import graph
from omnigraph.clock import SystemClock
from omnigraph.manifest.drafts import CommitDraft, PinTable
from omnigraph.manifest.publisher import publish
from omnigraph.manifest.reader import Manifest
from omnigraph.manifest.requirements import TableAt
from omnigraph.model.commits import OperationKind
from omnigraph.model.ids import CommitId, OperationId
from omnigraph.model.names import MAIN
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.parser import parse_schema
from omnigraph.storage import heads, indexes, staging
from omnigraph.storage.store import Store

SCHEMA: Final = """\
node Person { number: I64 @key  name: String  age: I64  gender: enum(female, male) }
node City { number: I64 @key  name: String }
node State { number: I64 @key  name: String }
node Country { number: I64 @key  name: String }
node Interest { number: I64 @key  name: String }

// The keys say that no two edges run in parallel, so no query has to ask.
edge Follows: Person -> Person { @key(src, dst) }
edge LivesIn: Person -> City @card(1..1) { @key(src, dst) }
edge CityIn: City -> State @card(1..1) { @key(src, dst) }
edge StateIn: State -> Country @card(1..1) { @key(src, dst) }
edge HasInterest: Person -> Interest { @key(src, dst) }
"""

COUNTRIES: Final = ("United States", "United Kingdom", "Canada")
INTERESTS: Final = (
    "Fine Dining",
    "Tennis",
    "Photography",
    *(f"Interest {n}" for n in range(3, 40)),
)
TYPES: Final = (
    *("Person", "City", "State", "Country", "Interest"),
    *("Follows", "LivesIn", "CityIn", "StateIn", "HasInterest"),
)
INDEXED: Final = {"Person": ("id",), "Follows": ("src", "dst")}
"""What a person's neighbourhood is found by."""

Rows = Mapping[str, pa.Table]
"""The rows of each type, by its name."""


@dataclass(frozen=True, slots=True)
class Size:
    """How large a graph is; the ratios between its types stay the same."""

    people: int
    follows_per_person: int = 24
    interests_per_person: float = 2.5

    @property
    def cities(self) -> int:
        return max(20, self.people // 50)

    @property
    def states(self) -> int:
        return max(6, min(100, self.cities // 10))


def people(count: int, *, seed: int = 20) -> pa.Table:
    """So many people, and nothing about them but themselves."""
    random = np.random.default_rng(seed)
    everyone = np.arange(count)
    columns = {
        "name": pc.binary_join_element_wise("Person", _texts(everyone), " "),
        "age": random.integers(18, 80, count),
        "gender": pa.array(["female", "male"]).take(pa.array(random.integers(0, 2, count))),
    }
    return _nodes("Person", everyone, columns)


def generate(size: Size, *, seed: int = 20) -> Rows:
    """The rows of every type, the same for the same size and seed."""
    random = np.random.default_rng(seed)
    count, cities, states = size.people, size.cities, size.states
    everyone = np.arange(count)
    # Few are followed by many, and how many one follows has nothing to do with it.
    popularity = random.permutation(1.0 / np.arange(1, count + 1) ** 0.4)
    wanted = count * size.follows_per_person
    followers = random.integers(0, count, int(wanted * 1.02))
    followed = random.choice(count, len(followers), p=popularity / popularity.sum())
    follows = _distinct(followers, followed, wanted=wanted)
    follows = follows[follows[:, 0] != follows[:, 1]]
    likes = int(count * size.interests_per_person)
    taste = random.integers(0, count, likes), random.integers(0, len(INTERESTS), likes)
    return {
        "Person": people(size.people),
        "City": _nodes("City", np.arange(cities), {"name": _named("City", cities)}),
        "State": _nodes("State", np.arange(states), {"name": _named("State", states)}),
        "Country": _nodes("Country", np.arange(len(COUNTRIES)), {"name": COUNTRIES}),
        "Interest": _nodes("Interest", np.arange(len(INTERESTS)), {"name": INTERESTS}),
        "Follows": _edges("Follows", follows),
        "LivesIn": _edges("LivesIn", _each_to_one(everyone, random.integers(0, cities, count))),
        "CityIn": _edges("CityIn", _each_to_one(np.arange(cities), np.arange(cities) % states)),
        "StateIn": _edges("StateIn", _each_to_one(np.arange(states), np.arange(states) % 3)),
        "HasInterest": _edges("HasInterest", _distinct(*taste, wanted=likes)),
    }


def write_graph(
    uri: Path,
    rows: Rows,
    *,
    schema: str = SCHEMA,
    indexed: Mapping[str, Sequence[str]] = INDEXED,
) -> graph.Graph:
    """A new graph with these rows and BTREE indexes on the named columns, from one commit."""
    made = graph.init(uri, schema)
    store, clock = Store.open(made.uri), SystemClock()
    manifest = Manifest(store)
    now, catalog = manifest.current(MAIN), made.schema.show().catalog
    commit_id = CommitId(clock.ulid())
    author = heads.Authorship(OperationId(commit_id), OperationKind.LOAD)
    before, after = [], []
    for name, given in rows.items():
        pin = now.pin(catalog.type_named(name).table_key)
        table = store.tables.open(pin.location, ref=pin.ref, version=pin.version)
        moved = heads.apply(staging.stage_append(table, given), author)
        wanted = [indexes.IndexSpec(column) for column in indexed.get(name, ())]
        table = store.tables.open(pin.location, ref=pin.ref, version=moved.version)
        if staged := indexes.stage_indexes(table, wanted):
            moved = heads.apply(staged, author)
        before.append(TableAt(pin.key, pin.version, pin.ref))
        after.append(replace(pin, version=moved.version, row_count=given.num_rows))
    load = OperationKind.LOAD
    changes = tuple(map(PinTable, after))
    moves = CommitDraft(MAIN, commit_id, load, changes=changes, requires=tuple(before))
    publish(manifest, clock, moves)
    return graph.open(uri, read_only=True)


def pinned(made: graph.Graph, type_name: str) -> LanceDataset:
    """A type's table as anyone could open it who knows where the newest commit has it."""
    key = made.schema.show().catalog.type_named(type_name).table_key
    pin = made.snapshot().pin(key)
    assert pin.ref is None, "a graph of one commit has nothing but main"
    return lance.dataset(Store.open(made.uri).tables.uri(pin.location), version=pin.version)


def snake_case(name: str) -> str:
    """The name of a type's table in SQL by hand."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def write_parquet(folder: Path, rows: Rows) -> None:
    """The same rows for those who do not read Lance, one file per type."""
    import pyarrow.parquet as pq

    folder.mkdir()
    for name, table in rows.items():
        pq.write_table(table, folder / f"{name}.parquet")


def _nodes(name: str, numbers: np.ndarray, columns: Mapping[str, object]) -> pa.Table:
    return _typed(name, {"id": _texts(numbers), "number": numbers, **columns})


def _edges(name: str, pairs: np.ndarray) -> pa.Table:
    src, dst = _texts(pairs[:, 0]), _texts(pairs[:, 1])
    # The identity of an edge with a key: the JSON array of its members.
    ids = pc.binary_join_element_wise('["', pc.binary_join_element_wise(src, dst, '","'), '"]', "")
    return _typed(name, {"id": ids, "src": src, "dst": dst})


def _typed(name: str, columns: Mapping[str, object]) -> pa.Table:
    schema = table_schema(parse_schema(SCHEMA).type_named(name))
    return pa.table({each: columns[each] for each in schema.names}, schema=schema)


def _distinct(left: np.ndarray, right: np.ndarray, *, wanted: int) -> np.ndarray:
    """About so many different pairs, in an order that has nothing to do with either side."""
    pairs = np.unique(np.stack([left, right], axis=1), axis=0)
    return np.random.default_rng(len(pairs)).permutation(pairs)[:wanted]


def _each_to_one(sources: np.ndarray, targets: np.ndarray) -> np.ndarray:
    return np.stack([sources, targets], axis=1)


def _named(word: str, count: int) -> list[str]:
    return [f"{word} {number}" for number in range(count)]


def _texts(numbers: np.ndarray) -> pa.Array:
    return pa.array(numbers).cast(pa.string())

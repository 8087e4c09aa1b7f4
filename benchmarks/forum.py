"""A forum from a seed: people and where they live, friendships, forums, posts, comments, tags."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from omnigraph.schema.arrow import table_schema
from omnigraph.schema.parser import parse_schema

SCHEMA: Final = """\
node Person { number: I64 @key  name: String  born: I64  gender: enum(female, male) }
node City { number: I64 @key  name: String }
node Country { number: I64 @key  name: String }
node Tag { number: I64 @key  name: String }
node Forum { number: I64 @key  name: String }
node Post { number: I64 @key  length: I64 }
node Comment { number: I64 @key  length: I64 }

// The keys say that no two edges run in parallel, so no query has to ask.
edge Knows: Person -> Person { @key(src, dst) }
edge LivesIn: Person -> City @card(1..1) { @key(src, dst) }
edge CityIn: City -> Country @card(1..1) { @key(src, dst) }
edge HasInterest: Person -> Tag { @key(src, dst) }
edge HasMember: Forum -> Person { @key(src, dst) }
edge Holds: Forum -> Post { @key(src, dst) }
edge PostBy: Post -> Person @card(1..1) { @key(src, dst) }
edge PostTag: Post -> Tag { @key(src, dst) }
edge Likes: Person -> Post { @key(src, dst) }
edge ReplyOf: Comment -> Post @card(1..1) { @key(src, dst) }
edge CommentBy: Comment -> Person @card(1..1) { @key(src, dst) }
"""

EDGES: Final = {
    "Knows": ("Person", "Person"),
    "LivesIn": ("Person", "City"),
    "CityIn": ("City", "Country"),
    "HasInterest": ("Person", "Tag"),
    "HasMember": ("Forum", "Person"),
    "Holds": ("Forum", "Post"),
    "PostBy": ("Post", "Person"),
    "PostTag": ("Post", "Tag"),
    "Likes": ("Person", "Post"),
    "ReplyOf": ("Comment", "Post"),
    "CommentBy": ("Comment", "Person"),
}
INDEXED: Final = {"Person": ("id",), "Knows": ("src", "dst")}
DESCRIPTION: Final = "tables.json"

Numbers = Mapping[str, pa.Table]
"""The rows of each type, by its name; nodes are numbers, and edges pairs of them."""


@dataclass(frozen=True, slots=True)
class Size:
    """How large a forum is; the ratios between its types stay the same."""

    people: int

    def of(self, node: str) -> int:
        """How many nodes of a type there are."""
        shares = {"City": 1 / 40, "Country": 1 / 400, "Tag": 1 / 20, "Forum": 1 / 5}
        share = {"Person": 1, "Post": 6, "Comment": 12, **shares}[node]
        return max(5, int(self.people * share))


def generate(size: Size, *, seed: int = 16) -> Numbers:
    """The rows of every type, the same for the same size and seed."""
    random = np.random.default_rng(seed)
    people, posts, comments = size.of("Person"), size.of("Post"), size.of("Comment")
    cities, countries, tags, forums = map(size.of, ("City", "Country", "Tag", "Forum"))

    def each_to_one(count: int, targets: np.ndarray) -> pa.Table:
        return _pairs(np.arange(count), targets)

    named = {"City": cities, "Country": countries, "Tag": tags, "Forum": forums}
    texts = {"Post": posts, "Comment": comments}
    return {
        "Person": pa.table(
            {
                "number": np.arange(people),
                "name": _names("Person", people),
                "born": random.integers(1940, 2010, people),
                "gender": pa.array(["female", "male"]).take(
                    pa.array(random.integers(0, 2, people))
                ),
            }
        ),
        **{
            name: pa.table({"number": np.arange(count), "name": _names(name, count)})
            for name, count in named.items()
        },
        **{
            name: pa.table({"number": np.arange(count), "length": random.integers(1, 2000, count)})
            for name, count in texts.items()
        },
        "Knows": _friendships(random, people, wanted=people * 10),
        "LivesIn": each_to_one(people, _skewed(random, cities, people)),
        "CityIn": each_to_one(cities, np.arange(cities) % countries),
        "HasInterest": _distinct(random, people, tags, wanted=people * 5),
        "HasMember": _distinct(random, forums, people, wanted=people * 8),
        "Holds": _pairs(_skewed(random, forums, posts), np.arange(posts)),
        "PostBy": each_to_one(posts, _skewed(random, people, posts)),
        "PostTag": _distinct(random, posts, tags, wanted=posts * 2),
        "Likes": _flipped(_distinct(random, posts, people, wanted=people * 14)),
        "ReplyOf": each_to_one(comments, _skewed(random, posts, comments)),
        "CommentBy": each_to_one(comments, _skewed(random, people, comments)),
    }


def typed(numbers: Numbers) -> dict[str, pa.Table]:
    """The rows as a graph of `SCHEMA` stores them, with texts for ids."""
    catalog = parse_schema(SCHEMA)
    rows = {}
    for name, given in numbers.items():
        schema = table_schema(catalog.type_named(name))
        columns = _edge_columns(given) if name in EDGES else _node_columns(given)
        rows[name] = pa.table({each: columns[each] for each in schema.names}, schema=schema)
    return rows


def write_numbers(folder: Path, numbers: Numbers) -> None:
    """The rows for the others, one file per type, and a description of the types."""
    folder.mkdir()
    for name, table in numbers.items():
        pq.write_table(table, folder / f"{name}.parquet")
    kinds = {"int64": "INT64", "string": "STRING"}
    nodes = {
        name: {field.name: kinds[str(field.type)] for field in table.schema}
        for name, table in numbers.items()
        if name not in EDGES
    }
    (folder / DESCRIPTION).write_text(json.dumps({"nodes": nodes, "edges": EDGES}))


def _node_columns(given: pa.Table) -> dict[str, object]:
    return {"id": given["number"].cast(pa.string()), **dict(_columns(given))}


def _edge_columns(given: pa.Table) -> dict[str, object]:
    src, dst = (given[name].cast(pa.string()) for name in ("src", "dst"))
    # The identity of an edge with a key: the JSON array of its members.
    ids = pc.binary_join_element_wise('["', pc.binary_join_element_wise(src, dst, '","'), '"]', "")
    return {"id": ids, "src": src, "dst": dst}


def _columns(given: pa.Table) -> list[tuple[str, pa.ChunkedArray]]:
    return list(zip(given.column_names, given.columns, strict=True))


def _names(word: str, count: int) -> pa.Array:
    return pc.binary_join_element_wise(word, pa.array(np.arange(count)).cast(pa.string()), " ")


def _pairs(src: np.ndarray, dst: np.ndarray) -> pa.Table:
    return pa.table({"src": src.astype(np.int64), "dst": dst.astype(np.int64)})


def _flipped(pairs: pa.Table) -> pa.Table:
    return pa.table({"src": pairs["dst"], "dst": pairs["src"]})


def _skewed(random: np.random.Generator, choices: int, count: int) -> np.ndarray:
    """So many choices, few of which are made often; their numbers say nothing about that."""
    popularity = random.permutation(1.0 / np.arange(1, choices + 1) ** 0.5)
    return random.choice(choices, count, p=popularity / popularity.sum())


def _distinct(random: np.random.Generator, sources: int, targets: int, *, wanted: int) -> pa.Table:
    """About so many different pairs, with popular ones on both sides, in no order."""
    src, dst = _skewed(random, sources, wanted), _skewed(random, targets, wanted)
    codes = random.permutation(np.unique(src * targets + dst))
    return _pairs(codes // targets, codes % targets)


def _friendships(random: np.random.Generator, people: int, *, wanted: int) -> pa.Table:
    """Each once, in either direction: whoever knows somebody is known by them."""
    one, other = _skewed(random, people, wanted), _skewed(random, people, wanted)
    low, high = np.minimum(one, other), np.maximum(one, other)
    codes = random.permutation(np.unique((low * people + high)[low != high]))
    low, high = codes // people, codes % people
    is_turned = random.random(len(codes)) < 0.5
    return _pairs(np.where(is_turned, high, low), np.where(is_turned, low, high))

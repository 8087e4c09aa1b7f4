"""Questions from one key: a lookup among millions of rows, and the two hops around a person."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

import duckdb
import numpy as np

from benchmarks import social
from benchmarks.peers.process import Peer
from benchmarks.rounds import Answer, Contestants, Outcome, Row, compete, rows_of, timed
from omnigraph import graph

KEYS_PER_RUN: Final = 10
"""One run asks for so many keys, each time others, and counts as one time."""

LOOKUP: Final = """query q($n: I64) {
  match { $p: Person {number: $n} } return { $p.id as id, $p.name as name, $p.age as age } }"""
LOOKUP_SQL: Final = "SELECT id, name, age FROM person WHERE id = ?"

HOPS: Final = """query q($n: I64) {
  match { $a: Person {number: $n}  $a follows $b  $b follows $c } return { count($c) as paths } }"""
HOPS_SQL: Final = """\
SELECT count(*) FROM follows f JOIN follows g ON g.src = f.dst WHERE f.src = ?"""

HOPS_CYPHER: Final = """\
MATCH (a:Person {{id: '{key}'}})-[:Follows]->(b:Person)-[:Follows]->(c:Person)
RETURN count(*) AS paths"""


def lookups(folder: Path, *, people: int, rounds: int) -> dict[str, Outcome]:
    """One person by key, out of so many, against Lance's scanner and DuckDB over Lance."""
    rows = {"Person": social.people(people)}
    made = social.write_graph(folder, rows, indexed={"Person": ("id",)})
    person = social.pinned(made, "Person")
    connection = duckdb.connect()
    connection.register("person", person)
    columns = ["id", "name", "age"]

    def bare(key: int) -> list[Row]:
        found = person.scanner(columns=columns, filter=f"id = '{key}'").to_table()
        return rows_of(found)

    return compete(
        _over_keys(
            people,
            {
                "ours": lambda key: rows_of(made.query(LOOKUP, {"n": key}).arrow()),
                "Lance scanner": bare,
                "DuckDB": lambda key: list(connection.execute(LOOKUP_SQL, [str(key)]).fetchall()),
            },
        ),
        rounds=rounds,
    )


def two_hops(
    made: graph.Graph, *, people: int, rounds: int, peers: Mapping[str, Peer]
) -> dict[str, Outcome]:
    """The paths of two hops from one person, against DuckDB, two lookups by hand, and peers."""
    follows = social.pinned(made, "Follows")
    connection = duckdb.connect()
    connection.register("follows", follows)

    def by_hand(key: int) -> list[Row]:
        first = follows.scanner(columns=["dst"], filter=f"src = '{key}'").to_table()
        middle = ", ".join(f"'{each}'" for each in first["dst"].to_pylist()) or "''"
        # No one is followed twice by one person, so each edge found is one path.
        second = follows.scanner(columns=["dst"], filter=f"src IN ({middle})").to_table()
        return [(second.num_rows,)]

    askers: dict[str, Callable[[int], list[Row]]] = {
        "ours": lambda key: rows_of(made.query(HOPS, {"n": key}).arrow()),
        "two Lance lookups": by_hand,
        "DuckDB": lambda key: list(connection.execute(HOPS_SQL, [str(key)]).fetchall()),
    }
    others = {name: _peer_over_keys(people, peer) for name, peer in peers.items()}
    return compete({**_over_keys(people, askers), **others}, rounds=rounds)


def _peer_over_keys(people: int, peer: Peer) -> Callable[[], Answer]:
    """By the peer's own time, which the way to its process is no part of."""
    keys = _keys(people)

    def run() -> Answer:
        answers = [
            peer.ask("hops", HOPS_CYPHER.format(key=next(keys))) for _ in range(KEYS_PER_RUN)
        ]
        rows = [row for _, found in answers for row in found]
        return sum(seconds for seconds, _ in answers) / KEYS_PER_RUN, rows

    return run


def _keys(people: int) -> Iterator[int]:
    """The same for everyone, in the same order, and none of them twice in a row."""
    return iter(np.random.default_rng(7).integers(0, people, 100_000).tolist())


def _over_keys(people: int, askers: dict[str, Callable[[int], list[Row]]]) -> Contestants:
    def contestant(ask: Callable[[int], list[Row]]) -> Callable[[], tuple[float, list[Row]]]:
        keys = _keys(people)

        def run() -> tuple[float, list[Row]]:
            batch = [next(keys) for _ in range(KEYS_PER_RUN)]
            seconds, found = timed(lambda: [row for key in batch for row in ask(key)], list)
            return seconds / KEYS_PER_RUN, list(found)

        return run

    return {name: contestant(ask) for name, ask in askers.items()}

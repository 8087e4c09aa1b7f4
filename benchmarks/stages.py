"""Stages and paths: the top three and where they live, and how far one person is from another."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

import duckdb
import numpy as np

from benchmarks import social
from benchmarks.peers.process import Peer
from benchmarks.rounds import Answer, Outcome, Row, compete, rows_of, timed
from omnigraph import graph

PAIRS_PER_RUN: Final = 5
"""One run asks for so many paths, each time others, and counts as one time."""

TOP_THREE: Final = """query q() {
  match { $a follows $b }
  with { $b, count($a) as followers } order { followers desc } limit 3
  match { $b livesIn $c }
  return { $b.id as id, followers, $c.name as city }
  order { id }
}"""
TOP_THREE_SQL: Final = """\
SELECT top.dst AS id, followers, city.name AS city
FROM (
  SELECT dst, count(*) AS followers FROM follows GROUP BY dst ORDER BY followers DESC, dst LIMIT 3
) top
JOIN lives_in ON lives_in.src = top.dst JOIN city ON city.id = lives_in.dst
ORDER BY id"""

# The nodes of the path are wanted too, but of equal paths others may return another.
PATH: Final = """query q($a: I64, $b: I64) {
  match { $p: Person {number: $a}  $q: Person {number: $b}  $p follows{1,6} $q as $path }
  return { length($path) as hops, length(nodes($path)) as nodes }
}"""
PATH_CYPHER: Final = """\
MATCH p = (a:Person {{id: '{0}'}})-[:Follows* SHORTEST 1..6]->(b:Person {{id: '{1}'}})
RETURN length(p) AS hops, length(p) + 1 AS nodes"""


def top_three(made: graph.Graph, *, rounds: int) -> dict[str, Outcome]:
    """A stage that keeps three rows, against the SQL that one would write."""
    connection = duckdb.connect()
    for name in ("Follows", "LivesIn", "City"):
        connection.register(social.snake_case(name), social.pinned(made, name))
    return compete(
        {
            "ours": lambda: timed(lambda: made.query(TOP_THREE).arrow(), rows_of),
            "DuckDB": lambda: timed(
                lambda: connection.sql(TOP_THREE_SQL).to_arrow_table(), rows_of
            ),
        },
        rounds=rounds,
    )


def paths(
    made: graph.Graph, *, people: int, rounds: int, peers: Mapping[str, Peer]
) -> dict[str, Outcome]:
    """A shortest path between two people, with its nodes, beside peers."""

    def ours() -> Callable[[], Answer]:
        pairs = _pairs(people)

        def ask(pair: tuple[int, int]) -> list[Row]:
            return rows_of(made.query(PATH, {"a": pair[0], "b": pair[1]}).arrow())

        def run() -> Answer:
            batch = [next(pairs) for _ in range(PAIRS_PER_RUN)]
            seconds, rows = timed(lambda: [row for pair in batch for row in ask(pair)], list)
            return seconds / PAIRS_PER_RUN, list(rows)

        return run

    def of_peer(peer: Peer) -> Callable[[], Answer]:
        pairs = _pairs(people)

        def run() -> Answer:
            batch = [next(pairs) for _ in range(PAIRS_PER_RUN)]
            answers = [peer.ask("path", PATH_CYPHER.format(*pair)) for pair in batch]
            rows = [row for _, found in answers for row in found]
            # By its own time, which the way to its process is no part of.
            return sum(seconds for seconds, _ in answers) / PAIRS_PER_RUN, rows

        return run

    others = {name: of_peer(peer) for name, peer in peers.items()}
    return compete({"ours": ours(), **others}, rounds=rounds)


def _pairs(people: int) -> Iterator[tuple[int, int]]:
    """The same for everyone, in the same order; nobody is asked for the way to themselves."""
    random = np.random.default_rng(11)
    drawn = random.integers(0, people, (10_000, 2)).tolist()
    return iter([(first, second) for first, second in drawn if first != second])

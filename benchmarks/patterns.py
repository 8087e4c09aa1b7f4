"""Labelled patterns on a forum: ours against SQL by hand on native integer tables, and others.

python -m benchmarks.patterns [--people N] [--quick]
"""

import argparse
import tempfile
from pathlib import Path
from typing import Final

import duckdb

from benchmarks import forum, report, social
from benchmarks.forum_questions import QUESTIONS
from benchmarks.peers.process import Peer
from benchmarks.questions import Asker
from benchmarks.rounds import ROUNDS, Outcome, compete, rows_of, timed
from omnigraph import graph

OURS: Final = "ours"
BY_HAND: Final = "DuckDB on integers"
PEERS: Final = {"Kuzu": "kuzu_forum", "lance-graph": "lance_graph_forum"}
PEOPLE: Final = 20_000
SECONDS_PER_CONTESTANT_MAX: Final = 5
"""Of each question: twelve of them and four contestants have to end in some minutes."""

READING: Final = """\
Patterns with several branches and cycles on a forum. "DuckDB on integers" is SQL written by hand
over native tables of DuckDB, in memory, whose keys are integers; Kuzu's keys are the same integers.
Ours is the graph as it is stored, with texts for ids, and a handle that has been asked before."""

# What a profile said when the goal was last missed; shown only while it is.
WHY_MISSED: Final = {
    "median": "Plans that are no tree join texts in DuckDB, where SQL by hand joins integers.",
    "worst": "See the table for which.",
    "Kuzu": "It intersects sorted neighbours for cycles.",
}


def main() -> None:
    """Run it, and print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=int, default=PEOPLE)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--quick", action="store_true", help="1,000 people: does it run at all?")
    parser.add_argument("--peers", action=argparse.BooleanOptionalAction, default=True)
    given = parser.parse_args()
    if given.quick:
        given.people, given.rounds = 1_000, 1
    with tempfile.TemporaryDirectory(prefix="omnigraph-bench-") as folder:
        print(run(Path(folder), people=given.people, rounds=given.rounds, peers=given.peers))


def run(folder: Path, *, people: int, rounds: int, peers: bool) -> str:
    """The section's text; the folder is filled."""
    folder.mkdir(exist_ok=True)
    numbers = forum.generate(forum.Size(people))
    made = social.write_graph(
        folder / "forum", forum.typed(numbers), schema=forum.SCHEMA, indexed=forum.INDEXED
    )
    others: dict[str, Peer] = {}
    if peers:
        forum.write_numbers(folder / "numbers", numbers)
        others = {name: Peer(module, folder / "numbers") for name, module in PEERS.items()}
    askers = local(made, numbers) | {name: _asker(peer) for name, peer in others.items()}
    try:
        asked = ask_all(askers, rounds=rounds)
    finally:
        for peer in others.values():
            peer.close()
    row_count = sum(table.num_rows for table in numbers.values())
    return "\n\n".join(
        [
            "### Labelled patterns on a forum",
            READING,
            f"The forum: {people:,} people, {row_count:,} rows of nodes and edges.",
            goals(asked),
            f"Time divided by that of {BY_HAND}:",
            report.ratios(asked, to=BY_HAND),
            "The others' time divided by ours:",
            report.ratios(asked, to=OURS),
            "Medians, for scale only:",
            report.times(asked),
        ]
    )


def ask_all(askers: dict[str, Asker], *, rounds: int) -> dict[str, dict[str, Outcome]]:
    """Every question to everyone."""
    outcomes = {}
    for number, question in QUESTIONS.items():
        contestants = {
            name: lambda ask=ask, number=number, question=question: ask(number, question)
            for name, ask in askers.items()
        }
        outcomes[f"{number}. {question.title}"] = compete(
            contestants, rounds=rounds, seconds_max=SECONDS_PER_CONTESTANT_MAX
        )
    return outcomes


def local(made: graph.Graph, numbers: forum.Numbers) -> dict[str, Asker]:
    """Ours, and SQL by hand over native tables of integers."""
    connection = duckdb.connect()
    for name, rows in numbers.items():
        connection.register("given", rows)
        connection.execute(f"CREATE TABLE {social.snake_case(name)} AS SELECT * FROM given")
        connection.unregister("given")
    connection.execute(
        "CREATE VIEW friends AS SELECT src, dst FROM knows UNION ALL SELECT dst, src FROM knows"
    )
    return {
        OURS: lambda _, question: timed(lambda: made.query(question.gq).arrow(), rows_of),
        BY_HAND: lambda _, question: timed(
            lambda: connection.sql(question.sql).to_arrow_table(), rows_of
        ),
    }


def _asker(peer: Peer) -> Asker:
    return lambda number, question: peer.ask(number, question.cypher)


def goals(asked: report.Outcomes) -> str:
    """A line for each goal."""
    lines = []
    if ratio := report.median_ratio(asked, OURS, BY_HAND):
        found = f"median {ratio:.2f} times SQL by hand on native integer tables; the goal is 1.0"
        lines.append(report.goal(found, WHY_MISSED["median"], is_met=ratio <= 1))
        worst, title = max(
            (report.ratio_of(each[OURS], each[BY_HAND]) or 0, title)
            for title, each in asked.items()
        )
        found = f"at worst {worst:.2f} times ({title}); the goal is 3"
        lines.append(report.goal(found, WHY_MISSED["worst"], is_met=worst <= 3))
    for name in PEERS:
        won, compared = report.wins(asked, OURS, name)
        if not compared:
            lines.append(f"- not compared: {name} took no part")
        elif name == "Kuzu":
            found = f"faster than {name} on {won} of {compared}; the goal is two thirds"
            lines.append(report.goal(found, WHY_MISSED[name], is_met=3 * won >= 2 * compared))
        else:
            lines.append(f"- faster than {name} on {won} of the {compared} that it can answer.")
    return "\n".join(lines)


if __name__ == "__main__":
    main()

"""Search by words, by vectors and by both: ours, the bare Lance scanner, LanceDB and DuckDB.

python -m benchmarks.search [--rows N] [--quick] [--no-peers] [--write]
"""

import argparse
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from lance.query import MatchQuery

from benchmarks import documents, program, recall, report, social
from benchmarks.documents import Documents, Query, share_found
from benchmarks.peers.process import Peer
from benchmarks.rounds import Answer, Outcome, compete, rows_of, timed
from omnigraph import graph
from omnigraph.engine.local.indexed_vectors import VECTOR_PROBES_MIN

OURS: Final = "ours"
EXACT: Final = "ours, exact"
BARE: Final = "Lance scanner"
BARE_EXACT: Final = "Lance scanner, exact"
PEERS: Final = {"LanceDB": "lancedb_search", "DuckDB": "duckdb_search"}

ROWS: Final = 1_000_000
ROUNDS: Final = 12
SECONDS_PER_CONTESTANT_MAX: Final = 4
LIMIT: Final = 10

BARE_GOAL: Final = 1.5
HYBRID_GOAL: Final = 1.3
FILTERED_GOAL: Final = 1.0
RECALL_GOAL: Final = 0.95

PROBES: Final = 2 * VECTOR_PROBES_MIN
"""Partitions of the index that others look into. Ours looks into so many if a fourth of them would
have sufficed, and into more otherwise."""

TEXT: Final = "text"
NEAREST: Final = "nearest"
BOTH: Final = "both"
PERCENTS: Final = (1, 10, 90)

_QUERY: Final = """\
query q({parameters}) {{
  match {{ $d: Doc {filter} }}
  return {{ $d.number as number, {ranking} as score }}
  order {{ {ranking} }}
  limit 10
}}
"""
_BM25: Final = "bm25($d.body, $text)"
_DISTANCE: Final = "nearest($d.vector, $vector)"

READING: Final = """\
Everyone looks for the best ten of the same documents, another query in each round. "Lance scanner"
is one call of Lance on the very table and with the very indexes that ours uses, into as many of its
partitions as ours looks into at least; LanceDB opens a copy of them. DuckDB has the rows in memory
and a full-text index of its extension; it scans its vectors, because its other extension took a
minute to index 20,000 of them. "Exact" uses no approximate index. A share found is that of the best
ten by scores that the program computes by itself from what it drew; rows that share the last place
are all right."""

# What the plans say; shown only while a goal is missed.
WHY_MISSED: Final = {
    TEXT: "More rows are read than are wanted, with their texts, and these are scored again.",
    NEAREST: "The newest commit is looked for, and distances are computed again in 64 bits.",
    BOTH: "Each ranking is read as deep as the window of the fusion.",
    "filtered": "Both do the same: a scope of so few rows is ranked by their own vectors.",
    "recall": "See the table for which.",
}


@dataclass(slots=True)
class Finder:
    """A contestant in one task: another query each time it is asked, and what it has found.

    Attributes:
        find: Answers the query with this number.
    """

    find: Callable[[int], Answer]
    query_count: int
    found: dict[int, list[int]] = field(default_factory=dict)
    _turns: Iterator[int] = field(default_factory=lambda: iter(range(1 << 30)))

    def __call__(self) -> Answer:
        number = next(self._turns) % self.query_count
        seconds, rows = self.find(number)
        # Ours also returns rows that have no score, after all others.
        self.found[number] = [row[0] for row in rows if None not in row]
        # Approximate answers differ; that all of them are full is what must agree.
        return seconds, [(len(self.found[number]),)]


@dataclass(frozen=True, slots=True)
class Asked:
    """The times of one task, and the share that each contestant found of the right rows."""

    outcomes: dict[str, Outcome]
    shares: dict[str, float]


def run(given: argparse.Namespace, folder: Path) -> str:
    """The section's text."""
    start = report.start()
    docs = Documents(documents.Size(given.rows), queries=given.rounds + 2)
    made = documents.write_graph(folder / "graph", docs)
    peers = open_peers(folder / "peers", made, docs) if given.peers else {}
    try:
        asked = {task: ask(task, made, docs, peers, given) for task in _tasks()}
    finally:
        for peer in peers.values():
            peer.close()
    recalls = recall.measure(folder / "recall", rows=given.recall_rows)
    titles = {task: _title(task) for task in asked}
    outcomes = {titles[task]: each.outcomes for task, each in asked.items()}
    beside_bare = {title: each for title, each in outcomes.items() if BARE in each}
    return "\n\n".join(
        [
            READING,
            f"{given.rows:,} documents, {docs.size.dimension} dimensions, {given.rounds} rounds.",
            report.circumstances(start, versions=[peer.version for peer in peers.values()]),
            "### Goals",
            _goals(asked, recalls, given),
            "### Time divided by that of the bare scanner",
            report.ratios(beside_bare, to=BARE),
            "### The others' time divided by ours",
            report.ratios(outcomes, to=OURS),
            "### Share of the best ten that is found",
            _shares({titles[task]: each.shares for task, each in asked.items()}),
            "### Recall@10 with default parameters",
            recall.READING,
            recall.table(recalls),
            "### Medians, for scale only",
            report.times(outcomes),
        ]
    )


def open_peers(folder: Path, made: graph.Graph, docs: Documents) -> dict[str, Peer]:
    """The peers, each with a folder that has what it reads."""
    docs.write(folder)
    table = social.pinned(made, "Doc")
    assert table.version == table.latest_version, "LanceDB opens the newest version"
    copy = folder / "doc.lance"
    shutil.copytree(table.uri, copy, copy_function=os.link)
    (folder / "knobs.json").write_text(json.dumps({"nprobes": PROBES}))
    return {name: Peer(module, folder) for name, module in PEERS.items()}


def ask(
    task: str,
    made: graph.Graph,
    docs: Documents,
    peers: Mapping[str, Peer],
    given: argparse.Namespace,
) -> Asked:
    """One task to everyone."""
    finds = local(task, made, docs) | {name: _find(peers[name], task) for name in peers}
    finders = {name: Finder(find, len(docs.queries)) for name, find in finds.items()}
    seconds_max = SECONDS_PER_CONTESTANT_MAX
    outcomes = compete(finders, rounds=given.rounds, seconds_max=seconds_max)
    shares = {name: _share(task, docs, finder) for name, finder in finders.items() if finder.found}
    return Asked(outcomes, shares)


def local(task: str, made: graph.Graph, docs: Documents) -> dict[str, Callable[[int], Answer]]:
    """Ours, and the bare scanner of the very table that ours reads."""
    table = social.pinned(made, "Doc")
    text = _text(task)

    def ours(number: int, **options: Any) -> Answer:
        query = docs.queries[number]
        given = {"text": query.text, "vector": query.vector.tolist()}
        used = {name: value for name, value in given.items() if f"${name}:" in text}
        return timed(lambda: made.query(text, used, **options).arrow(), rows_of)

    def bare(number: int, *, use_index: bool = True) -> Answer:
        search = _scan(task, docs.queries[number], use_index=use_index)
        columns = ["number", "_score" if task == TEXT else "_distance"]
        return timed(lambda: table.scanner(columns, **search).to_table(), rows_of)

    finds: dict[str, Callable[[int], Answer]] = {OURS: ours}
    if task != BOTH:
        finds[BARE] = bare
    if task.startswith(NEAREST):
        finds[EXACT] = partial(ours, exact=True)
        finds[BARE_EXACT] = partial(bare, use_index=False)
    return finds


def _scan(task: str, query: Query, *, use_index: bool) -> dict[str, Any]:
    if task == TEXT:
        return {"full_text_query": MatchQuery(query.text, "body"), "limit": LIMIT}
    nearest = {
        "column": "vector",
        "q": query.vector,
        "k": LIMIT,
        "metric": "cosine",
        "use_index": use_index,
        "nprobes": PROBES,
    }
    percent = _percent(task)
    return {
        "nearest": nearest,
        "filter": None if percent is None else f"share < {percent}",
        "prefilter": True,
    }


def _find(peer: Peer, task: str) -> Callable[[int], Answer]:
    return lambda number: peer.ask(task, str(number))


def _tasks() -> list[str]:
    return [TEXT, NEAREST, *(f"{NEAREST} of {percent} %" for percent in PERCENTS), BOTH]


def _percent(task: str) -> int | None:
    words = task.split()
    return int(words[2]) if len(words) > 1 else None


def _title(task: str) -> str:
    titles = {TEXT: "bm25, three words", BOTH: "rrf of bm25 and nearest"}
    return titles.get(task, task)


def _text(task: str) -> str:
    percent = _percent(task)
    parameters = []
    if task in (TEXT, BOTH):
        parameters.append("$text: String")
    if task != TEXT:
        parameters.append("$vector: Vector(256)")
    rankings = {TEXT: _BM25, BOTH: f"rrf({_BM25}, {_DISTANCE})"}
    return _QUERY.format(
        parameters=", ".join(parameters),
        filter="" if percent is None else f"$d.share < {percent}",
        ranking=rankings.get(task, _DISTANCE),
    )


def _share(task: str, docs: Documents, finder: Finder) -> float:
    """The mean share of the right rows that were found."""
    return float(
        np.mean(
            [
                share_found(found, _scores(task, docs, docs.queries[number]))
                for number, found in finder.found.items()
            ]
        )
    )


def _scores(task: str, docs: Documents, query: Query) -> np.ndarray:
    """The score of each row, the best highest; minus infinity for rows out of scope."""
    if task == TEXT:
        return docs.bm25(query)
    if task == BOTH:
        return documents.fuse([docs.bm25(query), -docs.distances(query)])
    percent = _percent(task)
    in_scope = docs.shares < (100 if percent is None else percent)
    return np.where(in_scope, -docs.distances(query), -np.inf)


def _goals(
    asked: Mapping[str, Asked], recalls: Mapping[recall.Setting, float], given: argparse.Namespace
) -> str:
    goal = partial(report.goal, is_measured=not given.quick)
    lines = []
    for task in (TEXT, NEAREST):
        outcomes = asked[task].outcomes
        if ratio := report.ratio_of(outcomes[OURS], outcomes[BARE]):
            found = f"{_title(task)} takes {ratio:.2f} times the bare scanner's"
            found += f"; the goal is {BARE_GOAL}"
            lines.append(goal(found, WHY_MISSED[task], is_met=ratio <= BARE_GOAL))
    if ratio := _hybrid_ratio(asked):
        found = f"{_title(BOTH)} takes {ratio:.2f} times the sum of its parts"
        found += f"; the goal is {HYBRID_GOAL}"
        lines.append(goal(found, WHY_MISSED[BOTH], is_met=ratio <= HYBRID_GOAL))
    for task in _tasks():
        if _percent(task) is None:
            continue
        outcomes, share = asked[task].outcomes, asked[task].shares[OURS]
        if ratio := report.ratio_of(outcomes[OURS], outcomes[EXACT]):
            found = f"{task} takes {ratio:.2f} times the exact search's and finds {share:.1%}"
            found += f"; the goals are {FILTERED_GOAL} and {RECALL_GOAL:.0%}"
            is_met = ratio <= FILTERED_GOAL and share >= RECALL_GOAL
            lines.append(goal(found, WHY_MISSED["filtered"], is_met=is_met))
    worst = min([*recalls.values(), asked[NEAREST].shares[OURS]])
    found = f"the worst recall@10 is {worst:.3f}; the goal is {RECALL_GOAL}"
    lines.append(goal(found, WHY_MISSED["recall"], is_met=worst >= RECALL_GOAL))
    return "\n".join(lines)


def _hybrid_ratio(asked: Mapping[str, Asked]) -> float | None:
    ratios = [
        report.ratio_of(asked[part].outcomes[OURS], asked[BOTH].outcomes[OURS])
        for part in (TEXT, NEAREST)
    ]
    known = [ratio for ratio in ratios if ratio is not None]
    return 1 / sum(known) if len(known) == len(ratios) else None


def _shares(shares: Mapping[str, Mapping[str, float]]) -> str:
    names = list(dict.fromkeys(name for each in shares.values() for name in each))
    rows = [
        [title, *(f"{each[name]:.3f}" if name in each else "-" for name in names)]
        for title, each in shares.items()
    ]
    return report.table(["", *names], rows)


def _arguments() -> argparse.Namespace:
    parser = program.parser(__doc__, "quick", "peers")
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--recall-rows", type=int, default=recall.ROWS, help="of 256 dimensions")
    given = parser.parse_args()
    if given.quick:
        given.rows, given.rounds, given.recall_rows = 2_000, 2, 1_200
    return given


if __name__ == "__main__":
    program.run("Search", _arguments(), run)

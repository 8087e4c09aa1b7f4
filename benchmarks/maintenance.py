"""Maintenance: a graph written row by row for long, and tables of many small fragments compacted.

python -m benchmarks.maintenance [--commits N…] [--rows N] [--fragments N] [--rounds N]
                                 [--compactions N] [--no-spark] [--no-peers] [--quick] [--write]
"""

import argparse
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import lance
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks import memory, people, program, report, social
from benchmarks.peers.process import Peer
from benchmarks.rounds import Answer, Outcome, compete, rows_of, timed
from omnigraph import graph
from omnigraph.model.commits import OperationKind
from omnigraph.model.followups import FollowUpFailure
from omnigraph.model.tables import TableKey
from omnigraph.storage.staging import StagedWrite, stage_change, write_files
from omnigraph.storage.tables import Table
from omnigraph.transaction.commit import AfterCommit
from omnigraph.transaction.view import View
from omnigraph.transaction.writes import WritePlan, WriteRequest

OURS: Final = "ours"
SPARK: Final = "ours, on Spark"
LANCE: Final = "Lance, compact_files"
DELTA: Final = "Delta Lake, optimize"
LOADED: Final = "loaded at once"

COMMITS: Final = (2_000, 10_000)
YOUNG: Final = 50
ROWS: Final = 10_000_000
FRAGMENTS: Final = 5_000
ROUNDS: Final = 100
COMPACTIONS: Final = 2
SECONDS_MAX: Final = 120

INSERT_GOAL: Final = 1.3
QUERY_GOAL: Final = 1.5
LOOKUP_GOAL: Final = 1.3
BYTES_GOAL: Final = 40_000
BYTES_GROWTH_GOAL: Final = 1.1
SHARE_GOAL: Final = 0.15
LONGEST_GOAL: Final = 0.25
COMPACTION_GOAL: Final = 1.3
MEMORY_GOAL: Final = 100_000_000

SUM: Final = "query q() { match { $p: Person } return { count($p) as n, sum($p.age) as ages } }"
FIND: Final = "query q($n: String) { match { $p: Person {name: $n} } return { $p.name, $p.age } }"

READING: Final = """\
A graph is written one person per commit, and nobody calls maintenance: after its own commit, a
writer folds small fragments. At each depth, inserts into it and into a copy of the graph as it was
after 50 commits take turns, and so do queries of it and of a graph that got the same people in one
load. Handles are open and warm. The size on disk is in blocks of the file system, divided by the
commits, all of which stay readable."""

COMPACTION_READING: Final = """\
Everyone compacts the same rows in the same number of small files, from an untouched copy. Ours is
`graph.optimize`, which also indexes ids and keys and makes a commit of the graph; for a fair ratio,
the bare compaction of Lance is followed by the same indexes. Delta Lake has none. The memory of a
driver is the most that its process had, less what it had with Spark started and the graph open."""

# What was seen when a goal was last missed; shown only while it is.
WHY_RATIO_MISSED: Final = (
    "The fragments of the table, and pages of lineage, are the first to look at."
)
WHY_BYTES_MISSED: Final = "Most of it is six files of at least one block each."
WHY_FOLDS_MISSED: Final = (
    "A fold is a commit of its own: it takes as long as two inserts, and its rows."
)
WHY_COMPACTION_MISSED: Final = (
    "Ours also reads row ids and row versions, claims the table and publishes a commit."
)
WHY_MEMORY_MISSED: Final = "The driver holds the metadata of all fragments, old and new."

Outcomes = dict[str, Outcome]


@dataclass(slots=True)
class Folds:
    """What automatic maintenance took of a writer's time."""

    follow: AfterCommit
    seconds: float = 0
    longest: float = 0

    def __call__(
        self, order: WriteRequest, tables: Mapping[TableKey, Table]
    ) -> tuple[FollowUpFailure, ...]:
        start = time.perf_counter()
        failures = self.follow(order, tables)
        taken = time.perf_counter() - start
        self.seconds += taken
        self.longest = max(self.longest, taken)
        return failures


@dataclass(frozen=True, slots=True)
class Depth:
    """What was found after so many commits."""

    commits: int
    inserts: Outcomes
    sums: Outcomes
    lookups: Outcomes
    bytes_per_commit: float
    fold_share: float
    longest_fold: float


def run(given: argparse.Namespace, folder: Path) -> str:
    """The section's text."""
    start = report.start()
    depths = write_row_by_row(folder / "rows", given.commits, rounds=given.rounds)
    compactions, versions, memories = compact(folder / "compaction", given)
    return "\n\n".join(
        [
            READING,
            report.circumstances(start, versions=versions),
            "### Goals",
            _goals(depths, compactions, memories, given),
            *(text for depth in depths for text in _texts(depth)),
            f"### {given.rows:,} rows in {given.fragments:,} fragments, compacted",
            COMPACTION_READING,
            report.spreads(compactions, to=LANCE),
        ]
    )


def write_row_by_row(folder: Path, depths: Iterable[int], *, rounds: int) -> list[Depth]:
    """Write up to each depth, and look how the graph does there."""
    folder.mkdir()
    place = folder / "graph"
    deep = graph.init(place, people.SCHEMA)
    transactions = deep._transactions  # noqa: SLF001
    follow = transactions.after_commit
    assert follow is not None, "every handle has one"
    folds = Folds(follow)
    transactions.after_commit = folds
    names = people.fresh_names()
    written: list[str] = []
    found, seconds = [], 0.0
    young = folder / "young"
    for depth in depths:
        while len(written) < depth:
            written.append(next(names))
            start = time.perf_counter()
            deep.mutate(people.INSERT, {"n": written[-1]})
            seconds += time.perf_counter() - start
            if len(written) == YOUNG:
                shutil.copytree(place, young)
        share, longest = folds.seconds / seconds, folds.longest
        size = _disk_bytes(place) / len(deep.commits.list())
        loaded = _load(folder / f"loaded-{depth}", written)
        sums = compete({OURS: _asker(deep, SUM), LOADED: _asker(loaded, SUM)}, rounds=rounds)
        lookups = compete(
            {OURS: _finder(deep, written), LOADED: _finder(loaded, written)}, rounds=rounds
        )
        copy = shutil.copytree(place, folder / f"deep-{depth}")
        start_over = shutil.copytree(young, folder / f"young-{depth}")
        inserts = compete(
            {
                _at(YOUNG): people.ours(graph.open(start_over), _late_names()),
                _at(depth): people.ours(graph.open(copy), _late_names()),
            },
            rounds=rounds,
            seconds_max=SECONDS_MAX,
        )
        found.append(Depth(depth, inserts, sums, lookups, size, share, longest))
    return found


def _late_names() -> Iterable[str]:
    return (f"late {name}" for name in people.fresh_names())


def _load(place: Path, names: list[str]) -> graph.Graph:
    made = graph.init(place, people.SCHEMA)
    rows = pa.table({"name": names, "age": [1] * len(names)})
    made.load({"Person": rows}, engine="local")
    return made


def _asker(made: graph.Graph, query: str) -> Callable[[], Answer]:
    return lambda: timed(lambda: made.query(query).arrow(), rows_of)


def _finder(made: graph.Graph, names: list[str]) -> Callable[[], Answer]:
    """Finds another person in each round."""
    turns = iter(range(1 << 30))

    def find() -> Answer:
        name = names[next(turns) * 7919 % len(names)]
        return timed(lambda: made.query(FIND, {"n": name}).arrow(), lambda table: [(len(table),)])

    return find


def _disk_bytes(place: Path) -> int:
    return sum(file.stat().st_blocks * 512 for file in place.rglob("*") if file.is_file())


def compact(folder: Path, given: argparse.Namespace) -> tuple[Outcomes, list[str], dict[int, int]]:
    """The same fragments compacted by everyone, each from a copy of its own."""
    folder.mkdir()
    base = _fragmented(folder / "base", given.rows, given.fragments)
    table = social.pinned(graph.open(base), "Person")
    inside = Path(table.uri).relative_to(base)

    def ours(engine: str) -> Callable[[], Answer]:
        def run() -> Answer:
            opened = _copy(base, folder / engine)
            return timed(
                lambda: opened.optimize(engine=engine),
                lambda _: [(social.pinned(opened, "Person").count_rows(),)],
            )

        return run

    def bare() -> Answer:
        dataset = lance.dataset(_copy_files(base, folder / "lance") / inside)

        def work() -> None:
            dataset.optimize.compact_files()
            dataset.create_scalar_index("id", "BTREE")
            dataset.create_scalar_index("name", "BTREE")

        return timed(work, lambda _: [(dataset.count_rows(),)])

    contestants: dict[str, Callable[[], Answer]] = {OURS: ours("local"), LANCE: bare}
    if given.spark:
        contestants[SPARK] = ours("spark")
    versions: list[str] = []
    if given.peers:
        peer = Peer("delta_optimize", folder / "delta")
        contestants[DELTA] = _delta(peer, table, folder, given.fragments)
    outcomes = compete(contestants, rounds=given.compactions, seconds_max=SECONDS_MAX, warm_ups=1)
    if given.peers:
        versions.append(peer.version)
        peer.close()
    memories = _measure_spark(base, folder, given) if given.spark else {}
    return outcomes, versions, memories


def _delta(
    peer: Peer, table: lance.LanceDataset, folder: Path, fragments: int
) -> Callable[[], Answer]:
    source = folder / "people.parquet"
    pq.write_table(table.to_table(["id", "name", "age"]), source)
    filled = False

    def run() -> Answer:
        nonlocal filled
        if not filled:
            peer.ask("fill", f"{source}:{fragments}")
            filled = True
        peer.ask("copy")
        seconds, _ = peer.ask("optimize")
        _, ((rows,),) = peer.ask("count")
        return seconds, [(rows,)]

    return run


def _fragmented(place: Path, rows: int, fragments: int) -> Path:
    """A graph with that many people in that many fragments, in one commit."""
    made = graph.init(place, people.SCHEMA)
    share = -(-rows // fragments)

    def stage(table: Table) -> StagedWrite:
        files = []
        for first in range(0, rows, share):
            numbers = pa.array(range(first, min(rows, first + share)))
            names = pc.binary_join_element_wise("person", numbers.cast(pa.string()), " ")
            columns = [names, names, pa.array([1] * len(numbers))]
            files += write_files(table, pa.Table.from_arrays(columns, schema=people.COLUMNS))
        return stage_change(table, files=files)

    def plan(view: View) -> WritePlan[None]:
        [key] = [key for key in view.snapshot.pins if key.type_name == "Person"]
        return WritePlan(None, {key: stage}, is_bulk=True)

    order = WriteRequest(OperationKind.LOAD, made.snapshot().branch)
    made._transactions.run(order, plan)  # noqa: SLF001
    return place


def _measure_spark(base: Path, folder: Path, given: argparse.Namespace) -> dict[int, int]:
    """The bytes above idle of the driver, for a tenth of the rows and for all."""
    tenth = given.rows // 10
    small = _fragmented(folder / "tenth", tenth, given.fragments // 10)
    return {
        tenth: memory.measure_optimize(small),
        given.rows: memory.measure_optimize(_copy_files(base, folder / "all")),
    }


def _copy(base: Path, copy: Path) -> graph.Graph:
    opened = graph.open(_copy_files(base, copy))
    opened.snapshot()
    return opened


def _copy_files(base: Path, copy: Path) -> Path:
    shutil.rmtree(copy, ignore_errors=True)
    return shutil.copytree(base, copy)


def _texts(depth: Depth) -> list[str]:
    return [
        f"### After {depth.commits:,} commits of one row",
        f"{depth.bytes_per_commit / 1000:.1f} KB on disk for each commit; folds took"
        f" {depth.fold_share:.1%} of the writer's time, the longest"
        f" {depth.longest_fold * 1e3:.0f} ms.",
        "Insert one row:",
        report.spreads(depth.inserts, to=_at(YOUNG)),
        "Sum over all rows:",
        report.spreads(depth.sums, to=LOADED),
        "Find one row by its key:",
        report.spreads(depth.lookups, to=LOADED),
    ]


def _goals(
    depths: list[Depth], compactions: Outcomes, memories: dict[int, int], given: argparse.Namespace
) -> str:
    goal = partial(report.goal, is_measured=not given.quick)
    lines = [line for depth in depths for line in _depth_goals(depth, goal)]
    growth = depths[-1].bytes_per_commit / depths[0].bytes_per_commit
    found = f"the disk space of a commit grows to {growth:.2f} times that {_at(depths[0].commits)}"
    found += f"; the goal is {BYTES_GROWTH_GOAL}"
    lines.append(goal(found, WHY_BYTES_MISSED, is_met=growth <= BYTES_GROWTH_GOAL))
    for name in (OURS, SPARK) if given.spark else (OURS,):
        if ratio := report.ratio_of(compactions[name], compactions[LANCE]):
            found = f"compaction ({name}) takes {ratio:.2f} times Lance's"
            found += f"; the goal is {COMPACTION_GOAL}"
            lines.append(goal(found, WHY_COMPACTION_MISSED, is_met=ratio <= COMPACTION_GOAL))
    if memories:
        few, many = sorted(memories)
        found = f"the driver on Spark takes {memories[many] / 1e6:,.0f} MB above idle for"
        found += f" {many:,} rows, and {memories[few] / 1e6:,.0f} for {few:,}"
        found += f"; the goal is {MEMORY_GOAL / 1e6:,.0f}"
        is_met = memories[many] <= MEMORY_GOAL
        lines.append(goal(found, WHY_MEMORY_MISSED, is_met=is_met))
    return "\n".join(lines)


def _depth_goals(depth: Depth, goal: Callable[..., str]) -> Iterator[str]:
    at = f"after {depth.commits:,} commits"
    against = [
        ("an insert takes", depth.inserts, _at(depth.commits), _at(YOUNG), INSERT_GOAL),
        ("a sum over all rows takes", depth.sums, OURS, LOADED, QUERY_GOAL),
        ("a lookup takes", depth.lookups, OURS, LOADED, LOOKUP_GOAL),
    ]
    for what, outcomes, one, other, most in against:
        if ratio := report.ratio_of(outcomes[one], outcomes[other]):
            found = f"{at}, {what} {ratio:.2f} times that {other}; the goal is {most}"
            yield goal(found, WHY_RATIO_MISSED, is_met=ratio <= most)
    found = f"{at}, each has {depth.bytes_per_commit / 1e3:.1f} KB on disk"
    found += f"; the goal is {BYTES_GOAL / 1e3:.0f}"
    yield goal(found, WHY_BYTES_MISSED, is_met=depth.bytes_per_commit <= BYTES_GOAL)
    found = f"{at}, folds took {depth.fold_share:.1%} of the time; the goal is {SHARE_GOAL:.0%}"
    yield goal(found, WHY_FOLDS_MISSED, is_met=depth.fold_share <= SHARE_GOAL)
    found = f"{at}, the longest fold took {depth.longest_fold * 1e3:.0f} ms"
    found += f"; the goal is {LONGEST_GOAL * 1e3:.0f}"
    yield goal(found, WHY_FOLDS_MISSED, is_met=depth.longest_fold <= LONGEST_GOAL)


def _at(commits: int) -> str:
    return f"after {commits:,}"


def _arguments() -> argparse.Namespace:
    parser = program.parser(__doc__, "quick", "peers", "spark")
    parser.add_argument("--commits", type=int, nargs="*", default=COMMITS)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--fragments", type=int, default=FRAGMENTS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--compactions", type=int, default=COMPACTIONS, help="rounds of them")
    given = parser.parse_args()
    if given.quick:
        given.commits, given.rows, given.fragments = (60, 70), 2_000, 20
        given.rounds, given.compactions = 2, 1
    return given


if __name__ == "__main__":
    program.run("Maintenance", _arguments(), run)

"""Merges: a fast-forward against a bare append, three-way and row diffs against others, memory.

python -m benchmarks.merge [--people N] [--rounds N] [--quick] [--no-peers] [--write]
"""

import argparse
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Final

import lance

from benchmarks import branches, memory, program, report, social
from benchmarks.branches import DRAFT, Size
from benchmarks.peers.fingerprints import fingerprint
from benchmarks.peers.process import Peer
from benchmarks.rounds import Answer, Outcome, Row, Timed, compete, timed
from omnigraph import graph
from omnigraph.changes.diffs import GraphDiff
from omnigraph.changes.rows import RowChange

OURS: Final = "ours"
IMAGES: Final = "ours, images kept as dictionaries"
COLUMNS: Final = "ours, left in columns"
LANCE: Final = "Lance, append"
DOLT: Final = "doltlite"

PEOPLE: Final = 1_000_000
ROUNDS: Final = 7
SECONDS_MAX: Final = 60
"""A contestant that would take longer in all runs fewer rounds, and at least one."""
PEER_SECONDS_MAX: Final = 900

APPEND_GOAL: Final = 4
DOLT_GOAL: Final = 1
VECTORS: Final = 8_000
DIMENSION: Final = 3_072
MEMORY_GOAL: Final = 300_000_000

Outcomes = dict[str, Outcome]
Image = Mapping[str, object] | None
Images = tuple[str, Image, Image]
"""What happened to a row, the row as it was, and as it is."""

READING: Final = """\
Everyone has the same people and starts each round from an untouched copy on local disk, opened
before the clock starts. A ratio divides medians of runs in turns, after warm-ups.

The fast-forward brings a tenth as many new people as the table has from a branch to main. "Lance"
is `lance.write_dataset` in mode `append` of the same rows, which it has in memory, to the same
table: it reads nothing, makes no commit of a graph, and no one can recover it. For the others a
draft has changed a tenth of all people and main a hundredth: of ten, eight are updated, spread
evenly over the table, one is deleted and one is new; half of those whom main updates, the draft
updates too, in another property, and both merge them value by value. Ours is `graph.merge` on the
local engine, which also asks all rules of the schema about the result. The row diff compares both
branches before they are merged, to the last row and with both images: `list(diff.rows())`, and
`dolt_diff_person('main', 'draft')` fetched by Python's `sqlite3`. Then all values are Python's, in
doltlite's tuples or in lists by column that our rows share; a row makes a dictionary of an image
whenever it is looked at, and one contestant looks at all and keeps them. What everyone ended with
was compared first, row by row."""

MEMORY_READING: Final = """\
In a process of its own, by the local engine: the most memory that it had, less what it had before
with the graph open. Of every page the draft has another vector and main another title, so each is
decided value by value, and written anew with its vector."""

# What a profile said when the goal was last missed; shown only while it is.
WHY_APPEND_MISSED: Final = (
    "Half of it is writing the same files; the rest is reading the branch and two commits."
)
WHY_MERGE_MISSED: Final = (
    "Half of it is reading a fragment in which changed rows lie everywhere; a fifth is finding in"
    " the target what is to be replaced."
)
WHY_DIFF_MISSED: Final = (
    "Most of it is reading fragments in which changed rows lie everywhere, and a quarter is making"
    " Python values and a row for each."
)
WHY_MEMORY_MISSED: Final = ""


def run(given: argparse.Namespace, folder: Path) -> str:
    """The section's text."""
    start = report.start()
    size = Size(given.people)
    made = branches.files(size, given.inputs)
    appended = append(folder / "ahead", made, size, given)
    merged, compared, versions = merge_and_compare(folder / "apart", made, given)
    above_idle = measure_vectors(folder / "vectors", given)
    return "\n\n".join(
        [
            READING,
            f"{given.people:,} people, of whom {size.draft:,} and {size.main:,} changed; at most"
            f" {given.rounds} rounds.",
            report.circumstances(start, versions=versions),
            "### Goals",
            _goals(appended, merged, compared, above_idle, given),
            f"### Fast-forward of {size.draft:,} new rows",
            report.spreads(appended, to=LANCE),
            "### Three-way merge",
            report.spreads(merged, to=OURS),
            "### Row diff",
            report.spreads(compared, to=OURS),
            f"### Memory of a merge of {given.vectors:,} vectors of {given.dimension:,} numbers",
            MEMORY_READING,
            f"{above_idle / 1e6:,.0f} MB; the vectors of either side have"
            f" {given.vectors * given.dimension * 4 / 1e6:,.0f} MB.",
        ]
    )


def append(folder: Path, made: Path, size: Size, given: argparse.Namespace) -> Outcomes:
    """New rows brought from a branch, and appended to the same table by bare Lance."""
    folder.mkdir()
    base, copy = folder / "base", folder / "copy"
    rows = branches.newcomers(size.draft)
    branches.ahead(base, made, rows)
    named = rows.add_column(0, "id", rows["name"])

    def ours() -> Answer:
        opened = _copied(base, copy)
        return timed(lambda: opened.merge(DRAFT, engine="local"), lambda _: _counted(opened))

    def bare() -> Answer:
        opened = _copied(base, copy)
        dataset = social.pinned(opened, "Person")
        schema = dataset.schema
        return timed(
            lambda: lance.write_dataset(named.cast(schema), dataset, mode="append"),
            lambda after: [(after.count_rows(),)],
        )

    return compete({OURS: ours, LANCE: bare}, rounds=given.rounds, seconds_max=SECONDS_MAX)


def merge_and_compare(
    folder: Path, made: Path, given: argparse.Namespace
) -> tuple[Outcomes, Outcomes, list[str]]:
    """Branches that parted, merged and compared by everyone; the versions of who took part."""
    folder.mkdir()
    base, copy = folder / "base", folder / "copy"
    branches.diverged(base, made)
    peer = Peer("doltlite_merge", folder)

    def merge() -> Answer:
        opened = _copied(base, copy)
        return timed(lambda: opened.merge(DRAFT, engine="local"), lambda _: _people(opened))

    def compare() -> Answer:
        opened = _copied(base, copy)
        return timed(lambda: list(opened.diff("main", DRAFT, engine="local").rows()), _rows)

    def compare_images() -> Answer:
        opened = _copied(base, copy)
        return timed(lambda: _images(opened.diff("main", DRAFT, engine="local")), _rows_told)

    def compare_columns() -> Answer:
        opened = _copied(base, copy)
        return timed(lambda: opened.diff("main", DRAFT, engine="local"), _rows_of)

    mergers: dict[str, Callable[[], Answer]] = {OURS: merge}
    comparers: dict[str, Callable[[], Answer]] = {
        OURS: compare,
        IMAGES: compare_images,
        COLUMNS: compare_columns,
    }
    with ExitStack() as running:
        if given.peers:
            running.callback(peer.close)
            filled = _filled(peer, made)
            mergers[DOLT] = _asker(peer, filled, "merge", "merged")
            comparers[DOLT] = _asker(peer, filled, "compare", "compared")
        options = {"rounds": given.rounds, "seconds_max": SECONDS_MAX}
        merged, compared = (compete(each, **options) for each in (mergers, comparers))
    took_part = given.peers and isinstance(merged[DOLT], Timed)
    return merged, compared, [peer.version] if took_part else []


def measure_vectors(folder: Path, given: argparse.Namespace) -> int:
    """The bytes above idle of a merge of rows with vectors."""
    branches.with_vectors(folder, given.vectors, given.dimension)
    return memory.measure_merge(folder, DRAFT)


def _copied(base: Path, copy: Path) -> graph.Graph:
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(base, copy)
    opened = graph.open(copy)
    opened.snapshot()
    return opened


def _filled(peer: Peer, made: Path) -> Callable[[], None]:
    is_filled = False

    def fill() -> None:
        nonlocal is_filled
        if not is_filled:
            peer.ask("fill", str(made), seconds_max=PEER_SECONDS_MAX)
            is_filled = True

    return fill


def _asker(peer: Peer, filled: Callable[[], None], task: str, result: str) -> Callable[[], Answer]:
    def run() -> Answer:
        filled()
        peer.ask("copy", seconds_max=PEER_SECONDS_MAX)
        seconds, _ = peer.ask(task, seconds_max=PEER_SECONDS_MAX)
        return seconds, peer.ask(result, seconds_max=PEER_SECONDS_MAX)[1]

    return run


def _counted(opened: graph.Graph) -> Sequence[Row]:
    return [(social.pinned(opened, "Person").count_rows(),)]


def _people(opened: graph.Graph) -> Sequence[Row]:
    rows = social.pinned(opened, "Person").to_table(columns=list(branches.COLUMNS))
    return [(fingerprint(zip(*(each.to_pylist() for each in rows.columns), strict=True)),)]


_WORDS: Final = {"insert": "added", "update": "modified", "delete": "removed"}


def _images(diff: GraphDiff) -> list[Images]:
    return [(each.op, each.before, each.after) for each in diff.rows()]


def _rows_of(diff: GraphDiff) -> Sequence[Row]:
    return _rows(diff.rows())


def _rows(changes: Iterable[RowChange]) -> Sequence[Row]:
    return _rows_told((each.op, each.before, each.after) for each in changes)


def _rows_told(changes: Iterable[Images]) -> Sequence[Row]:
    """Changes as doltlite tells them: what happened, the row as it was, and as it is."""
    names = branches.COLUMNS
    nothing = dict.fromkeys(names)
    told = (
        (
            _WORDS[op],
            *((before or nothing)[name] for name in names),
            *((after or nothing)[name] for name in names),
        )
        for op, before, after in changes
    )
    return [(fingerprint(told),)]


def _goals(
    appended: Outcomes,
    merged: Outcomes,
    compared: Outcomes,
    above_idle: int,
    given: argparse.Namespace,
) -> str:
    lines = []
    goal = partial(report.goal, is_measured=given.people >= PEOPLE)
    if ratio := report.ratio_of(appended[OURS], appended[LANCE]):
        found = f"a fast-forward takes {ratio:.2f} times a bare append of the same rows"
        found += f"; the goal is {APPEND_GOAL}"
        lines.append(goal(found, WHY_APPEND_MISSED, is_met=ratio <= APPEND_GOAL))
    for what, outcomes, why_missed in (
        ("a three-way merge", merged, WHY_MERGE_MISSED),
        ("a row diff", compared, WHY_DIFF_MISSED),
    ):
        if ratio := report.ratio_of(outcomes[OURS], outcomes.get(DOLT)):
            found = f"{what} takes {ratio:.2f} times that of doltlite; the goal is {DOLT_GOAL}"
            lines.append(goal(found, why_missed, is_met=ratio <= DOLT_GOAL))
    found = f"a merge of {given.vectors:,} vectors takes {above_idle / 1e6:,.0f} MB above idle"
    found += f"; the goal is {MEMORY_GOAL / 1e6:,.0f}"
    lines.append(goal(found, WHY_MEMORY_MISSED, is_met=above_idle <= MEMORY_GOAL))
    return "\n".join(lines)


def _arguments() -> argparse.Namespace:
    parser = program.parser(__doc__, "quick", "inputs", "peers")
    parser.add_argument("--people", type=int, default=PEOPLE)
    parser.add_argument("--vectors", type=int, default=VECTORS)
    parser.add_argument("--dimension", type=int, default=DIMENSION)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    given = parser.parse_args()
    if given.quick:
        given.people, given.rounds = 10_000, 2
        given.vectors, given.dimension = 100, 32
    return given


if __name__ == "__main__":
    program.run("Merge", _arguments(), run)

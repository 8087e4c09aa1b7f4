"""Loads: ours on Spark against plain Spark, in memory, in upserts, and locally against COPY.

python -m benchmarks.load [--rows N] [--rounds N] [--quick] [--no-peers] [--no-spark] [--write]
                          [--only SECTION ...]
"""

import argparse
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from importlib import metadata
from itertools import count
from pathlib import Path
from typing import Final

from benchmarks import inputs, memory, plain, program, report, upserts
from benchmarks.inputs import Size
from benchmarks.memory import Memory
from benchmarks.peers.process import Peer
from benchmarks.rounds import WARM_UPS, Answer, Outcome, Timed, Untimed, compete, timed
from omnigraph import graph
from omnigraph.load.results import LoadResult

OURS: Final = "ours"
INDEXED: Final = "ours, and indexes"
ON_SPARK: Final = "ours, on Spark"
LANCE: Final = "Lance"
LANCE_INDEXED: Final = "Lance, indexed"
DELTA: Final = "Delta Lake"
NDJSON: Final = "NDJSON"
PARQUET: Final = "Parquet"
COPY: Final = "Kuzu, COPY from Parquet"

ROWS: Final = 1_000_000
ROUNDS: Final = 3
LOCAL_ROWS: Final = 100_000
LOCAL_ROUNDS: Final = 7
SECONDS_MAX: Final = 40
"""A contestant that would take longer in all runs fewer rounds, and at least one."""
PEER_SECONDS_MAX: Final = 900

LOAD_GOALS: Final = {NDJSON: 1.8, PARQUET: 1.5}
LOAD_GOAL_ROWS: Final = 10_000_000
MEMORY_STEPS: Final = 20
MEMORY_GOAL: Final = 1.25
MEMORY_GOAL_ROWS: Final = 20_000_000
UPSERT_GOAL: Final = 2
SPARK_UPSERT_GOAL: Final = 1
MANY_TYPES: Final = 40
ROWS_PER_TYPE: Final = 100
MANY_TYPES_GOAL: Final = 2
UPSERT_ROWS: Final = 10_000_000
"""People to merge into; a load of more rows merges into no more."""
LOCAL_GOAL: Final = 400_000
LOCAL_SHARE_GOAL: Final = 0.5

Outcomes = dict[str, Outcome]

READING: Final = """\
The rows are made from a seed: of five, one is a person or a company and four are edges, with texts,
dates and numbers; an NDJSON line has 160 bytes. Ours is `graph.load` in mode `append` into a graph
without rows: it types every value, asks all rules (keys once, ends of edges there, values present,
of their enum and in their range) and makes one commit of all types, or none. "And indexes" is
`index=True`, which then builds those that the schema asks for, in a second commit.

"Spark" is PySpark in the same JVM and session, with the same settings. It reads the same files in
one pass and writes Parquet, and checks nothing. Of NDJSON it is told the schema beforehand, one
struct with the properties of all types for `data` (`spark.read.schema(…).json(…)`): to read lines
as text and parse them with `from_json` is the same parser after one more step. It writes either one
table of everything or a table per type by `partitionBy`; goals go by the faster. Of Parquet it
copies each type, all four at once. A ratio divides medians of runs in turns, after a warm-up."""

UPSERT_READING: Final = """\
People are merged by key into a copy of a table, a tenth as many as it has: half of them are there
already. Ours is `graph.load` in mode `merge`, on the engine that it chooses for so many rows, and
on Spark. "Lance" is `merge_insert` into the same table as our graph has it, in this process, with
and without the index on ids; "Delta Lake" is deltalake's `merge`, in its process, into a table that
it wrote. Everyone reads the changes from one Parquet file within the time, and afterwards the rows
were counted."""

TYPES_READING: Final = """\
The same number of rows in mode `append`, into a graph without rows, on Spark: of one type, and of
many. Each type has a key and a unique property."""

LOCAL_READING: Final = """\
The local engine, in this process and without Spark, into a graph without rows; Kuzu's COPY is into
a database without rows, whose keys it checks and indexes as it goes. It reads Parquet: for JSON it
needs an extension, which has to be downloaded."""

MEMORY_READING: Final = """\
A load of NDJSON in a process of its own, at two sizes: the most that the calling process had, what
the JVM held after it without garbage, and the most that one Python worker had. The JVM runs
driver and tasks in one on this machine."""

# What a profile said when the goal was last missed; shown only while it is.
WHY_LOAD_MISSED: Final = (
    "A quarter of the time are the rules about keys. A task that reads the input spends 30 % on"
    " Lance's files, 28 % on reading Parquet and 18 % on keys for the rules."
)
WHY_LOCAL_MISSED: Final = (
    "Half of it is Arrow reading JSON; the rest is checking keys and writing files."
)
# Nobody has profiled these yet.
WHY_UPSERT_MISSED: Final = ""
WHY_TYPES_MISSED: Final = ""
WHY_MEMORY_MISSED: Final = ""


Parts = Callable[[argparse.Namespace, Path, list[str], list[str]], list[str]]
"""Measures; adds goals and the versions of who took part; returns the texts of a section."""


def section_of(measure: Parts) -> program.Section:
    """A section of the results: what was measured, below the goals."""

    def run(given: argparse.Namespace, folder: Path) -> str:
        start = report.start()
        versions = [f"pyspark {metadata.version('pyspark')}"] if given.spark else []
        goals: list[str] = []
        parts = measure(given, folder, goals, versions)
        reading, *others = parts
        circumstances = report.circumstances(start, versions=versions)
        return "\n\n".join([reading, circumstances, "### Goals", "\n".join(goals), *others])

    return run


@dataclass(slots=True)
class Loader:
    """Loads the same input again and again, each time into a graph that is new."""

    source: Path
    folder: Path
    engine: str
    index: bool
    schema: str = inputs.SCHEMA
    results: list[LoadResult] = field(default_factory=list)
    numbers: Callable[[], int] = field(default_factory=lambda: count().__next__)

    def __call__(self) -> Answer:
        place = self.folder / f"graph-{self.numbers()}"
        made = graph.init(place, self.schema)

        def load() -> LoadResult:
            return made.load(self.source, engine=self.engine, index=self.index)

        found = timed(load, self._rows)
        shutil.rmtree(place)
        return found

    def _rows(self, result: LoadResult) -> Sequence[tuple[int]]:
        self.results.append(result)
        return [(result.inserted,)]

    def stages(self) -> str:
        """How long each stage took at last."""
        told = self.results[-1].seconds.items()
        return ", ".join(f"{stage} {seconds:.2f} s" for stage, seconds in told)


def load_on_spark(
    size: Size, form: str, folder: Path, given: argparse.Namespace
) -> tuple[Outcomes, Loader]:
    """One form of the input by ours, with indexes and without, and by plain Spark."""
    folder.mkdir()
    source = _source(size, form, given)
    ours = Loader(source, folder, "spark", index=False)
    contestants: dict[str, Callable[[], Answer]] = {
        OURS: ours,
        INDEXED: Loader(source, folder, "spark", index=True),
    }
    if form == NDJSON:
        contestants["Spark, one table"] = plain.lines_to_one_table(source, folder / "one")
        contestants["Spark, a table per type"] = plain.lines_to_tables(source, folder / "tables")
    else:
        contestants["Spark"] = plain.columns_to_tables(source, folder / "tables")
    # So many rows leave nothing to warm up after the first time.
    warm_ups = 1 if size.rows >= LOAD_GOAL_ROWS else WARM_UPS
    run = partial(compete, rounds=given.rounds, seconds_max=SECONDS_MAX, warm_ups=warm_ups)
    return run(contestants), ours


def load_locally(
    size: Size, folder: Path, given: argparse.Namespace
) -> tuple[Outcomes, list[str], Loader]:
    """Both forms by the local engine, and COPY; the versions of who took part."""
    folder.mkdir()
    loaders = {
        _local(form, index=index): Loader(_source(size, form, given), folder, "local", index=index)
        for form in (NDJSON, PARQUET)
        for index in (False, True)
    }
    contestants: dict[str, Callable[[], Answer]] = dict(loaders)
    peer = Peer("kuzu_copy", folder)
    with ExitStack() as running:
        if given.peers:
            running.callback(peer.close)
            contestants[COPY] = _copier(peer, _source(size, PARQUET, given))
        outcomes = compete(contestants, rounds=given.local_rounds, seconds_max=SECONDS_MAX)
    took_part = given.peers and isinstance(outcomes[COPY], Timed)
    ours = loaders[_local(NDJSON, index=False)]
    return outcomes, [peer.version] if took_part else [], ours


def merge_people(
    people: int, folder: Path, given: argparse.Namespace
) -> tuple[Outcomes, list[str]]:
    """A tenth of so many people merged by everyone; the versions of who took part."""
    folder.mkdir()
    files = inputs.upsert(people, given.inputs)
    indexed, bare = folder / "indexed", folder / "bare"
    upserts.fill(indexed, files, index=True)
    upserts.fill(bare, files, index=False)
    copy = folder / "copy"
    contestants = {
        OURS: upserts.ours(indexed, files, copy, engine="auto"),
        ON_SPARK: upserts.ours(indexed, files, copy, engine="spark"),
        LANCE: upserts.bare(bare, files, copy),
        LANCE_INDEXED: upserts.bare(indexed, files, copy),
    }
    peer = Peer("delta_merge", folder)
    with ExitStack() as running:
        if given.peers:
            running.callback(peer.close)
            contestants[DELTA] = upserts.delta(peer, files, seconds_max=PEER_SECONDS_MAX)
        outcomes = compete(contestants, rounds=given.rounds, seconds_max=SECONDS_MAX)
    took_part = given.peers and isinstance(outcomes[DELTA], Timed)
    return outcomes, [peer.version] if took_part else []


def _load(
    form: str,
    given: argparse.Namespace,
    folder: Path,
    goals: list[str],
    versions: list[str],  # noqa: ARG001  # as all sections
) -> list[str]:
    goal = LOAD_GOALS[form]
    outcomes, ours = load_on_spark(Size(given.rows), form, folder / f"spark-{form}", given)
    rivals = [name for name in outcomes if name.startswith("Spark")]
    fastest = _fastest(outcomes, rivals)
    is_measured = given.rows >= LOAD_GOAL_ROWS
    if ratio := report.ratio_of(outcomes[OURS], outcomes[fastest]):
        found = f"a load of {form} takes {ratio:.2f} times plain Spark without a check"
        if indexed := report.ratio_of(outcomes[INDEXED], outcomes[fastest]):
            found += f" ({indexed:.2f} with indexes)"
        found += f"; the goal is {goal} at {LOAD_GOAL_ROWS:,} rows and more"
        goals.append(
            report.goal(found, WHY_LOAD_MISSED, is_met=ratio <= goal, is_measured=is_measured)
        )
    return [
        READING,
        f"### {given.rows:,} rows, at most {given.rounds} rounds",
        _rates(outcomes, given.rows, to=fastest),
        f"Ours: {ours.stages()}.",
    ]


def _memory(
    given: argparse.Namespace,
    folder: Path,
    goals: list[str],
    versions: list[str],  # noqa: ARG001  # as all sections
) -> list[str]:
    found: dict[int, Memory] = {}
    for rows in (given.rows // MEMORY_STEPS, given.rows):
        place = folder / f"memory-{rows}"
        graph.init(place, inputs.SCHEMA)
        found[rows] = memory.measure(place, inputs.ndjson(Size(rows), given.inputs))
        shutil.rmtree(place)
    less, more = found.values()
    kinds = {
        "driver, most": (less.driver, more.driver),
        "JVM's heap, after": (less.heap, more.heap),
        "Python worker, most": (less.worker, more.worker),
    }
    lines = [
        [kind, f"{after / before:.2f}", _mebibytes(before), _mebibytes(after)]
        for kind, (before, after) in kinds.items()
    ]
    head = ["", f"{MEMORY_STEPS} times the rows", *(f"{rows:,} rows" for rows in found)]
    driver, heap = more.driver / less.driver, more.heap / less.heap
    told = f"with {MEMORY_STEPS} times the rows the driver takes {driver:.2f} times the memory"
    told += f" and its heap {heap:.2f}; the goal is flat, within {MEMORY_GOAL}, from 1 million"
    told += f" rows to {MEMORY_GOAL_ROWS:,}"
    is_met = max(driver, heap) <= MEMORY_GOAL
    is_measured = given.rows >= MEMORY_GOAL_ROWS
    goals.append(report.goal(told, WHY_MEMORY_MISSED, is_met=is_met, is_measured=is_measured))
    return [MEMORY_READING, report.table(head, lines)]


def _upserts(
    given: argparse.Namespace, folder: Path, goals: list[str], versions: list[str]
) -> list[str]:
    people = min(given.rows, UPSERT_ROWS)
    outcomes, found = merge_people(people, folder / "upserts", given)
    versions += found
    fastest = _fastest(outcomes, [LANCE, LANCE_INDEXED])
    title = f"### Upsert of {people // 10:,} into {people:,} people"
    is_measured = people >= UPSERT_ROWS
    size = f"{UPSERT_ROWS // 10:,} into {UPSERT_ROWS:,}"
    for name, goal in ((fastest, UPSERT_GOAL), (DELTA, 1)):
        if ratio := report.ratio_of(outcomes[OURS], outcomes.get(name)):
            told = f"an upsert takes {ratio:.2f} times that of {name}"
            if on_spark := report.ratio_of(outcomes[ON_SPARK], outcomes.get(name)):
                told += f" ({on_spark:.2f} on Spark)"
            told += f"; the goal is {goal} at {size}"
            goals.append(
                report.goal(told, WHY_UPSERT_MISSED, is_met=ratio <= goal, is_measured=is_measured)
            )
    if ratio := report.ratio_of(outcomes[ON_SPARK], outcomes.get(DELTA)):
        told = f"an upsert on Spark takes {ratio:.2f} times that of {DELTA}"
        told += f"; the goal is {SPARK_UPSERT_GOAL} at {size}"
        is_met = ratio <= SPARK_UPSERT_GOAL
        goals.append(report.goal(told, WHY_UPSERT_MISSED, is_met=is_met, is_measured=is_measured))
    return [UPSERT_READING, title, _rates(outcomes, people // 10, to=fastest)]


def load_many_types(folder: Path, given: argparse.Namespace) -> Outcomes:
    """As many rows of one type, and of many, by ours on Spark."""
    folder.mkdir()
    contestants: dict[str, Callable[[], Answer]] = {}
    for types in (1, MANY_TYPES):
        source = folder / f"{types}.ndjson"
        rows = MANY_TYPES * ROWS_PER_TYPE // types
        source.write_text("".join(inputs.typed_lines(types, rows)))
        schema = inputs.typed_schema(types)
        contestants[_typed(types)] = Loader(source, folder, "spark", index=False, schema=schema)
    return compete(contestants, rounds=given.rounds, seconds_max=SECONDS_MAX)


def _many_types(
    given: argparse.Namespace,
    folder: Path,
    goals: list[str],
    versions: list[str],  # noqa: ARG001  # as all sections
) -> list[str]:
    outcomes = load_many_types(folder / "types", given)
    one, many = _typed(1), _typed(MANY_TYPES)
    rows = MANY_TYPES * ROWS_PER_TYPE
    if ratio := report.ratio_of(outcomes[many], outcomes[one]):
        told = f"{rows:,} rows of {MANY_TYPES} types take {ratio:.2f} times those of one type on"
        told += f" Spark; the goal is {MANY_TYPES_GOAL}"
        is_met = ratio <= MANY_TYPES_GOAL
        goals.append(report.goal(told, WHY_TYPES_MISSED, is_met=is_met, is_measured=True))
    return [TYPES_READING, f"### {rows:,} rows", _rates(outcomes, rows, to=one)]


def _locals(
    given: argparse.Namespace, folder: Path, goals: list[str], versions: list[str]
) -> list[str]:
    outcomes, found, ours = load_locally(Size(given.local_rows), folder / "local", given)
    versions += found
    for form in (NDJSON, PARQUET):
        own = outcomes[_local(form, index=False)]
        if not isinstance(own, Timed):
            continue
        rate = given.local_rows / own.median
        told = f"{given.local_rows:,} rows of {form} load locally at {rate:,.0f} rows/s"
        indexed = outcomes[_local(form, index=True)]
        if isinstance(indexed, Timed):
            told += f" ({given.local_rows / indexed.median:,.0f} with indexes)"
        share = report.ratio_of(outcomes.get(COPY), own)
        if share is not None:
            told += f", {share:.2f} times the rate of Kuzu's COPY"
        told += f"; the goal is {LOCAL_GOAL:,}, or {LOCAL_SHARE_GOAL} times COPY's"
        is_met = rate >= LOCAL_GOAL or (share is not None and share >= LOCAL_SHARE_GOAL)
        is_measured = given.local_rows >= LOCAL_ROWS
        goals.append(report.goal(told, WHY_LOCAL_MISSED, is_met=is_met, is_measured=is_measured))
    return [
        LOCAL_READING,
        f"### {given.local_rows:,} rows, at most {given.local_rounds} rounds",
        _rates(outcomes, given.local_rows, to=_local(NDJSON, index=False)),
        f"Ours of NDJSON: {ours.stages()}.",
    ]


def _source(size: Size, form: str, given: argparse.Namespace) -> Path:
    make = inputs.ndjson if form == NDJSON else inputs.parquet
    return make(size, given.inputs)


def _copier(peer: Peer, files: Path) -> Callable[[], Answer]:
    def run() -> Answer:
        peer.ask("empty")
        seconds, _ = peer.ask("copy", str(files))
        return seconds, peer.ask("count")[1]

    return run


def _fastest(outcomes: Mapping[str, Outcome], names: Sequence[str]) -> str:
    found = {name: each for name in names if isinstance(each := outcomes[name], Timed)}
    return min(found, key=lambda name: found[name].median) if found else names[0]


def _rates(outcomes: Mapping[str, Outcome], rows: int, *, to: str) -> str:
    lines = []
    for name, each in outcomes.items():
        match each:
            case Timed():
                ratio = report.ratio_of(each, outcomes[to])
                shown = "-" if ratio is None else f"{ratio:.2f}"
                rate = f"{rows / each.median:,.0f}"
                lines.append([name, shown, f"{each.median:.2f} s", rate, f"{len(each.seconds)}"])
            case Untimed(why):
                lines.append([name, "-", why.replace("|", "/"), "-", "0"])
    return report.table(["", f"/ {to}", "p50", "rows/s", "rounds"], lines)


def _local(form: str, *, index: bool) -> str:
    return f"ours, {form}{', and indexes' if index else ''}"


def _typed(types: int) -> str:
    return "ours, one type" if types == 1 else f"ours, {types} types"


def _mebibytes(count: int) -> str:
    return f"{count / 2**20:,.0f} MiB"


SECTIONS: Final[Mapping[str, Parts]] = {
    "Load of NDJSON": partial(_load, NDJSON),
    "Load of Parquet": partial(_load, PARQUET),
    "Memory of loads": _memory,
    "Upsert": _upserts,
    "Many types": _many_types,
    "Local load": _locals,
}
"""By the titles that RESULTS.md has."""
_LOCAL_SECTION: Final = "Local load"


def _arguments() -> argparse.Namespace:
    parser = program.parser(__doc__, "quick", "inputs", "peers", "spark")
    parser.add_argument("--rows", type=int, default=ROWS, help="nodes and edges, for Spark")
    parser.add_argument("--local-rows", type=int, default=LOCAL_ROWS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--local-rounds", type=int, default=LOCAL_ROUNDS)
    parser.add_argument("--only", nargs="+", choices=[*SECTIONS], default=[*SECTIONS])
    given = parser.parse_args()
    if given.quick:
        given.rows, given.local_rows = 2_000, 1_000
        given.rounds, given.local_rounds = 1, 2
    return given


def main() -> None:
    """Measure the sections that were asked for, one after the other."""
    given = _arguments()
    for title in given.only:
        if given.spark or title == _LOCAL_SECTION:
            program.run(title, given, section_of(SECTIONS[title]))


if __name__ == "__main__":
    main()

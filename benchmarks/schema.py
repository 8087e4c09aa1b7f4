"""Schema changes: a new property beside Lance and DuckDB, a rename at two sizes, memory on Spark.

python -m benchmarks.schema [--rows N] [--rounds N] [--spark-rows N] [--no-spark] [--quick]
                            [--write]
"""

import argparse
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

import duckdb
import lance
import pyarrow as pa

from benchmarks import branches, memory, program, report, social
from benchmarks.rounds import Answer, Outcome, compete, timed
from omnigraph import graph

OURS: Final = "ours"
ADD_COLUMNS: Final = "Lance, add_columns"
OVERWRITE: Final = "Lance, overwrite"
ALTER: Final = "DuckDB, ALTER TABLE"
CREATE: Final = "DuckDB, CREATE TABLE AS"

ROWS: Final = 1_000_000
FEW_ROWS: Final = 1_000
SPARK_ROWS: Final = 10_000_000
ROUNDS: Final = 7
SECONDS_MAX: Final = 60
"""A contestant that would take longer in all runs fewer rounds, and at least one."""

ADD_GOAL: Final = 4
"""Times that of Lance's own command, which checks nothing and makes no commit of a graph."""
RENAME_GOAL: Final = 1.3
MEMORY_GOAL: Final = 100_000_000

_END: Final = "city: String"
WITH_LEVEL: Final = branches.SCHEMA.replace(_END, f"{_END}  level: I64 @default(7)")
RENAMED: Final = branches.SCHEMA.replace(_END, 'town: String @rename_from("city")')

Outcomes = dict[str, Outcome]

READING: Final = """\
Everyone has the same people and starts each round from an untouched copy on local disk, opened
before the clock starts. A ratio divides medians of runs in turns, after warm-ups.

The new property is required and has a default, so that every row gets a value. Ours is
`graph.schema.apply` on the local engine, which plans the change, makes it one commit of the graph,
and survives a crash at any point; indexes and earlier commits stay. "Lance, add_columns" is its
own command on the same table, "Lance, overwrite" reads the table and writes it anew with one
more column. DuckDB alters its own table or creates another one, and checkpoints. Afterwards the
values of everyone were counted and summed up.

The rename is metadata: the same at a thousand rows and at many."""

MEMORY_READING: Final = """\
A driver of its own on `local[*]`: the most memory that its process had while the property was
added, less what it had with the session and the graph open. Tasks read and write the rows."""

# What a profile said when the goal was last missed; shown only while it is.
WHY_ADD_MISSED: Final = (
    "With 10,000 rows, a third of it is opening the table, which the other has done before, and a"
    " third is the sidecar and the commit of the manifest."
)
WHY_RENAME_MISSED: Final = ""
WHY_MEMORY_MISSED: Final = ""


def run(given: argparse.Namespace, folder: Path) -> str:
    """The section's text."""
    start = report.start()
    many = _people(folder / "many", given.rows, given.inputs)
    few = _people(folder / "few", FEW_ROWS, given.inputs)
    added = add_property(folder / "add", many, rounds=given.rounds)
    renamed = rename(folder / "rename", few, many, given)
    memories = measure_spark(folder / "spark", given) if given.spark else {}
    return "\n\n".join(
        [
            READING,
            f"{given.rows:,} people, at most {given.rounds} rounds.",
            report.circumstances(start),
            "### Goals",
            _goals(added, renamed, memories, given),
            "### Add a required property with a default",
            report.spreads(added, to=OURS),
            "### Rename a property",
            report.spreads(renamed, to=_at(FEW_ROWS)),
            *(["### Memory of the driver on Spark", MEMORY_READING] if memories else []),
            *(f"- {rows:,} rows: {taken / 1e6:,.0f} MB" for rows, taken in memories.items()),
        ]
    )


def add_property(folder: Path, base: Path, *, rounds: int) -> Outcomes:
    """The same new column by everyone, each on a copy of its own."""
    folder.mkdir()
    rows = social.pinned(graph.open(base), "Person").to_table()
    file = folder / "base.duckdb"
    with duckdb.connect(str(file)) as connection:
        connection.register("rows", rows)
        connection.execute("CREATE TABLE people AS SELECT * FROM rows")

    def ours() -> Answer:
        opened = _copy(base, folder / "ours")
        return timed(
            lambda: opened.schema.apply(WITH_LEVEL, engine="local"),
            lambda _: _sums(social.pinned(opened, "Person").to_table(["level"])),
        )

    def add_columns() -> Answer:
        dataset = social.pinned(_copy(base, folder / "add"), "Person")
        return timed(
            lambda: dataset.add_columns({"level": "CAST(7 AS BIGINT)"}),
            lambda _: _sums(dataset.to_table(["level"])),
        )

    def overwrite() -> Answer:
        dataset = social.pinned(_copy(base, folder / "overwrite"), "Person")

        def write() -> lance.LanceDataset:
            table = dataset.to_table()
            level = pa.repeat(pa.scalar(7, pa.int64()), len(table))
            wider = table.append_column("level", level)
            return lance.write_dataset(wider, dataset.uri, mode="overwrite")

        return timed(write, lambda after: _sums(after.to_table(["level"])))

    contestants = {
        OURS: ours,
        ADD_COLUMNS: add_columns,
        OVERWRITE: overwrite,
        ALTER: _duckdb(
            file, folder / "alter", "ALTER TABLE people ADD COLUMN level BIGINT DEFAULT 7"
        ),
        CREATE: _duckdb(
            file,
            folder / "create",
            "CREATE TABLE wider AS SELECT *, 7::BIGINT AS level FROM people; DROP TABLE people;"
            " ALTER TABLE wider RENAME TO people",
        ),
    }
    return compete(contestants, rounds=rounds, seconds_max=SECONDS_MAX)


def rename(folder: Path, few: Path, many: Path, given: argparse.Namespace) -> Outcomes:
    """The same rename of a table with few rows and of one with many."""
    folder.mkdir()

    def renaming(base: Path) -> Callable[[], Answer]:
        def run() -> Answer:
            opened = _copy(base, folder / base.name)
            return timed(
                lambda: opened.schema.apply(RENAMED, engine="local"),
                lambda _: [tuple(social.pinned(opened, "Person").schema.names)],
            )

        return run

    contestants = {_at(FEW_ROWS): renaming(few), _at(given.rows): renaming(many)}
    return compete(contestants, rounds=given.rounds, seconds_max=SECONDS_MAX)


def measure_spark(folder: Path, given: argparse.Namespace) -> dict[int, int]:
    """The bytes above idle of the driver, at two sizes."""
    folder.mkdir()
    taken = {}
    for rows in (given.spark_rows // 10, given.spark_rows):
        made = _people(folder / str(rows), rows, given.inputs)
        taken[rows] = memory.measure_change(made, WITH_LEVEL)
        shutil.rmtree(made)
    return taken


def _people(place: Path, rows: int, folder: Path) -> Path:
    """A graph with that many people."""
    source = branches.files(branches.Size(rows), folder) / "base"
    graph.init(place, branches.SCHEMA).load(source, engine="local", index=rows <= ROWS)
    return place


def _copy(base: Path, copy: Path) -> graph.Graph:
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(base, copy)
    opened = graph.open(copy)
    opened.snapshot()
    return opened


def _duckdb(base: Path, copy: Path, change: str) -> Callable[[], Answer]:
    def run() -> Answer:
        shutil.copy(base, copy)
        with duckdb.connect(str(copy)) as connection:
            connection.execute("SELECT count(*) FROM people").fetchall()
            return timed(
                lambda: connection.execute(f"{change}; CHECKPOINT"),
                lambda _: connection.execute("SELECT count(*), sum(level) FROM people").fetchall(),
            )

    return run


def _sums(table: pa.Table) -> list[tuple[int, int]]:
    return [(len(table), int(table["level"].to_numpy().sum()))]


def _at(rows: int) -> str:
    return f"{rows:,} rows"


def _goals(
    added: Outcomes, renamed: Outcomes, memories: dict[int, int], given: argparse.Namespace
) -> str:
    lines = []
    goal = partial(report.goal, is_measured=given.rows >= ROWS)
    if ratio := report.ratio_of(added[OURS], added[ADD_COLUMNS]):
        found = (
            f"a new property takes {ratio:.2f} times Lance's add_columns; the goal is {ADD_GOAL}"
        )
        lines.append(goal(found, WHY_ADD_MISSED, is_met=ratio <= ADD_GOAL))
    if ratio := report.ratio_of(renamed[_at(given.rows)], renamed[_at(FEW_ROWS)]):
        found = f"a rename takes {ratio:.2f} times as long with {given.rows:,} rows as with"
        found += f" {FEW_ROWS:,}; the goal is {RENAME_GOAL}"
        lines.append(goal(found, WHY_RENAME_MISSED, is_met=ratio <= RENAME_GOAL))
    if memories:
        most = max(memories.values())
        found = f"the driver takes {most / 1e6:,.0f} MB above idle for {max(memories):,} rows"
        found += f"; the goal is {MEMORY_GOAL / 1e6:,.0f}"
        lines.append(goal(found, WHY_MEMORY_MISSED, is_met=most <= MEMORY_GOAL))
    return "\n".join(lines)


def _arguments() -> argparse.Namespace:
    parser = program.parser(__doc__, "quick", "inputs", "spark")
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--spark-rows", type=int, default=SPARK_ROWS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    given = parser.parse_args()
    if given.quick:
        given.rows, given.spark_rows, given.rounds = 10_000, 20_000, 2
    return given


if __name__ == "__main__":
    program.run("Schema", _arguments(), run)

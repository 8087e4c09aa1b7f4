"""Scale: what steps of work on a graph cost at three sizes, and by these slopes at a large one.

python -m benchmarks.scale measure ROWS [STEP ...]   # keeps what it finds, step by step
python -m benchmarks.scale [--write]                 # the tables of all that was measured

Steps are measured one at a time, so that a run can be divided; `docs/scale.md` uses the tables.
"""

import argparse
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

from benchmarks import inputs, report
from benchmarks.scale_steps import (
    RANK_ROUNDS,
    ROWS_PER_NODE,
    STEPS,
    UPSERTED_SHARE,
    Cost,
    size_of,
    write_changes,
)
from tests.support.minio import find_minio

SIZES: Final = (1_000_000, 5_000_000, 25_000_000)
LARGE: Final = 11_000_000_000
"""A billion nodes and ten billion edges."""
CORES: Final = 800
"""A hundred workers with eight cores each."""

READING: Final = f"""\
Each step runs once at each size, in a process of its own, on Spark in local mode: a load of Parquet
into a graph without rows; an upsert of one in {UPSERTED_SHARE} people, half of them new; the
indexes; a query that joins all edges of a type with their nodes and counts by group; {RANK_ROUNDS}
rounds of PageRank; an export to Parquet; and the load once more, from a bucket of MinIO into it, to
count requests, on a busy machine. Of {ROWS_PER_NODE} rows one is a node. Keys and nodes are
shuffled, as a billion nodes require; every worker would hold so few in memory. "Per million rows"
is the slope from the second size to the third, and in parentheses that from the first to the
second; the last column continues the former to {LARGE:,} rows."""


@dataclass(frozen=True, slots=True)
class Measure:
    """One figure of a step: its title, its value, and how it is shown.

    Attributes:
        is_projected: Whether it continues to grow by its slope: what a task takes is bounded by
            the size of tasks, and in local mode Java has driver and tasks in one process.
    """

    title: str
    value: Callable[[Cost], float]
    show: Callable[[float], str]
    is_projected: bool = True


def _bytes(count: float) -> str:
    for unit, factor in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if abs(count) >= factor:
            return f"{count / factor:,.1f} {unit}"
    return f"{count:,.0f} B"


def _count(count: float) -> str:
    return f"{count:,.0f}" if abs(count) >= 10 else f"{count:,.1f}"


MEASURES: Final = (
    Measure("Bytes shuffled", lambda cost: cost.shuffled_bytes, _bytes),
    Measure("Rows of Spark that are shuffled", lambda cost: cost.pieces, _count),
    Measure("Bytes that tasks send to the driver", lambda cost: cost.result_bytes, _bytes),
    Measure("Driver: Python, most", lambda cost: cost.driver_bytes, _bytes),
    Measure("Heap of Java, afterwards", lambda cost: cost.heap_bytes, _bytes, is_projected=False),
    Measure("A Python worker, most", lambda cost: cost.worker_bytes, _bytes, is_projected=False),
    Measure("Tasks", lambda cost: cost.tasks, _count),
    Measure("Seconds of all tasks", lambda cost: cost.task_seconds, _count),
    Measure("Files", lambda cost: cost.files, _count),
    Measure("Bytes of files", lambda cost: cost.file_bytes, _bytes),
    Measure("Requests to S3", lambda cost: sum(cost.requests.values()), _count),
)

Costs = Mapping[str, Mapping[int, Cost]]
"""By step, then by rows."""


@dataclass(frozen=True, slots=True)
class Slope:
    """How a figure grows by row, between the first two sizes and between the last two."""

    early: float
    late: float
    last: float
    last_rows: int

    @classmethod
    def of(cls, values: Mapping[int, float]) -> "Slope":
        """Of the values at three sizes.

        >>> Slope.of({1: 10.0, 5: 50.0, 25: 250.0}).at(1_000)
        10000.0
        """
        (first, low), (second, middle), (third, high) = sorted(values.items())
        return cls(
            (middle - low) / (second - first), (high - middle) / (third - second), high, third
        )

    def at(self, rows: int) -> float:
        """The figure at so many rows, by the later slope; never less than what was measured."""
        return self.last + max(0.0, self.late) * (rows - self.last_rows)


def measure(rows: int, steps: Sequence[str], folder: Path) -> None:
    """Measure steps in turn, and keep what each cost."""
    inputs.parquet(size_of(rows))
    place = folder / f"{rows}"
    for name in steps:
        if name == "s3" and find_minio() is None:
            print("requests are not counted: MinIO is not here (make minio)")
            continue
        if name == "load":
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir(parents=True)
            write_changes(rows, place)
        shutil.rmtree(place / "export", ignore_errors=True)
        command = [sys.executable, "-m", "benchmarks.scale_steps", f"{rows}", name, str(place)]
        root = Path(__file__).parents[1]
        done = subprocess.run(command, cwd=root, stdout=subprocess.PIPE, text=True, check=True)
        cost = Cost(**json.loads(done.stdout.splitlines()[-1]))
        _file(folder, rows, name).write_text(json.dumps(asdict(cost)))
        print(f"{rows:,} {name}: {cost}")
    shutil.rmtree(place / "export", ignore_errors=True)


def read(folder: Path) -> Costs:
    """What was measured so far."""
    costs: dict[str, dict[int, Cost]] = {}
    for name in STEPS:
        files = {rows: _file(folder, rows, name) for rows in SIZES}
        costs[name] = {
            rows: Cost(**json.loads(file.read_text()))
            for rows, file in files.items()
            if file.exists()
        }
    return costs


def section(costs: Costs, start: report.Start) -> str:
    """The section's text."""
    parts = [READING, report.circumstances(start)]
    for each in MEASURES:
        if lines := list(_lines(each, costs)):
            head = ["", *(f"{rows:,}" for rows in SIZES), "per million rows", f"{LARGE:,}"]
            parts += [f"### {each.title}", report.table(head, lines)]
    return "\n\n".join(parts)


def _lines(each: Measure, costs: Costs) -> Sequence[Sequence[str]]:
    lines = []
    for name, by_rows in costs.items():
        values = {rows: each.value(cost) for rows, cost in by_rows.items()}
        if not any(values.values()):
            continue
        shown = [each.show(values[rows]) if rows in values else "-" for rows in SIZES]
        if len(values) < len(SIZES):
            lines.append([name, *shown, "-", "-"])
            continue
        slope = Slope.of(values)
        late, early = each.show(slope.late * 1e6), each.show(slope.early * 1e6)
        large = each.show(slope.at(LARGE)) if each.is_projected else "-"
        lines.append([name, *shown, f"{late} ({early})", large])
    return lines


def _file(folder: Path, rows: int, step: str) -> Path:
    return folder / f"{rows}-{step}.json"


def main() -> None:
    """Measure, or print what was measured, and with `--write` keep it in RESULTS.md."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true", help="keep the answer in RESULTS.md")
    parser.add_argument("--folder", type=Path, default=inputs.FOLDER / "scale")
    parser.add_argument("measure", nargs="*", help="`measure`, the rows, and steps")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    if given.measure:
        [_, rows, *steps] = given.measure
        measure(int(rows), steps or list(STEPS), given.folder)
        return
    text = section(read(given.folder), replace(report.start(), load=None))
    print(text)
    if given.write:
        report.write_section("Scale", text)


if __name__ == "__main__":
    main()

"""Starts: the processor time of a command from nothing to its end, beside what it stands on.

python -m benchmarks.start [--rounds N] [--write]
"""

import argparse
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from benchmarks import program, report
from benchmarks.rounds import Answer, Outcome, Timed, UnableError, compete
from omnigraph import graph

OURS: Final = "ours"
WITH_PANDAS: Final = "ours, with pandas"
PYTHON: Final = "python -c pass"
TYPER: Final = "import typer"
LIBRARIES: Final = "import lance, duckdb, sqlglot"

ROUNDS: Final = 15
HELP_GOAL: Final = 0.150
QUERY_GOAL: Final = 1.0

SCHEMA: Final = "node Person { name: String @key  age: I32? }"
INSERT: Final = 'query q() { insert Person { name: "Ada"  age: 36 } }'
QUERY: Final = "query q($n: String) { match { $p: Person {name: $n} } return { $p.name, $p.age } }"

READING: Final = """\
Seconds of processor time, of all threads, that a process takes from its start to its end, in turns.
The help is what `omnigraph --help` prints; the query finds one of a few people by name, in a graph
on local disk, and prints a table. Beside them is Python alone, and Python with what the command
stands on imported and nothing done with it. All run as without the extra `spark`; where pandas is
installed, pyarrow imports it, and the query is shown with that, too."""

HIDING: Final = """\
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name == "pandas":
            raise ModuleNotFoundError(name=name)

sys.meta_path.insert(0, Absent())
"""

WHY_HELP_MISSED: Final = "Most of it is importing typer."
WHY_QUERY_MISSED: Final = (
    "Most of it is importing Lance, with pyarrow and numpy, DuckDB and sqlglot."
)


def run(rounds: int, folder: Path) -> str:
    """The section's text."""
    start = report.start()
    made = graph.init(folder / "graph", SCHEMA)
    made.mutate(INSERT)
    bare = _without_pandas(folder / "bare")
    query = ["query", "--store", made.uri, "-e", QUERY, "--param", "n=Ada"]
    outcomes = {
        "omnigraph --help": compete(
            {
                OURS: process(omnigraph("--help"), prints="Usage: omnigraph"),
                PYTHON: process(_python("pass")),
                TYPER: process(_python(TYPER)),
            },
            rounds=rounds,
        ),
        "omnigraph query": compete(
            {
                OURS: process(omnigraph(*query), prints="Ada", environment=bare),
                WITH_PANDAS: process(omnigraph(*query), prints="Ada"),
                PYTHON: process(_python("pass")),
                LIBRARIES: process(_python(LIBRARIES), environment=bare),
            },
            rounds=rounds,
        ),
    }
    helps, queries = outcomes.values()
    goals = [
        *_goal("the help", helps[OURS], HELP_GOAL, WHY_HELP_MISSED),
        *_goal("a query of a small graph", queries[OURS], QUERY_GOAL, WHY_QUERY_MISSED),
    ]
    return "\n\n".join(
        [
            READING,
            f"{rounds} rounds after two warm-ups.",
            report.circumstances(start),
            "### Goals",
            "\n".join(goals),
            "### Ours divided by others",
            *(
                report.ratios({task: {name: each[name] for name in (OURS, other)}}, to=other)
                for task, each in outcomes.items()
                for other in each
                if other != OURS
            ),
            "### Medians, for scale only",
            *(report.times({task: each}) for task, each in outcomes.items()),
        ]
    )


def _goal(what: str, found: Outcome, seconds: float, why_missed: str) -> list[str]:
    if not isinstance(found, Timed):
        return []
    line = f"{what} takes {found.median:.3f} s of processor time; the goal is {seconds:g}"
    return [report.goal(line, why_missed, is_met=found.median <= seconds)]


def omnigraph(*arguments: str) -> list[str]:
    """A command as it is installed."""
    return [str(Path(sys.executable).with_name("omnigraph")), *arguments]


def _python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def _without_pandas(folder: Path) -> dict[str, str]:
    """The variables of a process for which pandas is not installed."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(HIDING)
    return {**os.environ, "PYTHONPATH": str(folder)}


def process(
    command: list[str], *, prints: str = "", environment: Mapping[str, str] | None = None
) -> Callable[[], Answer]:
    """A process from its start to its end, if it ends well and prints what it should."""

    def run() -> Answer:
        before = _seconds_of_children()
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        seconds = _seconds_of_children() - before
        if done.returncode or prints not in done.stdout:
            message = f"exit code {done.returncode}: {done.stderr.strip()[:80]}"
            raise UnableError(message)
        return seconds, []

    return run


def _seconds_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _arguments() -> argparse.Namespace:
    parser = program.parser(__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    return parser.parse_args()


if __name__ == "__main__":
    program.run("Start", _arguments(), lambda given, folder: run(given.rounds, folder))

"""Starts: what a command takes from nothing to its end.

python -m benchmarks.start [--rounds N] [--write]
"""

import argparse
import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Mapping
from functools import partial
from itertools import count
from pathlib import Path
from typing import Final

from benchmarks import program, report
from benchmarks.rounds import WARM_UPS, Answer, Outcome, Timed, UnableError, compete
from omnigraph import graph

OURS: Final = "ours"
PYTHON: Final = "python -c pass"
TYPER: Final = "import typer"
LIBRARIES: Final = "import lance, duckdb, sqlglot"

ROUNDS: Final = 15
HELP_GOAL: Final = 0.150
COLD_GOAL: Final = 0.8
"""Seconds of processor time of a command."""

PEOPLE: Final = 4_000
FRIENDS: Final = 4_000

SCHEMA: Final = "node Person { name: String @key  age: I32? }\nedge Knows: Person -> Person"
INSERT: Final = "query q($n: String) { insert Person { name: $n } }"
QUERY: Final = "query q($n: String) { match { $p: Person {name: $n} } return { $p.name, $p.age } }"

READING: Final = """\
Seconds of processor time, of all threads, that a process takes from its start to its end, in turns.
The help is what `omnigraph --help` prints. The other commands work on a graph of 4,000 people and
4,000 edges on local disk: find one by key, insert one, create a branch, merge a branch with one
commit. Beside them is Python alone, and Python with what a command stands on imported and nothing
done with it. All run as without the extra `spark`, with compiled modules."""

HIDING: Final = """\
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name == "pandas":
            raise ModuleNotFoundError(name=name)

sys.meta_path.insert(0, Absent())
"""

WHY_HELP_MISSED: Final = "Most of it is importing typer."
WHY_COLD_MISSED: Final = "Most of it is importing Lance, with pyarrow and numpy, and our modules."

_numbers = count()

Task = Callable[[graph.Graph], list[str]]
"""The arguments of a command that has not run before; what it needs is prepared."""

Race = Callable[[Mapping[str, Callable[[], Answer]]], dict[str, Outcome]]
"""Times contestants in turns."""


def run(rounds: int, folder: Path, *, warm_ups: int = WARM_UPS) -> str:
    """The section's text."""
    start = report.start()
    race = partial(compete, rounds=rounds, warm_ups=warm_ups)
    made = _social_graph(folder)
    bare = _without_pandas(folder / "bare")
    cold = {
        "help": race(
            {
                OURS: process(omnigraph("--help"), prints="Usage: omnigraph", environment=bare),
                PYTHON: process(_python("pass"), environment=bare),
                TYPER: process(_python(TYPER), environment=bare),
            }
        ),
        **{
            name: race(
                {
                    OURS: process(_command(task, made), environment=bare),
                    PYTHON: process(_python("pass"), environment=bare),
                    LIBRARIES: process(_python(LIBRARIES), environment=bare),
                }
            )
            for name, task in TASKS.items()
        },
    }
    goals = [
        *_goal("the help", cold["help"][OURS], HELP_GOAL, WHY_HELP_MISSED),
        *(
            line
            for name in TASKS
            for line in _goal(name, cold[name][OURS], COLD_GOAL, WHY_COLD_MISSED)
        ),
    ]
    return "\n\n".join(
        [
            READING,
            f"{rounds} rounds after {warm_ups} warm-ups.",
            report.circumstances(start),
            "### Goals",
            "\n".join(goals),
            "### Ours divided by others",
            *(
                report.ratios({task: {name: each[name] for name in (OURS, other)}}, to=other)
                for task, each in cold.items()
                for other in each
                if other != OURS
            ),
            "### Medians, for scale only",
            *(report.times({task: each}) for task, each in cold.items()),
        ]
    )


def _social_graph(folder: Path) -> graph.Graph:
    made = graph.init(folder / "graph", SCHEMA)
    people = [{"type": "Person", "data": {"name": f"p{n}", "age": n % 90}} for n in range(PEOPLE)]
    edges = [
        {"edge": "Knows", "from": f"p{n}", "to": f"p{(7 * n + 1) % PEOPLE}"} for n in range(FRIENDS)
    ]
    path = folder / "people.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in [*people, *edges]))
    made.load(path, mode="append")
    return made


def _query(made: graph.Graph) -> list[str]:
    return omnigraph("query", "--store", made.uri, "-e", QUERY, "--param", "n=p77")


def _mutate(made: graph.Graph) -> list[str]:
    name = f"n=new{next(_numbers)}"
    return omnigraph("mutate", "--store", made.uri, "-e", INSERT, "--param", name)


def _create_branch(made: graph.Graph) -> list[str]:
    return omnigraph("branch", "create", f"b{next(_numbers)}", "--store", made.uri)


def _merge(made: graph.Graph) -> list[str]:
    number = next(_numbers)
    made.branches.create(f"m{number}")
    made.at(branch=f"m{number}").mutate(INSERT, {"n": f"merged{number}"})
    # So that it is no fast-forward.
    made.mutate(INSERT, {"n": f"meanwhile{number}"})
    return omnigraph("branch", "merge", f"m{number}", "--store", made.uri)


TASKS: Final[Mapping[str, Task]] = {
    "query by key": _query,
    "one-row mutate": _mutate,
    "branch create": _create_branch,
    "branch merge": _merge,
}


def _command(task: Task, made: graph.Graph) -> Callable[[], list[str]]:
    return lambda: task(made)


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
    kept = {
        name: value
        for name, value in os.environ.items()
        # As installed: modules are compiled once, and nothing of this machine decides.
        if name != "PYTHONDONTWRITEBYTECODE" and not name.startswith("OMNIGRAPH_")
    }
    return {**kept, "PYTHONPATH": str(folder), "XDG_CACHE_HOME": str(folder / "cache")}


def process(
    command: list[str] | Callable[[], list[str]],
    *,
    prints: str = "",
    environment: Mapping[str, str] | None = None,
) -> Callable[[], Answer]:
    """The processor time of a process, if it ends well and prints what it should.

    Args:
        command: The command, or what prepares and returns it.
    """

    def run() -> Answer:
        words = command() if callable(command) else command
        before = _seconds_of_children()
        done = subprocess.run(words, capture_output=True, text=True, check=False, env=environment)
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

"""The tour: every step prints the command that a user would type, and runs it."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import unified_diff
from importlib import resources
from pathlib import Path
from typing import Final

import omnigraph
from omnigraph.cli.main import main
from omnigraph_demo.world import World

GRAPH: Final = "science.omni"
LINES: Final = "science.jsonl"
SCHEMA: Final = "science.pg"
QUERIES: Final = "science.gq"

_CITED: Final = "10.5555/1"
_QUERY_FILE: Final = ("--query", QUERIES)
_SLIPS: Final = """\
{"type": "Person", "data": {"name": "Zoe", "born": "1990-13-01", "field": "physics", "bio": ""}}
{"type": "Paper", "data": {"doi": "10.5555/1", "title": "Again", "year": 2026, "abstract": ""}}
{"edge": "Wrote", "from": "Zoë", "to": "10.5555/1"}
{"edge": "Cites", "from": "10.5555/2", "to": "10.5555/1", "data": {"why": "because"}}
"""
_DECISIONS: Final = """\
[
  {"type": "Paper", "id": "10.5555/1", "property": "title", "value": "Catalysts, revised"}
]
"""
_NEXT: Final = "next.pg"
_CHANGES: Final = {
    "  born: Date\n": '  birthday: Date @rename_from("born")\n',
    "  bio: String\n": "",
    "  abstract: String\n": "  abstract: String\n  reads: U32 @default(0)\n",
}
_INVALID: Final = 3
_CONFLICT: Final = 4
"""Exit codes of commands."""

_BORN: Final = "query q() { match { $p: Person } return { $p.name $p.born } limit 2 }"


@dataclass(frozen=True, slots=True)
class Tour:
    """A tour in a directory of its own.

    Attributes:
        rows: How many rows the graph has.
        engine: The engine that loads them.
    """

    directory: Path
    rows: int
    engine: str

    def run(self) -> None:
        """Run every step.

        Raises:
            omnigraph.InternalError: a step did not end as it should.
        """
        with _work_in(self.directory):
            start = time.monotonic()
            for step in (
                self._begin,
                self._load,
                self._ask,
                self._refuse,
                self._branch,
                self._merge,
                self._travel,
                self._change,
                self._crash,
            ):
                step()
            self._end(time.monotonic() - start)

    def _begin(self) -> None:
        _step("1. A graph begins with a schema")
        for name in (SCHEMA, QUERIES):
            text = resources.files("omnigraph_demo").joinpath(name).read_text("utf-8")
            Path(name).write_text(text, "utf-8")
        _show_file(SCHEMA)
        _export({"OMNIGRAPH_STORE": GRAPH, "OMNIGRAPH_ACTOR": "ada"})
        _omnigraph("init", "--schema", SCHEMA, "-m", "a world of papers")

    def _load(self) -> None:
        _step("2. A file of all types, in any order, becomes one commit")
        start = time.monotonic()
        count = World(self.rows).write(Path(LINES))
        size = Path(LINES).stat().st_size / 1e6
        _note(f"made {LINES}: {count:,} lines, {size:,.0f} MB, {time.monotonic() - start:.1f} s")
        _show_file(LINES, 3)
        start = time.monotonic()
        _omnigraph(
            "load", "--data", LINES, "--mode", "append", "--engine", self.engine, "-m", "all of it"
        )
        seconds = time.monotonic() - start
        _note(f"{count:,} rows typed, checked, committed and indexed in {seconds:.0f} s")

    def _ask(self) -> None:
        _step("3. Ask, by what is linked and by what is meant")
        _show_file(QUERIES, 10)
        _omnigraph("query", "most_cited", *_QUERY_FILE, "--param", "field=computing")
        _omnigraph("query", "citing", *_QUERY_FILE, "--param", f"doi={_CITED}")
        _omnigraph("query", "colleagues", *_QUERY_FILE, "--param", "name=Ada Adeyemi")
        # A load on Spark leaves texts to be embedded later; any other has done it.
        _omnigraph("embed", "--quiet")
        _omnigraph("query", "about", *_QUERY_FILE, "--param", "what=brain cells that change")

    def _refuse(self) -> None:
        _step("4. What breaks a rule is refused, with all that is wrong and where")
        Path("slips.jsonl").write_text(_SLIPS, "utf-8")
        _show_file("slips.jsonl")
        _omnigraph("load", "--data", "slips.jsonl", "--mode", "append", ends=_INVALID)
        _omnigraph("mutate", "-e", 'query q() { insert Papr { doi: "1" } }', ends=_INVALID)

    def _branch(self) -> None:
        _step("5. Two people edit, each on a branch; main sees nothing of it")
        _omnigraph("branch", "create", "review/ada")
        _omnigraph("branch", "create", "review/bob")
        ada = ("--branch", "review/ada", *_QUERY_FILE)
        bob = ("--branch", "review/bob", *_QUERY_FILE, "--actor", "bob")
        renamed = ("--param", f"doi={_CITED}", "--param")
        _omnigraph("mutate", "retitle", *ada, *renamed, "title=Adaptive catalysts")
        _omnigraph(
            *("mutate", "publish", *ada, "--param", "doi=10.5555/new", "--param", "title=New"),
            *("--param", "author=Ada Adeyemi", "--param", f"cited={_CITED}"),
        )
        _omnigraph("mutate", "retitle", *bob, *renamed, "title=Catalysts")
        _omnigraph("diff", "main", "review/ada", "--rows")

    def _merge(self) -> None:
        _step("6. The first merges at once; the second meets a conflict, and is decided")
        _omnigraph("branch", "merge", "review/ada", "--delete-branch", "-m", "Ada reviewed")
        _omnigraph("branch", "merge", "review/bob", ends=_CONFLICT)
        Path("decisions.json").write_text(_DECISIONS, "utf-8")
        _show_file("decisions.json")
        _omnigraph("branch", "merge", "review/bob", "--resolve", "decisions.json", "-m", "agreed")

    def _travel(self) -> None:
        _step("7. Nothing is forgotten")
        _omnigraph("log", "--graph")
        loaded = self._first("load")
        query = ("query", "paper", *_QUERY_FILE, "--param", f"doi={_CITED}")
        _omnigraph(*query)
        _omnigraph(*query, "--commit", loaded)

    def _change(self) -> None:
        _step("8. The schema changes, rows and all; what was before keeps its own")
        text = Path(SCHEMA).read_text("utf-8")
        for line, changed in _CHANGES.items():
            text = text.replace(line, changed)
        Path(_NEXT).write_text(text, "utf-8")
        _show_command("diff", SCHEMA, _NEXT)
        for line in unified_diff(Path(SCHEMA).read_text("utf-8").splitlines(), text.splitlines()):
            if line.startswith(("+ ", "- ")):
                _note(line)
        new = ("--schema", _NEXT)
        _omnigraph("schema", "plan", *new)
        _omnigraph("schema", "apply", *new, "-m", "birthdays, reads, and no bios")
        born = ("query", "-e", _BORN)
        _omnigraph(*born, ends=_INVALID)
        _omnigraph(*born, "--commit", self._first("load"))

    def _crash(self) -> None:
        _step("9. A writer is killed after it has moved one of three tables; the next one mends it")
        cited = ("--param", f"cited={_CITED}", "--param", "author=Ada Adeyemi")
        publish = ("mutate", "publish", *_QUERY_FILE, *cited, "--param")
        _run_killed(*publish, "doi=10.5555/lost", "--param", "title=Lost")
        _omnigraph("recovery", "list")
        _omnigraph(*publish, "doi=10.5555/next", "--param", "title=Next")
        _omnigraph("recovery", "list")
        _omnigraph("query", "paper", *_QUERY_FILE, "--param", "doi=10.5555/lost", "--json")
        _omnigraph("check")

    def _end(self, seconds: float) -> None:
        _note(
            f"\nThat took {seconds:.0f} s. The graph stays in {self.directory}; remove it at will."
        )
        _note("What to try next, there, with OMNIGRAPH_STORE exported as above:")
        for line in (
            f"omnigraph query citing --query {QUERIES} --param doi=10.5555/2 --engine spark",
            "omnigraph export out.jsonl --type Company",
            "omnigraph schema show --format mermaid",
            f"omnigraph serve {GRAPH} --open",
            f'python -c \'import omnigraph; print(omnigraph.open("{GRAPH}").query('
            '"query n() { match { $p: Paper } return { count($p) as papers } }").rows())\'',
        ):
            _note(f"  {line}")

    def _first(self, operation: str) -> str:
        commits = omnigraph.open(GRAPH, read_only=True).commits.list()
        return str(next(commit.commit_id for commit in commits if commit.operation == operation))


@contextmanager
def _work_in(directory: Path) -> Iterator[None]:
    """Run the block in a directory; the environment is restored afterwards."""
    before, environment = Path.cwd(), dict(os.environ)
    os.chdir(directory)
    try:
        yield
    finally:
        os.chdir(before)
        os.environ.clear()
        os.environ.update(environment)


def _step(title: str) -> None:
    bold, plain = ("\x1b[1m", "\x1b[0m") if sys.stdout.isatty() else ("", "")
    _note(f"\n{bold}{title}{plain}")


def _note(text: str) -> None:
    # The next output may be on standard error.
    print(text.removesuffix("\n"), flush=True)


def _show_command(*words: str) -> None:
    _note(f"$ {shlex.join(words)}")


def _export(variables: Mapping[str, str]) -> None:
    os.environ.update(variables)
    _note("$ export " + " ".join(f"{name}={value}" for name, value in variables.items()))


def _show_file(name: str, count: int | None = None) -> None:
    _show_command("cat", name) if count is None else _show_command("head", f"-{count}", name)
    with Path(name).open(encoding="utf-8") as file:
        _note("".join(line for place, line in enumerate(file) if count is None or place < count))


def _omnigraph(*words: str, ends: int = 0) -> None:
    _show_command("omnigraph", *words)
    code = main(words)
    if code not in (ends, 0):
        # The command has printed why, and later steps depend on it.
        raise SystemExit(code)
    if code != ends:
        message = f"omnigraph {words[0]} ended with {code}, expected {ends}"
        raise omnigraph.InternalError(message)


def _run_killed(*words: str) -> None:
    """Run a command in a process of its own, which is killed in the middle of its write."""
    variable = "OMNIGRAPH_FAILPOINTS=write.after_each_apply=kill"
    _note(f"$ {variable} {shlex.join(('omnigraph', *words))}")
    environment = {**os.environ, **dict([variable.split("=", 1)])}
    command: Sequence[str] = (sys.executable, "-m", "omnigraph", *words)
    code = subprocess.run(command, env=environment, check=False).returncode
    _note("Killed" if code < 0 else f"ended with {code}")
    if code >= 0:
        message = "the writer was not killed"
        raise omnigraph.InternalError(message)

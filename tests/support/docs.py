"""Runs the examples of a page as its reader would, and compares their output with the page.

A page may have these fenced blocks:

- `console`: commands after `$ `, each followed by its whole output. They run in one shell per
  page, in an empty directory. A command continues after a line that ends in a backslash.
- `$ cat FILE`, where FILE does not exist yet, creates it: the lines shown are its text.
- `python`: run in one namespace per page, in that same directory. A plain block right after one is
  its output; without one it prints nothing.
- `pg`: a schema without errors. `gq`: queries without errors, of the schema in the first `.pg` file
  that the page created.

Times, digests and the directory's own path differ from run to run and are not compared, nor are
blanks at the end of a line. Ids differ, too, and must be the same where the page has the same one.
`…` matches anything within a line. `make` is shown but not run, because it runs this test.
`OMNIGRAPH_BLESS=1` writes the current output into a page that differs anywhere, all of it: a page
shows one session.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import chdir, redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from omnigraph.lang.diagnostics import errors_in
from omnigraph.query.compile import read_queries
from omnigraph.schema.parser import parse_schema, read_schema
from tests.support.commands import Stream, run_here
from tests.support.environments import Environment

_NOT_RUN: Final = "make"
_NOWHERE: Final = 0
_SHELL: Final = re.compile(r"[$`|<>;&(){}*?~#!\n]")
"""What a shell does more with than to split words, outside of single quotes."""
_CREATES: Final = re.compile(r"cat (?P<file>[\w./-]+)")
_ID: Final = re.compile(r"\b[0-9A-HJKMNP-TV-Z]{26}\b")
_VARYING: Final = (
    (_ID, "<id>"),
    (re.compile(r"\b\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)?"), "<time>"),
    (re.compile(r"\b[0-9a-f]{64}\b"), "<digest>"),
)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: its language, the number of its first line, and its lines."""

    language: str
    start: int
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """One command or program, and its output according to the page."""

    code: str
    start: int
    expected: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Example:
    """An example that was run, its output, and whether that matches the page."""

    step: Step
    printed: tuple[str, ...]
    is_right: bool

    def __str__(self) -> str:
        expected = "\n".join(f"  - {each}" for each in self.step.expected)
        actual = "\n".join(f"  + {each}" for each in self.printed)
        return f"line {self.step.start}: {self.step.code}\n{expected}\n{actual}"


def blocks(text: str) -> Iterator[Block]:
    """The fenced blocks of a page, in order."""
    language, start, lines = None, 0, []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.startswith("```"):
            lines.append(line)
        elif language is None:
            language, start, lines = line[3:].strip(), number + 1, []
        else:
            yield Block(language, start, tuple(lines))
            language = None
    assert language is None, f"the block before line {start} has no end"


def commands(block: Block) -> Iterator[Step]:
    """The commands of a console block."""
    code, start, expected = "", block.start, list[str]()
    for number, line in enumerate(block.lines, block.start):
        if line.startswith("$ "):
            if code:
                yield Step(code, start, tuple(expected))
            code, start, expected = line[2:], number + 1, []
        elif code.endswith("\\") and not expected:
            code, start = f"{code}\n{line}", number + 1
        else:
            assert code, f"line {number}: output without a command"
            expected.append(line)
    if code:
        yield Step(code, start, tuple(expected))


def run_examples(
    page: Path, folder: Path, *, environment: Environment | None = None
) -> list[Example]:
    """Every example of the page, as its reader would run them.

    Args:
        environment: Where to run them, if not in this one. Each block of Python then runs in its
            own process.
    """
    text = page.read_text(encoding="utf-8")
    page_blocks = list(blocks(text))
    follows = _outputs(page_blocks, text)
    run = _Page(folder, page.name, environment)
    with run.shell:
        return [
            each
            for place, block in enumerate(page_blocks)
            for each in run.block(block, follows.get(place))
        ]


def bless(page: Path, examples: Iterable[Example], folder: Path) -> None:
    """Write the current output into the page."""
    lines = page.read_text(encoding="utf-8").split("\n")
    for example in sorted(examples, key=lambda each: -each.step.start):
        if example.is_right and example.step.start == _NOWHERE:
            continue
        assert example.step.start != _NOWHERE, (
            f"the page has no plain block after\n{example.step.code}"
        )
        first = example.step.start - 1
        if matches(example.step.expected, example.printed, folder):
            pairs = zip(example.step.expected, example.printed, strict=True)
            shown = [_update_varying(said, seen) for said, seen in pairs]
        else:
            shown = [line.replace(str(folder), "…") for line in example.printed]
        lines[first : first + len(example.step.expected)] = shown
    page.write_text("\n".join(lines), encoding="utf-8")


def _update_varying(said: str, seen: str) -> str:
    """A line of the page, with its varying parts as printed now."""
    for varying, _ in _VARYING:
        now = [each[0] for each in varying.finditer(seen)]
        around = [*_between(varying, said)]
        if len(around) == len(now) + 1:
            said = "".join(map("".join, zip(around, [*now, ""], strict=True)))
    return said


def _between(varying: re.Pattern[str], line: str) -> Iterator[str]:
    """The parts of a line before, between and after its varying parts."""
    at = 0
    for match in varying.finditer(line):
        yield line[at : match.start()]
        at = match.end()
    yield line[at:]


def matches(expected: Iterable[str], printed: Iterable[str], folder: Path) -> bool:
    """Whether output matches the page, except for varying parts."""
    said, seen = [list(map(str.rstrip, each)) for each in (expected, printed)]
    if len(said) != len(seen):
        return False
    pairs = zip(said, seen, strict=True)
    return all(_pattern(line).fullmatch(_normalize(other, folder)) for line, other in pairs)


def _pattern(line: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, _replace_varying(line).split("…"))))


def _normalize(line: str, folder: Path) -> str:
    return _replace_varying(line.replace(str(folder), "<folder>"))


def _replace_varying(line: str) -> str:
    for varying, name in _VARYING:
        line = varying.sub(name, line)
    return line


def _outputs(page_blocks: list[Block], text: str) -> dict[int, Block]:
    """The plain blocks right after Python ones, by the positions of those."""
    lines = text.split("\n")
    pairs: dict[int, Block] = {}
    for place, (block, after) in enumerate(pairwise(page_blocks)):
        between = lines[block.start + len(block.lines) : after.start - 2]
        if block.language == "python" and after.language == "" and not "".join(between).strip():
            pairs[place] = after
    return pairs


@dataclass(slots=True)
class _Page:
    """One page while its examples run."""

    folder: Path
    name: str
    environment: Environment | None
    shell: _Shell = field(init=False)
    names: dict[str, Any] = field(default_factory=dict)
    printed: dict[str, str] = field(default_factory=dict)
    shown: dict[str, str] = field(default_factory=dict)
    schemas: list[Path] = field(default_factory=list)

    def __post_init__(self) -> None:
        variables = self.environment.variables if self.environment else _variables()
        self.shell = _Shell(self.folder, variables)

    def block(self, block: Block, output: Block | None) -> Iterator[Example]:
        match block.language:
            case "console":
                for step in commands(block):
                    yield self._compare(step, self._command(step))
            case "python":
                where = (output.start, output.lines) if output else (_NOWHERE, ())
                step = Step("\n".join(block.lines), *where)
                yield self._compare(step, self._python(step, block.start))
            case "pg" | "gq":
                self._check("\n".join(block.lines), block)
            case _:
                pass

    def _compare(self, step: Step, printed: tuple[str, ...]) -> Example:
        is_right = matches(step.expected, printed, self.folder) and self._agree(
            step.expected, printed
        )
        return Example(step, printed, is_right)

    def _agree(self, expected: Iterable[str], printed: Iterable[str]) -> bool:
        """Whether the page has the same id where the same was printed, here and before."""
        agree = True
        for said, seen in zip(expected, printed, strict=True):
            here, now = _ID.findall(said), _ID.findall(seen)
            # If … replaces some of them, it is unknown which.
            for mine, other in zip(here, now, strict=True) if len(here) == len(now) else ():
                agree &= self.printed.setdefault(mine, other) == other
                agree &= self.shown.setdefault(other, mine) == mine
        return agree

    def _command(self, step: Step) -> tuple[str, ...]:
        if step.code.split()[0] == _NOT_RUN:
            return step.expected
        made = _CREATES.fullmatch(step.code)
        if made and not (path := self.folder / made["file"]).exists():
            path.write_text("".join(f"{line}\n" for line in step.expected), encoding="utf-8")
            if path.suffix == ".pg":
                self.schemas.append(path)
            return step.expected
        if self.environment is None and (arguments := command_arguments(step.code)) is not None:
            return self._omnigraph(arguments)
        return self.shell.run(step.code)

    def _omnigraph(self, arguments: list[str]) -> tuple[str, ...]:
        """The output of the command, run in this process, which is quick."""
        variables = self.shell.exported()
        streams = Stream()
        with chdir(variables["PWD"]):
            code = run_here(arguments, variables, out=streams, err=streams)
        self.shell.remember(code)
        return tuple(streams.written().decode().splitlines())

    def _python(self, step: Step, line: int) -> tuple[str, ...]:
        if self.environment is not None:
            ran = self.environment.run("-c", step.code, cwd=self.folder)
            return tuple((ran.stdout + ran.stderr).splitlines())
        # The blank lines let an error name the line of the page.
        code = compile("\n" * (line - 1) + step.code, self.name, "exec")
        with chdir(self.folder), redirect_stdout(StringIO()) as printed:
            exec(code, self.names)
        return tuple(printed.getvalue().splitlines())

    def _check(self, text: str, block: Block) -> None:
        if block.language == "pg":
            diagnostics, source = (
                (reading := read_schema(text, self.name)).diagnostics,
                reading.source,
            )
        else:
            assert self.schemas, f"line {block.start}: the page has made no schema"
            catalog = parse_schema(self.schemas[0].read_text(encoding="utf-8"))
            queries = read_queries(text, catalog, self.name)
            diagnostics, source = queries.diagnostics, queries.source
        wrong = [each.render(source) for each in errors_in(diagnostics)]
        assert not wrong, f"the block at line {block.start} has errors\n" + "\n\n".join(wrong)


def command_arguments(code: str) -> list[str] | None:
    """The arguments of a line that runs `omnigraph` and asks nothing else of the shell.

    >>> command_arguments("omnigraph query -e 'query q() { … }' -p n=Ada")
    ['query', '-e', 'query q() { … }', '-p', 'n=Ada']
    >>> command_arguments("omnigraph log | head"), command_arguments("cat people.gq")
    (None, None)
    """
    line = code.replace("\\\n", " ")
    is_plain = _SHELL.search(re.sub(r"'[^']*'", "", line)) is None
    words = shlex.split(line) if is_plain else []
    return words[1:] if words[:1] == ["omnigraph"] else None


def _variables() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if "OMNIGRAPH" not in name}
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    return {**kept, "PATH": path, "NO_COLOR": "1", "COLUMNS": "80"}


@dataclass(slots=True)
class _Shell:
    """The shell that runs the commands of a page, each with its own output."""

    folder: Path
    variables: dict[str, str]
    process: subprocess.Popen[str] = field(init=False)

    def __enter__(self) -> _Shell:
        self.process = subprocess.Popen(
            ["bash", "--norc", "--noprofile"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=self.folder,
            env=self.variables,
        )
        return self

    def __exit__(self, *_: object) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait(10)
        self.process.stdout.close()

    def run(self, command: str) -> tuple[str, ...]:
        """The output of a command on both streams; `$?` is that of the previous command."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        mark = "--- the end of a command ---"
        self.process.stdin.write(
            f"(exit ${{code:-0}})\n{{ {command}\n}} </dev/null\ncode=$?\nprintf '\\n{mark}\\n'\n"
        )
        self.process.stdin.flush()
        lines: list[str] = []
        for line in self.process.stdout:
            if line.rstrip("\n") == mark:
                break
            lines.append(line.rstrip("\n"))
        else:
            lines.append("the shell ended")
        # The mark starts on a new line, after a last line that the command did not end.
        return tuple(lines[:-1] if lines and not lines[-1] else lines)

    def exported(self) -> dict[str, str]:
        """The variables that a command would have now, and where it would run."""
        lines = "\n".join(self.run("env -0"))
        return dict(each.split("=", 1) for each in lines.split("\0") if each)

    def remember(self, code: int) -> None:
        """Have `$?` say what a command returned that the shell did not run."""
        self.run(f"(exit {code})")

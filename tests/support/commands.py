"""Runs the command line as a user does, and returns its output."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import Any

from omnigraph.cli.main import main


@dataclass(frozen=True, slots=True)
class Answer:
    """The exit code and the output of one run of the command."""

    code: int
    data: bytes
    err: str

    @property
    def out(self) -> str:
        return self.data.decode()

    @property
    def json(self) -> Any:
        return json.loads(self.data)

    @property
    def said(self) -> str:
        """Standard error on one line, so that line breaks do not matter."""
        return " ".join(self.err.split())


class Stream(io.TextIOWrapper):
    """A standard stream of a command that runs in this process; its bytes are in memory."""

    def __init__(self, given: bytes = b"", *, is_terminal: bool = False) -> None:
        self._bytes = io.BytesIO(given)
        self._is_terminal = is_terminal
        super().__init__(self._bytes, encoding="utf-8", errors="backslashreplace", newline="\n")

    def isatty(self) -> bool:
        return self._is_terminal

    def written(self) -> bytes:
        """Everything that was written."""
        self.flush()
        return self._bytes.getvalue()


def omnigraph(
    *arguments: str,
    env: Mapping[str, str] | None = None,
    given: bytes | None = b"",
    on_terminal: bool = False,
) -> Answer:
    """Run the command in this process; a failure may never print a traceback.

    Args:
        env: Variables to set besides those of this process.
        given: What it reads from standard input; None if that is closed.
        on_terminal: Whether its output goes to a terminal.
    """
    out, err = Stream(is_terminal=on_terminal), Stream(is_terminal=on_terminal)
    environment = {**os.environ, "NO_COLOR": "1", "COLUMNS": "100", **(env or {})}
    code = run_here(arguments, environment, out=out, err=err, given=given)
    answer = Answer(code, out.written(), err.written().decode())
    assert "Traceback" not in answer.err, answer.err
    return answer


def command(*arguments: str) -> list[str]:
    """The arguments that start the command in a process of its own.

    It takes half a second: for signals, pipes and the end of a process.
    """
    return [sys.executable, "-m", "omnigraph", *arguments]


def run_here(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    *,
    out: Stream,
    err: Stream,
    given: bytes | None = b"",
) -> int:
    """The exit code of the command, run with these variables and streams."""
    with ExitStack() as stack:
        stack.enter_context(_variables(environment))
        stack.enter_context(_standard_input(None if given is None else Stream(given)))
        stack.enter_context(redirect_stdout(out))
        stack.enter_context(redirect_stderr(err))
        return main(arguments)


@contextmanager
def _variables(environment: Mapping[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    _replace_variables(environment)
    try:
        yield
    finally:
        _replace_variables(before)


def _replace_variables(environment: Mapping[str, str]) -> None:
    for name in os.environ.keys() - environment.keys():
        del os.environ[name]
    for name, value in environment.items():
        # Setting a variable is a call of C, and threads of libraries may read them.
        if os.environ.get(name) != value:
            os.environ[name] = value


@contextmanager
def _standard_input(given: Stream | None) -> Iterator[None]:
    before, sys.stdin = sys.stdin, given
    try:
        yield
    finally:
        sys.stdin = before

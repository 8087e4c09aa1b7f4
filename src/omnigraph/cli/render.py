"""How results and errors look: tables for people, JSON for programs."""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, TextIO

from omnigraph.errors import OmnigraphError

_PIPE_WIDTH: Final = 1_000_000
"""No terminal, no width: a table in a pipe is never folded."""


@dataclass(slots=True)
class Talk:
    """How this run speaks: set by `--json` and `--debug`, read when it ends."""

    json: bool = False
    debug: bool = False


def show_json(value: object) -> None:
    """Print one JSON document on standard output."""
    print(_dumped(value))  # noqa: T201  # the one place that prints data


def show_table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print rows under their column names on standard output."""
    # Imported here: only commands that draw a table pay for rich.
    from rich import box
    from rich.table import Table

    console = _console(sys.stdout)
    table = Table(box=box.SIMPLE_HEAD if console.is_terminal else None, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*("" if cell is None else str(cell) for cell in row))
    console.print(table, highlight=False, markup=False)


def show_facts(facts: Mapping[str, object]) -> None:
    """Print names and values, one a line, on standard output."""
    width = max(map(len, facts))
    for name, value in facts.items():
        if value is not None:
            print(f"{name:<{width}}  {value}")  # noqa: T201  # data, as above


def say(text: str) -> None:
    """Tell the person something, on standard error."""
    print(text, file=sys.stderr)  # noqa: T201  # the one place that talks


def show_error(error: BaseException, talk: Talk) -> None:
    """Say what went wrong, and what to do next; the stack only when it was asked for."""
    if talk.debug:
        say("".join(traceback.format_exception(error)).rstrip())
    if not isinstance(error, OmnigraphError):
        kind, said = type(error).__name__, str(error)
        facts = {"error": f"{kind}: {said}", "code": "internal"}
        hint = "this is a bug: run it again with --debug and report what that prints"
        error_text = facts["error"]
    else:
        facts = {"error": error.message, "code": error.code.value}
        hint, error_text = error.hint, error.message
    if talk.json:
        details = error.details if isinstance(error, OmnigraphError) else {}
        say(_dumped({**facts, "hint": hint, "details": details}))
        return
    say(f"error[{facts['code']}]: {error_text}")
    for note in getattr(error, "__notes__", ()):
        say(f"  {note}")
    if hint:
        say(f"  hint: {hint}")


def _console(stream: TextIO) -> Any:
    from rich.console import Console

    return Console(file=stream, width=None if stream.isatty() else _PIPE_WIDTH)


def _dumped(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, default=_plain)


def _plain(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value)

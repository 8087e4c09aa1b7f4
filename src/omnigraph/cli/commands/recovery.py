"""`omnigraph recovery`: writes that were interrupted, and what became of them.

Everything here only reads, so it works where writes are refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Annotated, Final

import typer

from omnigraph.cli import options, render
from omnigraph.errors import NotFoundError

if TYPE_CHECKING:
    from omnigraph.graph import Graph
    from omnigraph.recovery.audit import RecoveryEntry
    from omnigraph.recovery.intents import Intent
    from omnigraph.recovery.sidecars import Unreadable

group = typer.Typer(
    help="See which writes were interrupted, and what became of them.", no_args_is_help=True
)


class State(StrEnum):
    """How a write stands that has not come to its end."""

    LIVE = "live"
    INTERRUPTED = "interrupted"
    UNREADABLE = "unreadable"


_NEXT: Final = {
    State.LIVE: "somebody is at work on it, or may be until its lease runs out",
    State.INTERRUPTED: "the next command that writes brings it to an end",
    State.UNREADABLE: "nothing can be written while it is there; see docs/recovery.md",
}
"""What a person has to know of a write in that state."""


@dataclass(frozen=True, slots=True)
class Pending:
    """One sidecar as it was found: what it says, or why it says nothing."""

    operation_id: str
    state: State
    content: Intent | Unreadable


@group.command("list")
def list_recoveries(
    *,
    store: options.Store = None,
    limit: Annotated[
        int | None,
        typer.Option("--limit", "-n", metavar="N", min=0, help="Stop after this many recoveries."),
    ] = None,
    json: options.Json = False,
) -> None:
    """List writes that have not come to their end, then recoveries. Each newest first."""
    from omnigraph import graph

    opened = graph.open(options.required_store(store), read_only=True)
    pending = _pending(opened)
    ended = _ended(opened)[:limit]
    if json:
        render.show_json(
            {
                "pending": [_pending_facts(each) for each in pending],
                "recoveries": [_entry_facts(each) for each in ended],
            }
        )
        return
    if not pending and not ended:
        render.say("no write was ever interrupted")
        return
    render.show_table(
        ["operation", "state", "write", "branch", "actor", "when", "tables"],
        [*map(_pending_row, pending), *map(_entry_row, ended)],
    )
    for facts in map(_pending_facts, pending):
        if "reason" in facts:
            render.say(f"{facts['file']} cannot be acted on: {facts['reason']}")
    for state in dict.fromkeys(each.state for each in pending):
        render.say(f"{state}: {_NEXT[state]}")


@group.command("show")
def show_recovery(
    wanted: Annotated[
        str,
        typer.Argument(metavar="ID", help="The id of an operation, or of a recovery."),
    ],
    *,
    store: options.Store = None,
    json: options.Json = False,
) -> None:
    """Show one interrupted write or recovery, table by table."""
    from omnigraph import graph

    opened = graph.open(options.required_store(store), read_only=True)
    pending = [each for each in _pending(opened) if each.operation_id == wanted]
    ended = [each for each in _ended(opened) if wanted in (each.operation_id, each.recovery_id)]
    if not pending and not ended:
        message = f"no write that is pending, and no recovery, has the id {wanted[:100]}"
        raise NotFoundError(message, hint="see 'omnigraph recovery list'")
    # A recovery that was cut off near its end has left both: the write, and its entry.
    found = [*map(_pending_facts, pending), *map(_entry_facts, ended)]
    if json:
        render.show_json(found)
        return
    for facts in found:
        render.show_facts({name.replace("_", " "): _shown(fact) for name, fact in facts.items()})
    for each in pending:
        render.say(f"{each.state}: {_NEXT[each.state]}")


def _pending(opened: Graph) -> list[Pending]:
    """Every sidecar, newest first: ids are in the order in which they were made."""
    found = opened.recoveries.pending()
    pending = [
        *(Pending(each.operation_id, State.LIVE, each) for each in found.live),
        *(Pending(each.operation_id, State.INTERRUPTED, each) for each in found.interrupted),
        *(
            Pending(PurePosixPath(each.path).stem, State.UNREADABLE, each)
            for each in found.unreadable
        ),
    ]
    return sorted(pending, key=lambda each: each.operation_id, reverse=True)


def _ended(opened: Graph) -> Sequence[RecoveryEntry]:
    return opened.recoveries.list()[::-1]


def _pending_row(pending: Pending) -> Sequence[object]:
    from omnigraph.recovery.sidecars import Unreadable

    first = (pending.operation_id, pending.state)
    content = pending.content
    if isinstance(content, Unreadable):
        return (*first, None, None, None, None, None)
    when = f"{content.started_at:%Y-%m-%d %H:%M:%S}"
    tables = _listed(each.key for each in content.tables)
    return (*first, content.writer_kind, content.branch, content.actor, when, tables)


def _entry_row(entry: RecoveryEntry) -> Sequence[object]:
    return (
        entry.operation_id,
        entry.kind,
        entry.writer_kind,
        entry.branch,
        entry.recovery_for_actor,
        f"{entry.recovered_at:%Y-%m-%d %H:%M:%S}",
        _listed(each.key for each in entry.tables),
    )


def _pending_facts(pending: Pending) -> dict[str, object]:
    from omnigraph.recovery.sidecars import Unreadable

    facts: dict[str, object] = {"operation_id": pending.operation_id, "state": pending.state}
    content = pending.content
    if isinstance(content, Unreadable):
        return {**facts, "file": content.path, "reason": content.reason}
    return {
        **facts,
        "writer_kind": content.writer_kind,
        "branch": content.branch,
        "actor": content.actor,
        "message": content.message,
        "started_at": content.started_at,
        "lease_until": content.lease_until,
        "commit_id": content.commit_id,
        "resolves": content.resolves,
        "process": content.owner and content.owner.pid,
        "tables": [
            {"table_key": str(each.key), "from": each.expected_version, "to": each.post_commit_pin}
            for each in content.tables
        ],
    }


def _entry_facts(entry: RecoveryEntry) -> dict[str, object]:
    return {
        "operation_id": entry.operation_id,
        "state": entry.kind,
        "writer_kind": entry.writer_kind,
        "branch": entry.branch,
        "actor": entry.recovery_for_actor,
        "recovery_id": entry.recovery_id,
        "recovered_at": entry.recovered_at,
        "commit_id": entry.commit_id,
        "tables": [
            {"table_key": str(each.key), "from": each.from_version, "to": each.to_version}
            for each in entry.tables
        ],
    }


def _shown(fact: object) -> object:
    if not isinstance(fact, list):
        return fact
    moves = [f"{each['table_key']} from version {each['from']} to {each['to']}" for each in fact]
    return "\n".join(moves) or None


def _listed(keys: Iterable[object]) -> str:
    return ", ".join(map(str, keys))

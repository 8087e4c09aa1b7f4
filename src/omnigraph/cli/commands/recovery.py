"""`omnigraph recovery`: interrupted writes, and what became of them.

These commands only read, so they work where writes are refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Annotated, Final

import typer

from omnigraph.cli import graphs, options, render
from omnigraph.errors import NotFoundError

if TYPE_CHECKING:
    from omnigraph.recovery.entries import RecoveryEntry
    from omnigraph.recovery.pending import PendingWrite, Unreadable
    from omnigraph.remote.graph import AnyGraph

group = typer.Typer(
    help="Show which writes were interrupted, and what became of them.", no_args_is_help=True
)


class State(StrEnum):
    """The state of a write that has not ended."""

    LIVE = "live"
    INTERRUPTED = "interrupted"
    UNREADABLE = "unreadable"


_NEXT: Final = {
    State.LIVE: "somebody is in progress on it, or may be until its lease runs out",
    State.INTERRUPTED: "the next write completes it or rolls it back",
    State.UNREADABLE: "nothing can be written while it is there; see docs/recovery.md",
}
"""What to know about a write in that state."""


@dataclass(frozen=True, slots=True)
class Pending:
    """One sidecar: its content, or why it cannot be read."""

    operation_id: str
    state: State
    content: PendingWrite | Unreadable


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
    """List writes that have not ended, then recoveries. Each newest first."""
    handle = graphs.open_graph(store, read_only=True)
    pending = _pending(handle)
    recoveries = _recoveries(handle)[:limit]
    if json:
        render.show_json(
            {
                "pending": [_pending_facts(write) for write in pending],
                "recoveries": [entry.to_json() for entry in recoveries],
            }
        )
        return
    if not pending and not recoveries:
        render.say("no write was ever interrupted")
        return
    render.show_table(
        ["operation", "state", "write", "branch", "actor", "when", "tables"],
        [*map(_pending_row, pending), *map(_entry_row, recoveries)],
    )
    for facts in map(_pending_facts, pending):
        if "reason" in facts:
            render.say(f"{facts['file']} cannot be processed: {facts['reason']}")
    for state in dict.fromkeys(write.state for write in pending):
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
    handle = graphs.open_graph(store, read_only=True)
    pending = [write for write in _pending(handle) if write.operation_id == wanted]
    recoveries = [
        entry for entry in _recoveries(handle) if wanted in (entry.operation_id, entry.recovery_id)
    ]
    if not pending and not recoveries:
        message = f"no pending write or recovery has the id {wanted[:100]}"
        raise NotFoundError(message, hint="see 'omnigraph recovery list'")
    # A recovery that was interrupted near its end leaves both, the write and its entry.
    shown = [*map(_pending_facts, pending), *(entry.to_json() for entry in recoveries)]
    if json:
        render.show_json(shown)
        return
    for facts in shown:
        render.show_facts(
            {name.replace("_", " "): _format_fact(fact) for name, fact in facts.items()}
        )
    for write in pending:
        render.say(f"{write.state}: {_NEXT[write.state]}")


def _pending(handle: AnyGraph) -> list[Pending]:
    """Every sidecar, newest first: ids are ordered by the time of their creation."""
    sidecars = handle.recoveries.pending()
    pending = [
        *(Pending(write.operation_id, State.LIVE, write) for write in sidecars.live),
        *(Pending(write.operation_id, State.INTERRUPTED, write) for write in sidecars.interrupted),
        *(
            Pending(PurePosixPath(unreadable.path).stem, State.UNREADABLE, unreadable)
            for unreadable in sidecars.unreadable
        ),
    ]
    return sorted(pending, key=lambda write: write.operation_id, reverse=True)


def _recoveries(handle: AnyGraph) -> Sequence[RecoveryEntry]:
    return handle.recoveries.list()[::-1]


def _pending_row(pending: Pending) -> Sequence[object]:
    from omnigraph.recovery.pending import Unreadable

    first = (pending.operation_id, pending.state)
    content = pending.content
    if isinstance(content, Unreadable):
        return (*first, None, None, None, None, None)
    when = f"{content.started_at:%Y-%m-%d %H:%M:%S}"
    tables = _join(table.key for table in content.tables)
    return (*first, content.writer_kind, content.branch, content.actor, when, tables)


def _entry_row(entry: RecoveryEntry) -> Sequence[object]:
    return (
        entry.operation_id,
        entry.kind,
        entry.writer_kind,
        entry.branch,
        entry.recovery_for_actor,
        f"{entry.recovered_at:%Y-%m-%d %H:%M:%S}",
        _join(table.key for table in entry.tables),
    )


def _pending_facts(pending: Pending) -> dict[str, object]:
    from omnigraph.recovery.pending import Unreadable

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
        "process": content.process,
        "tables": [
            {
                "table_key": str(table.key),
                "from": table.from_version,
                "to": table.to_version,
            }
            for table in content.tables
        ],
    }


def _format_fact(fact: object) -> object:
    if not isinstance(fact, list):
        return fact
    moves = [f"{move['table_key']} from version {move['from']} to {move['to']}" for move in fact]
    return "\n".join(moves) or None


def _join(keys: Iterable[object]) -> str:
    return ", ".join(map(str, keys))

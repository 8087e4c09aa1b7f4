"""Intents: what a writer is about to do, and their encoding as sidecars."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any, Final

from omnigraph.manifest.rows import pin_row, read_pin, read_tombstone, tombstone_row
from omnigraph.model.commits import OperationKind
from omnigraph.model.ids import CommitId, OperationId
from omnigraph.model.names import MAIN, BranchName
from omnigraph.model.streams import StreamBatch, StreamStep
from omnigraph.model.tables import TableKey, TablePin, Tombstone
from omnigraph.recovery.owners import Owner

SCHEMA_VERSION: Final = 2
OLDEST_SCHEMA_VERSION: Final = 1
"""Written when graphs had one writer process: no lease, no commit id, no confirmation of merges."""

_LATER: Final = ("registrations", "tombstones", "schema_files")
"""Fields that later releases write. Acting on the others alone would do half of their work."""


@dataclass(frozen=True, slots=True)
class ForkSource:
    """The ref that a branch's own ref of a table was created from; None is main's."""

    ref: str | None


@dataclass(frozen=True, slots=True)
class TableIntent:
    """One table head that is about to move.

    Attributes:
        ref: The Lance ref whose head it is; None is the table's main.
        expected_version: The version that the manifest pinned when the write was planned.
        post_commit_pin: The head's version once the write is applied.
        confirmed_version: The head's version after all heads had moved; recorded by merges.
        forks_from: Set if `ref` was created for this write: the ref that the manifest still pins.
    """

    key: TableKey
    location: str
    ref: str | None
    expected_version: int
    post_commit_pin: int
    confirmed_version: int | None = None
    forks_from: ForkSource | None = None

    @property
    def pinned_ref(self) -> str | None:
        """The ref that the manifest pinned the table on when the write was planned."""
        return self.ref if self.forks_from is None else self.forks_from.ref


@dataclass(frozen=True, slots=True)
class SchemaIntent:
    """What a write publishes besides heads that move, if it changes the schema.

    Attributes:
        digest: The schema from its commit on.
        pins: The pins of every table that it creates, renames or moves, as they will be.
        tombstones: The tables that it drops.
    """

    digest: str
    pins: tuple[TablePin, ...] = ()
    tombstones: tuple[Tombstone, ...] = ()


@dataclass(frozen=True, slots=True)
class Intent:
    """All that recovery needs to finish or undo one write.

    Attributes:
        branch_ref: The ref that carries the branch: another branch may get its name later.
        commit_id: The id its commit will have; None in the oldest sidecars.
        lease_until: Until then no other process touches it, unless its own process is gone.
        guards: Tables that it does not move, and that no other write may move meanwhile.
        schema_digest: The schema it was planned with; it may only land on that.
        schema_intent: What it changes in the schema, if anything.
        expect_head: The commit whose rows its caller requires the branch to have.
        resolves: For a recovery, the operation it resolves.
        owner: The process that runs it.
        stream: The batch of a stream that it writes.
    """

    operation_id: OperationId
    writer_kind: OperationKind
    branch: BranchName
    started_at: datetime
    tables: tuple[TableIntent, ...]
    branch_ref: str | None = None
    actor: str | None = None
    message: str | None = None
    lease_until: datetime | None = None
    commit_id: CommitId | None = None
    merge_source_commit_id: CommitId | None = None
    guards: tuple[TableKey, ...] = ()
    schema_digest: str | None = None
    schema_intent: SchemaIntent | None = None
    expect_head: CommitId | None = None
    resolves: OperationId | None = None
    owner: Owner | None = None
    stream: StreamStep | None = None
    schema_version: int = SCHEMA_VERSION

    def overlaps(self, other: Intent) -> bool:
        """Whether the two must not run at the same time.

        Writes with one commit id are attempts of one request (`transaction.requests`).
        """
        if self.commit_id is not None and self.commit_id == other.commit_id:
            return True
        if self.branch != other.branch:
            return False
        return not self._claims().isdisjoint(other._claims())

    def _claims(self) -> frozenset[TableKey | str]:
        # By location, too: a table's key changes when its type is renamed.
        keys = (*(table.key for table in self.tables), *self.guards)
        return frozenset((*keys, *(table.location for table in self.tables)))


class UnreadableIntentError(ValueError):
    """A sidecar cannot be decoded, or this release cannot act on it."""


class NewerIntentError(UnreadableIntentError):
    """A sidecar is intact, and a newer release wrote it."""


def encode(intent: Intent) -> bytes:
    """The intent as a sidecar of the newest schema."""
    assert intent.schema_version == SCHEMA_VERSION, "older sidecars are only read"
    record = {
        "schema_version": SCHEMA_VERSION,
        "operation_id": intent.operation_id,
        "writer_kind": intent.writer_kind,
        "branch": intent.branch,
        "branch_ref": intent.branch_ref,
        "actor": intent.actor,
        "message": intent.message,
        "started_at": intent.started_at.isoformat(),
        "lease_until": intent.lease_until and intent.lease_until.isoformat(),
        "commit_id": intent.commit_id,
        "merge_source_commit_id": intent.merge_source_commit_id,
        "tables": [_encode_table(table) for table in intent.tables],
        "guards": [str(key) for key in intent.guards],
        "schema_digest": intent.schema_digest,
        "schema_intent": intent.schema_intent and _encode_schema(intent.schema_intent),
        "expect_head": intent.expect_head,
        "resolves": intent.resolves,
        "owner": intent.owner and asdict(intent.owner),
        "stream": intent.stream and _encode_stream(intent.stream),
    }
    return json.dumps(record, indent=1).encode()


def _encode_table(table: TableIntent) -> dict[str, object]:
    return {
        "table_key": str(table.key),
        "location": table.location,
        "table_branch": table.ref,
        "expected_version": table.expected_version,
        "post_commit_pin": table.post_commit_pin,
        "confirmed_version": table.confirmed_version,
        "forks_from": table.forks_from and (table.forks_from.ref or MAIN),
    }


def _encode_schema(intent: SchemaIntent) -> dict[str, object]:
    return {
        "digest": intent.digest,
        "pins": [pin_row(pin) for pin in intent.pins],
        "tombstones": [tombstone_row(tombstone) for tombstone in intent.tombstones],
    }


def _encode_stream(step: StreamStep) -> dict[str, object]:
    return {**step.batch.to_facts(), "after": step.after, "after_batch": step.after_number}


def decode(data: bytes) -> Intent:
    """The intent that a sidecar holds.

    Raises:
        NewerIntentError: its schema is newer than ours, or it records work that this release cannot
            finish. It must not be deleted.
        UnreadableIntentError: it is truncated or damaged. It must not be deleted.
    """
    try:
        record = json.loads(data)
        version = record["schema_version"]
    except (ValueError, KeyError, TypeError, RecursionError) as cause:
        message = "it is not a sidecar"
        raise UnreadableIntentError(message) from cause
    if type(version) is not int or version < OLDEST_SCHEMA_VERSION:
        message = f"its schema is {version!r}, which no release writes"
        raise UnreadableIntentError(message)
    if version > SCHEMA_VERSION:
        message = f"its schema is {version!r}, and this release reads up to {SCHEMA_VERSION}"
        raise NewerIntentError(message)
    if later := [name for name in _LATER if record.get(name)]:
        message = f"it has {', '.join(later)}, which this release does not know how to finish"
        raise NewerIntentError(message)
    try:
        return replace(_decode(record), schema_version=version)
    except (ValueError, KeyError, TypeError, AttributeError) as cause:
        message = f"it is incomplete: {cause!r}"
        raise UnreadableIntentError(message) from cause


def _decode(record: Mapping[str, Any]) -> Intent:
    lease, commit, owner = record.get("lease_until"), record.get("commit_id"), record.get("owner")
    source, head = record.get("merge_source_commit_id"), record.get("expect_head")
    schema, stream = record.get("schema_intent"), record.get("stream")
    branch = BranchName.parse(_text(record["branch"]))
    return Intent(
        operation_id=OperationId(_text(record["operation_id"])),
        writer_kind=OperationKind(record["writer_kind"]),
        branch=branch,
        started_at=datetime.fromisoformat(record["started_at"]),
        tables=tuple(map(_decode_table, _items(record["tables"]))),
        branch_ref=_text_or_none(record.get("branch_ref", branch.legacy_ref)),
        actor=_text_or_none(record.get("actor")),
        message=_text_or_none(record.get("message")),
        lease_until=None if lease is None else _instant(lease),
        commit_id=None if commit is None else CommitId.parse(_text(commit)),
        merge_source_commit_id=None if source is None else CommitId.parse(_text(source)),
        guards=tuple(map(TableKey.parse, _items(record.get("guards", [])))),
        schema_digest=_text_or_none(record.get("schema_digest")),
        schema_intent=None if schema is None else _decode_schema(schema),
        expect_head=None if head is None else CommitId.parse(_text(head)),
        resolves=None if record.get("resolves") is None else OperationId(_text(record["resolves"])),
        owner=None if owner is None else _decode_owner(owner),
        stream=None if stream is None else _decode_stream(stream),
    )


def _decode_table(record: Mapping[str, Any]) -> TableIntent:
    confirmed, source = record.get("confirmed_version"), _text_or_none(record.get("forks_from"))
    return TableIntent(
        key=TableKey.parse(_text(record["table_key"])),
        location=_text(record["location"]),
        ref=_text_or_none(record.get("table_branch")),
        expected_version=_number(record["expected_version"]),
        post_commit_pin=_number(record["post_commit_pin"]),
        confirmed_version=None if confirmed is None else _number(confirmed),
        forks_from=None if source is None else ForkSource(None if source == MAIN else source),
    )


def _decode_schema(record: Mapping[str, Any]) -> SchemaIntent:
    return SchemaIntent(
        _text(record["digest"]),
        tuple(map(read_pin, _items(record["pins"]))),
        tuple(map(read_tombstone, _items(record["tombstones"]))),
    )


def _decode_stream(record: Mapping[str, Any]) -> StreamStep:
    after, number = record["after"], record.get("after_batch")
    return StreamStep(
        StreamBatch.from_facts(record),
        None if after is None else CommitId.parse(_text(after)),
        None if number is None else _number(number),
    )


def _decode_owner(record: Mapping[str, Any]) -> Owner:
    return Owner(_text(record["host"]), _number(record["pid"]), _number(record["started"]))


def _text(value: object) -> str:
    if not isinstance(value, str):
        message = f"{value!r} is not a text"
        raise TypeError(message)
    return value


def _items(value: object) -> list[Any]:
    if not isinstance(value, list):
        message = f"{value!r} is not a list"
        raise TypeError(message)
    return value


def _text_or_none(value: object) -> str | None:
    return None if value is None else _text(value)


def _number(value: object) -> int:
    if type(value) is not int:
        message = f"{value!r} is not a number"
        raise TypeError(message)
    return value


def _instant(value: object) -> datetime:
    instant = datetime.fromisoformat(_text(value))
    if instant.tzinfo is None:
        message = f"{value!r} names no time zone"
        raise ValueError(message)
    return instant
